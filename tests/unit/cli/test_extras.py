# SPDX-License-Identifier: Apache-2.0
"""A missing extra is named with the command that adds it to this installation."""

from __future__ import annotations

import json
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

from container_update.cli import extras

COMMIT = "1f0c"
SOURCES: dict[str, tuple[Any, str]] = {
    "an index": (None, "'container-update[vnfm]'"),
    "a checkout": ({"url": "file:///a%20b", "dir_info": {}}, "'/a b[vnfm]'"),
    "a checkout in place": (
        {"url": "file:///src", "dir_info": {"editable": True}},
        "-e '/src[vnfm]'",
    ),
    "a repository": (
        {"url": "https://h/r", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        f"'container-update[vnfm] @ git+https://h/r@{COMMIT}'",
    ),
    "a wheel": (
        {"url": "file:///w.whl", "archive_info": {}},
        "'container-update[vnfm] @ file:///w.whl'",
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_installed_from_where_the_program_came_from(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, expected = SOURCES[source]
    if origin:
        (tmp_path / "direct_url.json").write_text(json.dumps(origin))
    found = metadata.PathDistribution(tmp_path)
    monkeypatch.setattr(metadata, "distribution", lambda _: found)
    monkeypatch.setattr(util, "find_spec", lambda _: True)
    assert extras.install("vnfm") == f"{sys.executable} -m pip install {expected}"


def test_where_there_is_no_pip_uv_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    assert extras.install("vnfm").startswith(f"uv pip install --python {sys.executable} ")
