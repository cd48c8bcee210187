# SPDX-License-Identifier: Apache-2.0
"""Whether the functional tests run on a real API server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

REAL = os.environ.get("CONTAINER_UPDATE_KUBECONFIG")
"""The administrator's kubeconfig of a real API server; None: on the embedded cluster."""

SETTLE_SECONDS = 60.0 if REAL else 10.0
"""How long what has been asked for may take to become true: real controllers and kubelets work in
steps of seconds."""


REACHING = frozenset({"admin_kubeconfig", "lab", "workers"})
"""Fixtures that lead to the real cluster. Those of a module with a ``lab`` of its own do not; those
of change_vnfpkg/ ask for them by name; stacks/ and other folders are not about it."""


def reaches_it(item: pytest.Item) -> bool:
    """Tell whether a test runs on the real cluster, where there is one."""
    folder = item.path.parent.relative_to(Path(__file__).parents[1]).as_posix()
    if folder not in ("functional", "functional/reference", "functional/rollouts"):
        return True
    assert isinstance(item, pytest.Function)
    own = {"lab"} if hasattr(item.module, "lab") else set()
    return not REACHING.isdisjoint({*item.fixturenames} - own)


def one_of(every: int, rows: Iterable[Any], *, everywhere: bool = False) -> list[Any]:
    """Return the rows of a table: on a real cluster, where each one takes many seconds, one of so
    many is in the default circle, and the others are in the thorough one; on the embedded cluster
    these are in the default one.

    :param everywhere: they are in the thorough one on the embedded cluster too.
    """
    mark = pytest.mark.thorough if REAL or everywhere else pytest.mark.embedded
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else [row]), marks=mark if number % every else ()
        )
        for number, row in enumerate(rows)
    ]
