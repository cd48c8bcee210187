# SPDX-License-Identifier: Apache-2.0
"""Which tests run, how they are distributed among processes (pytest-xdist), and what is said of the
others."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import garbage
from tests.circles import circle_of, move_all_but_a_sample, skipped, what_was_not_run

os.environ["CONTAINER_UPDATE_DETAILED_EXITCODE"] = "true"
"""The commands tell more; what they say without is tested where this is removed."""

LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many tests the other circles have, by their command."""

ONE_PROCESS = ("tests/tacker/",)
"""Folders whose tests share something that takes long to start."""

LONG = (
    "tests/tacker/",
    "tests/functional/test_faults.py",
    "tests/functional/stacks/test_faults.py",
    "tests/functional/change_vnfpkg/test_contract.py",
    "tests/vnfm/test_page.py",
    "tests/project/",
    "tests/functional/test_promises.py",
    "tests/functional/test_waiting.py",
    "tests/vnfm/test_instantiation.py",
    "tests/terminal/",
    "tests/vnfm/test_guides.py",
    "tests/functional/test_late_requests.py",
    "tests/functional/test_kills.py",
    "tests/unit/package/test_hostile.py",
    "tests/functional/stacks/test_failures.py",
    "tests/vnfm/test_load.py",
    "tests/functional/stacks/test_late_requests.py",
    "tests/vnfm/test_openstack.py",
    "tests/vnfm/test_upkeep.py",
    "tests/vnfm/test_hold.py",
    "tests/vnfm/test_modifications.py",
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
CLOUDS = [name for name in os.environ.get("OS_CLOUD", "").split(",") if name]
"""Real ones, a project each: each has room for one test at a time and one set of quotas."""
if not CLOUDS:
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,localhost"
elif worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["OS_CLOUD"] = CLOUDS[int(worker.removeprefix("gw")) % len(CLOUDS)]


@pytest.fixture(scope="session", autouse=True)
def configuration_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what this program would keep for its user, the key of its journals, in a folder of the
    tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together: they share a cluster. On a real cloud they share none."""

    def _split_scope(self, nodeid: str) -> str:
        if CLOUDS:
            return nodeid
        file = str(nodeid.partition("::")[0])
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Return the scheduler that replaces the one of ``--dist``."""
    return ByFile(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: two more than there are cores, since tests wait a good part of their time; on
    real clouds one for each, and this one for a single one."""
    if CLOUDS:
        return len(CLOUDS) if len(CLOUDS) > 1 else 0
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by LONG, then in the order of collection. Put all but a sample of each matrix into the
    second circle, before ``-m`` chooses."""
    items.sort(key=lambda item: _position(item.nodeid))
    move_all_but_a_sample(items)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what the other circles have."""
    for item in items:
        item.config.stash.setdefault(LEFT_OUT, Counter())[circle_of(item).command] += 1


def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has counted: each one collects all tests."""
    if hasattr(node, "workeroutput"):  # it did not die
        node.config.stash[LEFT_OUT] = Counter(node.workeroutput["left_out"])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was not run: the other circles, and what this machine lacks."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = (str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    lines = [*skipped(reasons), what_was_not_run(config.stash.get(LEFT_OUT, Counter()))]
    if any(lines):
        terminalreporter.section("what was not run")
    for line in filter(None, lines):
        terminalreporter.write_line(line)


def pytest_collection_finish() -> None:
    """Keep the search for garbage away from thousands of tests and their modules."""
    garbage.leave_modules_alone()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Search for garbage once more, so that pytest's five searches at its end are short. Send what
    was counted to the process that reports."""
    garbage.leave_modules_alone()
    if hasattr(session.config, "workeroutput"):
        left_out = session.config.stash.get(LEFT_OUT, Counter())
        session.config.workeroutput["left_out"] = dict(left_out)


def _position(nodeid: str) -> int:
    positions = (position for position, name in enumerate(LONG) if nodeid.startswith(name))
    return next(positions, len(LONG))
