# SPDX-License-Identifier: Apache-2.0
"""Two hosts whose clocks differ: while one lives, the other one is refused; then it takes over.

The first host, whose clock is wrong, is held at one of its requests while its lease is renewed.
The second one tries an update or a rollback, and again when the first one is gone or silent.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta

from container_update import ContainerUpdateError, UpdateInProgressError
from tests.circles import Circle
from tests.functional import matrix
from tests.functional.late_requests import DEADLINE, HeldRequest, writes
from tests.functional.matrix import Point, PointRun, Request, Victim
from tests.functional.promise import Expected, settled

SKEWS = tuple(timedelta(seconds=seconds) for seconds in (-3600, -20, 20, 3600))
"""What the first host's clock differs by."""
ATTEMPTS = ("rollback", "update")
"""What the second host tries."""
FATES = ("goes on", "is killed", "is silent")
"""What the first host does then."""
STEP = 61
"""Not a divisor of the number of cases of a request: each case comes at other requests."""
LEASE_SECONDS = {"goes on": 18.0, "is killed": 18.0, "is silent": 9.0}
"""Less than the clocks differ by, and so long that a busy machine does not lose it."""


@dataclass(frozen=True)
class ClockPoint(Point):
    """A request at which the first host is held."""

    skew: timedelta = timedelta()
    attempt: str = "rollback"
    fate: str = "goes on"

    def __str__(self) -> str:
        skew = f"{self.skew.total_seconds():+.0f} s"
        return (
            f"{self.reference_name}: {self.attempt} while a host with {skew} is held at "
            f"{self.request} and then {self.fate}"
        )


@dataclass
class ClockRun(PointRun):
    """The run of one point."""

    point: ClockPoint
    is_rolled_back: bool = False
    """Whether there was anything to roll back: the first host's last request may have ended it."""

    def _problems(self) -> Iterator[str]:
        seconds = LEASE_SECONDS[self.point.fate]
        options = replace(self.reference.options, lease_seconds=seconds)
        self.reference = replace(self.reference, options=options)
        held, request = HeldRequest(), self._request()
        first = Victim(self.lab, self.point.reference_name, request, options, self.point.skew)
        with (
            self.lab.script(self.namespace, self.point.request.fault(held, self.namespace)),
            ThreadPoolExecutor(1) as beside,
        ):
            end = beside.submit(first.run)
            try:
                held.wait_for_it()
                yield from self._refused()
                if self.point.fate == "is killed":
                    first.kill()
                    end.result()
                elif self.point.fate == "is silent":
                    first.kill(signal.SIGSTOP)
                    yield from self._taken_over()
                    first.kill(signal.SIGCONT)
            finally:
                held.arrive()
            end.result()
        if self.point.fate == "is killed":
            yield from self._taken_over()
        if (first.end == 0) != (self.point.fate == "goes on"):
            yield f"the first host ended with {first.end}"
        yield from settled(lambda: self._state(self._expected()))
        yield from settled(self.checker.left_over)
        yield from self._again()

    def _expected(self) -> Expected | None:
        if self.point.fate == "goes on" or self.point.attempt == "update":
            return self.reference.new
        return self.reference.old if self.is_rolled_back else None

    def _refused(self) -> Iterator[str]:
        try:
            self._second()
        except UpdateInProgressError:
            return
        except ContainerUpdateError as error:
            yield f"not refused as it should: {type(error).__name__}: {error}"
            return
        yield "the second host was let in while the first one renewed its lease"

    def _taken_over(self) -> Iterator[str]:
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                self._second()
                return
            except UpdateInProgressError as error:  # a last renewal was on its way
                if time.monotonic() >= deadline:
                    yield f"not let in: {error}"
                    return
            except ContainerUpdateError as error:
                yield f"it took over and failed: {type(error).__name__}: {error}"
                return

    def _second(self) -> None:
        if self.point.attempt == "rollback":
            outcome = self.reference.rollback(self.lab, self.namespace)
            self.is_rolled_back = outcome is not None
        else:
            self.reference.run(self.lab.cluster, self._request(), self.reference.options)


def points(reference_name: str, requests: Sequence[Request], circle: Circle) -> list[ClockPoint]:
    """Return the points of a reference at every write but those of the lease itself.

    Where not all are tried, every request is, with a difference, an attempt and a fate each.
    """
    held_at = [request for request in writes(requests) if not request.path.startswith("leases")]
    made = [
        ClockPoint(reference_name, "done", "held", request, skew, attempt, fate)
        for request in held_at
        for skew in SKEWS
        for attempt in ATTEMPTS
        for fate in FATES
    ]
    return made if circle is Circle.COMPLETE else made[::STEP]


def run_clock_points(chosen: Sequence[ClockPoint]) -> list[str]:
    """Run the points and return their problems."""
    ran = matrix.run_all(chosen, lambda point: ClockRun(point).problems())
    return [line for lines in ran for line in lines]
