"""How the tests are distributed among processes (pytest-xdist), and which signals they receive."""

from __future__ import annotations

import os
import signal

import pytest
from xdist.scheduler import LoadScopeScheduling

ONE_PROCESS = ("tests/tacker/",)
"""Folders whose tests share something that takes long to start."""

LONG = (
    "tests/tacker/",
    "tests/functional/change_vnfpkg/test_contract.py",
    "tests/functional/test_faults.py",
    "tests/functional/change_vnfpkg/test_faults.py",
    "tests/functional/stacks/test_faults.py",
    "tests/vnfm/test_page.py",
    "tests/vnfm/test_load.py",
    "tests/vnfm/test_soak.py",
    "tests/functional/test_soak.py",
    "tests/vnfm/test_guides.py",
    "tests/vnfm/test_demo.py",
    "tests/vnfm/test_recovery.py",
    "tests/vnfm/test_openstack.py",
    "tests/vnfm/test_openstack_served.py",
    "tests/functional/reference/",
    "tests/unit/package/test_hostile.py",
    "tests/functional/test_promise.py",
    "tests/project/",
)
"""The longest tests start first, so that no process is left with one at the end."""


# nohup and a job in the background ignore these signals, and all that they start inherits it: the
# commands of the tests too, which are sent one and never end.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        _is_interrupt = _number == signal.SIGINT
        signal.signal(_number, signal.default_int_handler if _is_interrupt else signal.SIG_DFL)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together: they share a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(nodeid.partition("::")[0])
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Return the scheduler that replaces the one of ``--dist``."""
    return ByFile(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: one more than there are cores, since tests wait a good part of their time; this
    process on a real cloud, which has room for one test and one set of quotas."""
    return 0 if os.environ.get("OS_CLOUD") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by LONG, then in the order of collection."""
    items.sort(key=lambda item: _position(item.nodeid))


def _position(nodeid: str) -> int:
    positions = (position for position, name in enumerate(LONG) if nodeid.startswith(name))
    return next(positions, len(LONG))
