# SPDX-License-Identifier: Apache-2.0
"""SIGTERM, SIGINT and SIGHUP at the command line: undone, left for a resume, or left at once."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from container_update import UpdateInterruptedError
from container_update.emulator.faults import Fault, FaultedRequest
from tests.functional.cnf import INSTANCE
from tests.functional.manifests import config_map
from tests.functional.promise import Checker, Expected
from tests.functional.reference_update import (
    CONFIGURATION,
    NEW,
    NEW_FILES,
    OLD,
    OLD_FILES,
    Lab,
    until,
)

PROGRAM = "import sys; from container_update.cli.main import main; sys.exit(main())"
INTERRUPTED = UpdateInterruptedError.exit_status
LISTED = [word for path in CONFIGURATION for word in ("--config-path", path)]


@dataclass
class Operator:
    """Runs the command line as a process, and signals it while a request is under way."""

    lab: Lab
    namespace: str
    signals: tuple[signal.Signals, ...] = ()
    ignores: bool = False
    """Begin with SIGHUP ignored."""

    async def __call__(self, faulted: FaultedRequest) -> web.StreamResponse:
        """Send the next signal and respond only when the previous one was noticed."""
        for number in self.signals:
            os.kill(self.process.pid, number)
            if not self.ignores:
                await asyncio.to_thread(
                    until, lambda: "a second signal exits immediately" in self.errors
                )
        return await faulted.handler(faulted.request)

    @property
    def errors(self) -> str:
        """What the program has written to standard error so far."""
        return self._errors.read_text()

    @property
    def _errors(self) -> Path:
        return self.lab.folder / f"errors-{self.namespace}"

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        """Run a command and return its exit status and standard output."""
        target_options = ["--kubeconfig", self.lab.kubeconfig, "-n", self.namespace]
        settings = ["--instance-id", INSTANCE, "--lease-seconds", "3", "--grace-period", "0.3"]
        code = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {PROGRAM}"
        code = code if self.ignores else PROGRAM
        program = [sys.executable, "-c", code, command, *arguments, *target_options, *settings]
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                program, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out

    def apply(self, *arguments: str) -> tuple[int, str]:
        """Run the reference update, signalled when a Deployment is written."""
        packages = [self.lab.package(OLD_FILES), self.lab.package(NEW_FILES)]
        fault = Fault(self, method="PUT", path="*/deployments/d")
        with self.lab.script(self.namespace, fault):
            return self.run("apply", *packages, *LISTED, *arguments)


@pytest.fixture
def operator(lab: Lab) -> Iterator[Operator]:
    """An operator in the namespace of the reference CNF."""
    namespace = lab.deploy(OLD_FILES)
    yield Operator(lab, namespace)
    lab.remove(namespace)


@pytest.fixture
def checker(operator: Operator) -> Checker:
    return Checker(operator.lab.server, operator.namespace)


SIGNALS = pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda n: n.name
)


@SIGNALS
def test_a_signal_undoes_the_update_with_its_own_exit_status(
    operator: Operator, checker: Checker, number: signal.Signals
) -> None:
    operator.signals = (number,)
    status, out = operator.apply()
    assert status == INTERRUPTED
    assert f"container-update: {number.name}: undoing" in operator.errors
    assert "undone" in out
    assert "failed" not in out + operator.errors
    assert "Correct the cause" not in operator.errors
    assert checker.differences(OLD, as_before=True) == []
    assert checker.left_over() == []


def test_a_terminal_that_is_closed_sends_its_signal_twice_and_the_undo_goes_on(
    operator: Operator, checker: Checker
) -> None:
    operator.signals = (signal.SIGHUP, signal.SIGHUP)
    assert operator.apply()[0] == INTERRUPTED
    assert checker.differences(OLD, as_before=True) == []
    assert checker.left_over() == []


def test_an_update_that_ignores_sighup_from_the_start_is_not_stopped_by_it(
    operator: Operator, checker: Checker
) -> None:
    """As a shell starts it with nohup."""
    operator.signals = (signal.SIGHUP,)
    operator.ignores = True
    assert operator.apply()[0] == 0
    assert operator.errors == ""
    assert checker.differences(NEW, as_before=False) == []


def test_a_signal_can_leave_the_update_for_a_resume(operator: Operator, checker: Checker) -> None:
    operator.signals = (signal.SIGTERM,)
    assert operator.apply("--leave-on-signal")[0] == INTERRUPTED
    operator.signals = ()
    target_options = f"--kubeconfig {operator.lab.kubeconfig} --namespace {operator.namespace}"
    target_options += f" --instance-id {INSTANCE}"
    assert f"Finish it: container-update resume {target_options}; or go back: " in operator.errors
    assert "not finished" in operator.run("status")[1]
    assert operator.run("resume")[0] == 0
    assert checker.differences(NEW, as_before=False) == []
    assert checker.left_over() == []


AFTERWARDS = {
    "finished": ("resume", "Finishing 9 steps: operation", "done", "Updated in .* s: 3 .*, 6 .*"),
    "undone": ("rollback", "Undoing 9 steps: operation", "undone", r"Undone in .* \(9 steps\)."),
    "undone before another update": (
        "apply", "Undoing 9 steps: operation", "undone", "Updated in .* s with .* requests: 1 .*",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "heading", "state", "total"), AFTERWARDS.values(), ids=AFTERWARDS
)
def test_what_was_left_is_shown_step_by_step_and_summed_up(
    operator: Operator, command: str, heading: str, state: str, total: str
) -> None:
    operator.signals = (signal.SIGTERM,)
    _, left = operator.apply("--leave-on-signal")
    assert "  stopped: Deployment" in left
    assert "  failed: " not in left
    operator.signals = ()
    other = {**OLD_FILES, "cm": config_map(setting="other")}
    packages = [operator.lab.package(files) for files in (OLD_FILES, other)]
    status, out = operator.run(command, *(packages if command == "apply" else ()))
    lines = [line for line in out.splitlines() if not line.startswith("To go back")]
    assert status == 0
    assert lines[0].startswith(heading)
    assert len([line for line in lines[1:10] if line.startswith(f"  {state}: ")]) == 9
    assert re.fullmatch(total, lines[-1])


@pytest.mark.parametrize(("command", "state"), [("resume", NEW), ("rollback", OLD)])
def test_a_second_signal_ends_at_once_and_keeps_the_journal(
    operator: Operator, checker: Checker, command: str, state: Expected
) -> None:
    operator.signals = (signal.SIGTERM, signal.SIGTERM)
    assert operator.apply()[0] == 128 + signal.SIGTERM
    assert any(text.startswith("journal") for text in checker.left_over())
    operator.signals = ()
    assert operator.run(command)[0] == 0
    assert checker.differences(state, as_before=state is OLD) == []
    assert checker.left_over() == []
