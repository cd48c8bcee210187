# SPDX-License-Identifier: Apache-2.0
"""A history: what two hosts do with one VNF, one after the other and at once; what must hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from container_update import (
    ContainerUpdateError,
    LeaseLostError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
    install,
    resume,
    rollback,
    status,
    terminate,
    update,
)
from tests.functional.change_vnfpkg.dying import Died
from tests.functional.cnf import INSTANCE
from tests.functional.histories.packages import GONE, Family
from tests.functional.histories.processes import (
    DEADLINE,
    PROCESS,
    Event,
    Line,
    Network,
    Process,
)
from tests.functional.promise import Checker, settled
from tests.functional.reference_update import OPTIONS, Lab

_REFUSED_SECONDS = 4.0
"""For how long a host tries again that finds the lease held by one that is silent."""
THIRD = 2
"""The host of who looks after them; its clock is right."""


@dataclass
class History:
    """What happened to one VNF, and the states that it may be in.

    :param skews: seconds that the clock of each host is fast.
    """

    lab: Lab
    known: dict[int, Process]
    family: Family
    skews: tuple[float, float]
    network: Network = field(default_factory=Network)
    possible: set[int] = field(default_factory=lambda: {0})
    believed: int = 0
    """The package that an operator takes for the one that runs."""
    begun: list[Process] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What happened, for who reads a failure."""

    def __post_init__(self) -> None:
        self.namespace = self.lab.deploy(self.family.files(0))
        self.checker = Checker(self.lab.server, self.namespace)

    def run(self, events: Sequence[Event], *, back: bool) -> None:
        """Let the events happen, then put everything right.

        :param back: by a rollback, otherwise by a resume.
        :raises AssertionError: the promise is broken.
        """
        try:
            for event in events:
                self._happen(event)
            if self.network.late:
                self._happen(Event(THIRD, "rollback" if back else "resume"))
            self.network.deliver_all()
            for process in self.begun:
                self._join(process)
            self._put_right(back=back)
        finally:
            self.network.deliver_all()
            for process in self.begun:
                process.is_dead = True
            self.lab.remove(self.namespace)

    def _happen(self, event: Event) -> None:
        busy = {process.event.host for process in self.begun if process.is_open}
        if event.host in busy:
            event = replace(event, host=1 - event.host)
        if event.host in busy:
            return
        process = self._begin(event)
        assert process.quiet.wait(DEADLINE), f"{process.event} never ends"
        if not process.is_open:
            self._judge(process)

    def _begin(self, event: Event) -> Process:
        process = Process(event, self._skew(event.host))
        self.known[process.number] = process
        self.begun.append(process)
        self.possible |= event.leads_to
        process.thread = threading.Thread(target=self._live, args=(process,), daemon=True)
        process.thread.start()
        return process

    def _skew(self, host: int) -> float:
        return 0.0 if host == THIRD else self.skews[host]

    def _live(self, process: Process) -> None:
        PROCESS.set(process)
        try:
            process.result = self._insist(process)
        except Died:
            process.result = "died"
        except BaseException as error:  # noqa: BLE001 - any other error is the history's result
            process.failure = error
            process.result = "failed"
        finally:
            process.quiet.set()

    def _insist(self, process: Process) -> str:
        """Carry out the operation; try again while one that is silent has the lease."""
        deadline = time.monotonic() + _REFUSED_SECONDS
        while True:
            try:
                self._operate(process)
                return "done"
            except UpdateInProgressError:
                if time.monotonic() > deadline or not self._is_held_by_silent(process):
                    return "refused"
                time.sleep(0.1)
            except (LeaseLostError, UndoIncompleteError, UpdateInterruptedError) as error:
                return f"stopped: {error}"
            except UpdateFailedError:
                return "undone"
            except ContainerUpdateError as error:
                return f"not begun: {error}"

    def _is_held_by_silent(self, asking: Process) -> bool:
        return any(not p.went.is_set() or p.is_dead for p in self.begun if p is not asking)

    def _operate(self, process: Process) -> object:
        line: Any = Line(self.lab.cluster, process, self.network)
        event = process.event
        where: Mapping[str, Any] = {"namespace": self.namespace, "instance_id": INSTANCE}
        match event.operation:
            case "rollback":
                return rollback(line, OPTIONS, **where)
            case "resume":
                return resume(line, OPTIONS, **where)
            case "status":
                return str(status(line, OPTIONS, **where))
            case "uninstall":
                return terminate(None, line, **where, options=OPTIONS)
            case "install":
                package = self.lab.package(self.family.files(event.target))
                return install(package, line, **where, options=OPTIONS)
        new = self.family.files(event.target, bad=event.operation == "bad update")
        old = self.family.files(max(self.believed, 0))
        return update(self.lab.request(self.namespace, old, new), line, OPTIONS)

    # --- what must hold -------------------------------------------------------------------------

    def _join(self, process: Process) -> None:
        assert process.thread is not None
        was_open = process.is_open
        process.thread.join(DEADLINE)
        assert not process.is_open, f"{process.event} never ends"
        if was_open:
            self._judge(process)

    def _judge(self, process: Process) -> None:
        """Check what an operation reported; learn from it in which states the VNF may be."""
        event = process.event
        self.told.append(f"{event} -> {process.result}")
        if process.failure is not None:
            raise AssertionError("\n".join(self.told)) from process.failure
        others = [p for p in self.begun if p.is_open]
        if any(not p.is_stalled for p in others) or event.operation == "status":
            return  # the VNF may change meanwhile
        if process.result not in ("done", "undone"):
            return
        self._settle(self._reported(process))
        self.possible |= {state for p in others for state in p.event.leads_to}
        if not others and not self.network.late:
            self._expect_nothing_left()

    def _reported(self, process: Process) -> set[int]:
        """Return the states that an operation which has ended says the VNF may be in."""
        event = process.event
        if process.result == "done" and event.operation == "install":
            return self.possible - {GONE}  # what is there already stays as it is
        return event.leads_to if process.result == "done" and event.leads_to else self.possible

    def _settle(self, states: set[int]) -> None:
        """Check that the VNF is wholly in one of these states, which it is in from now on."""

        def differences() -> list[str]:
            return min((self._differences(state) for state in sorted(states)), key=len)

        problems = settled(differences)
        assert problems == [], "\n".join([*self.told, f"none of {sorted(states)}:", *problems])
        self.believed = next(s for s in sorted(states) if not self._differences(s))
        self.possible = {self.believed}

    def _differences(self, state: int) -> list[str]:
        is_first = self.family.all_differs and state == 0
        return self.checker.differences(self.family.expected(state), as_before=is_first)

    def _left(self) -> list[str]:
        return self.checker.left_over()

    def _expect_nothing_left(self) -> None:
        """Check that no run left anything; the lease of one that may be alive stays a while."""
        may_stay = any(p.is_dead and not p.event.is_known_dead for p in self.begun)

        def left() -> list[str]:
            return [what for what in self._left() if not (may_stay and what.startswith("Lease "))]

        problems = settled(left)
        assert problems == [], "\n".join([*self.told, *problems])

    def _put_right(self, *, back: bool) -> None:
        """Recover as a third host does, whose clock is right."""
        event = Event(THIRD, "rollback" if back else "resume")
        process = Process(event, self._skew(THIRD), OPTIONS.lease_seconds)
        self.known[process.number] = process
        PROCESS.set(process)
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                self._operate(process)
                result = "done"
                break
            except UpdateInProgressError:
                assert time.monotonic() < deadline, "\n".join([*self.told, "held for ever"])
                time.sleep(0.1)
            except UndoIncompleteError:
                raise
            except UpdateFailedError:
                result = "undone"
                break
        self.told.append(f"{event} -> {result}")
        self._settle(self.possible)
        self._expect_nothing_left()

        def left_by_another() -> list[str]:
            if not self._left():
                return []
            with suppress(UpdateInProgressError):
                self._operate(process)
            return self._left()

        problems = settled(left_by_another)
        assert problems == [], "\n".join([*self.told, *problems])
