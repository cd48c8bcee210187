"""How the tests are distributed among processes (pytest-xdist), and which signals they receive."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import garbage

ONE_PROCESS = ("tests/tacker/",)
"""Folders whose tests share something that takes long to start."""

LONG = (
    "tests/tacker/",
    "tests/functional/test_faults.py",
    "tests/functional/stacks/test_faults.py",
    "tests/functional/change_vnfpkg/test_contract.py",
    "tests/vnfm/test_page.py",
    "tests/project/",
    "tests/vnfm/test_guides.py",
    "tests/functional/test_late_requests.py",
    "tests/unit/package/test_hostile.py",
    "tests/functional/stacks/test_failures.py",
    "tests/vnfm/test_load.py",
    "tests/functional/stacks/test_late_requests.py",
    "tests/vnfm/test_openstack.py",
    "tests/vnfm/test_upkeep.py",
    "tests/vnfm/test_demo.py",
    "tests/functional/stacks/test_sample_readmes.py",
    "tests/functional/test_tutorials.py",
    "tests/vnfm/lists/",
    "tests/functional/test_two_clocks.py",
    "tests/vnfm/test_recovery.py",
    "tests/functional/stacks/test_samples.py",
    "tests/functional/change_vnfpkg/test_kubernetes.py",
    "tests/vnfm/test_api.py",
    "tests/vnfm/test_outages.py",
    "tests/functional/change_vnfpkg/test_traffic.py",
    "tests/vnfm/test_driver_scripts.py",
    "tests/functional/stacks/test_server_actions.py",
    "tests/vnfm/test_hostile_packages.py",
    "tests/functional/test_signals.py",
    "tests/functional/test_cli.py",
    "tests/functional/test_library.py",
    "tests/functional/histories/",
    "tests/functional/test_promise.py",
    "tests/functional/test_soak.py",
    "tests/vnfm/test_soak.py",
)
"""The longest files start first, as ``--durations=0`` of a run had them, so that no process is left
with one at the end."""

QUICK = "tests/unit/"
"""The folder of the tests that ``-m quick`` selects, for the time between two edits."""
NOT_QUICK = ("tests/unit/package/test_hostile.py",)
"""What takes long in it."""

_ROOT = Path(__file__).parents[1]


# nohup and a job in the background ignore these signals, and all that they start inherits it: the
# commands of the tests too, which are sent one and never end.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        _is_interrupt = _number == signal.SIGINT
        signal.signal(_number, signal.default_int_handler if _is_interrupt else signal.SIG_DFL)


# Tests start hundreds of commands: where this is set, each one compiles all of its modules again.
# Each process of pytest rewrites the assertions of all tests then.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# Tests talk to this machine only. Where this is not set, the library requests looks for a proxy in
# all variables of the environment, for each request.
if not os.environ.get("OS_CLOUD"):
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,localhost"


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together: they share a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(nodeid.partition("::")[0])
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Return the scheduler that replaces the one of ``--dist``."""
    return ByFile(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: two more than there are cores, since tests wait a good part of their time; this
    process on a real cloud, which has room for one test and one set of quotas."""
    return 0 if os.environ.get("OS_CLOUD") else (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "quick: all of tests/unit that takes less than a minute")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m quick``, import no module that has no quick test."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return None if _is_quick(collection_path.relative_to(_ROOT).as_posix()) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests. Sort by LONG, then in the order of collection."""
    for item in items:
        if _is_quick(item.nodeid.partition("::")[0]):
            item.add_marker("quick")
    items.sort(key=lambda item: _position(item.nodeid))


def pytest_collection_finish() -> None:
    """Keep the search for garbage away from thousands of tests and their modules."""
    garbage.leave_modules_alone()


def pytest_sessionfinish() -> None:
    """Search for garbage once more, so that pytest's five searches at its end are short."""
    garbage.leave_modules_alone()


def _is_quick(path: str) -> bool:
    return path.startswith(QUICK) and path not in NOT_QUICK


def _position(nodeid: str) -> int:
    positions = (position for position, name in enumerate(LONG) if nodeid.startswith(name))
    return next(positions, len(LONG))
