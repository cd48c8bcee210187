# SPDX-License-Identifier: Apache-2.0
"""Distributions with entry points, as pip would install them, for the length of a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stevedore import ExtensionManager

from tests.internals.core import registry


def distribution(folder: Path, entry_points: str, **modules: str) -> Path:
    """Write a distribution of that many modules into the folder; the folder."""
    information = folder / "plugin-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def search_anew(patch: pytest.MonkeyPatch) -> None:
    """Have stevedore search for entry points again, as a new process does, until *patch* ends."""
    patch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})


@contextmanager
def installed(*folders: Path) -> Iterator[None]:
    """Install the distributions in these folders while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in folders:
            patch.syspath_prepend(folder)
        search_anew(patch)
        registry.installed_kinds.cache_clear()
        before = set(sys.modules)
        yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent in folders:
            del sys.modules[name]
    registry.installed_kinds.cache_clear()
