"""A third-party strategy: a distribution in a temporary folder, loaded by its entry point."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from container_update.operations.strategies import upgrade_types

_MODULE = "canary_strategy"
_FILES = {
    f"{_MODULE}.py": """
from container_update.operations.strategies.kubernetes_rolling import KubernetesRollingUpdate

prepared = []


class KubernetesCanary(KubernetesRollingUpdate):
    def prepare(self):
        prepared.append(self.job.request.upgrade_type)
        super().prepare()
""",
    "canary-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: canary\nVersion: 1.0\n",
    "canary-1.0.dist-info/entry_points.txt": f"""
[container_update.strategies]
kubernetes-Canary = {_MODULE}:KubernetesCanary
""",
}


def install(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """Install the strategy until *patch* ends; return the list of the upgrade types it runs for."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    patch.syspath_prepend(str(folder))
    patch.setattr(upgrade_types, "entry_points", upgrade_types.entry_points.__wrapped__)
    patch.delitem(sys.modules, _MODULE, raising=False)
    prepared: list[str] = importlib.import_module(_MODULE).prepared
    return prepared
