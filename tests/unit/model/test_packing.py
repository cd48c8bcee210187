# SPDX-License-Identifier: Apache-2.0
"""The bounds of what is stored, which hold for who writes it as for who reads it."""

from __future__ import annotations

import pytest

from container_update.model import packing
from container_update.model.errors import PlanError


@pytest.mark.parametrize(
    ("bound", "content", "what"),
    [("MAX_VALUES", [1, [2, "3"]], "values"), ("MAX_BYTES", ["four"], "bytes")],
)
def test_what_is_not_read_is_not_written(
    bound: str, content: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = packing.pack(content)
    monkeypatch.setattr(packing, bound, 3)
    with pytest.raises(PlanError, match=f"expected at most 3 {what}.*change less at once"):
        packing.pack(content)
    with pytest.raises(ValueError, match=f"expected at most 3 {what}"):
        packing.unpack(stored)
    monkeypatch.setattr(packing, bound, 30)
    assert packing.unpack(packing.pack(content)) == content
