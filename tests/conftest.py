"""How the tests are shared among processes (pytest-xdist)."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

ONE_PROCESS = ("tests/tacker/",)
"""Folders whose tests share something that takes long to start."""


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together: they share a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(nodeid.partition("::")[0])
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Instead of what ``--dist`` names."""
    return ByFile(config, log)
