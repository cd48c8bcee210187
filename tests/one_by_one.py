# SPDX-License-Identifier: Apache-2.0
"""A third-party strategy: a distribution in a temporary folder, loaded by its entry point."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests import plugins

_MODULE = "one_by_one"
_FILES = {
    f"{_MODULE}.py": """
from container_update import Strategy

planned = []


class OneByOne(Strategy):
    def phases(self, steps):
        planned.append(self.params["upgrade_type"])
        for step in steps:
            yield [step]
""",
    "one_by_one-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: one-by-one\nVersion: 1.0\n",
    "one_by_one-1.0.dist-info/entry_points.txt": f"""
[container_update.strategies]
kubernetes-One-By-One = {_MODULE}:OneByOne
""",
}


def install(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """Install the strategy until *patch* ends; return the list of the upgrade types it runs for."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    patch.syspath_prepend(str(folder))
    plugins.search_anew(patch)
    patch.delitem(sys.modules, _MODULE, raising=False)
    planned: list[str] = importlib.import_module(_MODULE).planned
    return planned
