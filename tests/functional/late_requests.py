# SPDX-License-Identifier: Apache-2.0
"""Requests that arrive late: what a host that lost the lock had sent, while another host goes on.

A first run is killed, or paused, while one of its requests is on the way. A second one resumes it
or rolls it back, and the request arrives before one of the second run's writes, or after its end.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from aiohttp import web

from container_update import ContainerUpdateError, NextStep, UpdateInProgressError
from container_update.emulator.faults import FaultedRequest
from container_update.emulator.http_server import Handler
from tests.circles import Circle
from tests.functional import matrix
from tests.functional.matrix import MissedError, Point, PointRun, Request, Victim
from tests.functional.promise import settled
from tests.functional.reference_change import CHANGES
from tests.functional.reference_lifecycle import LIFECYCLE
from tests.functional.reference_surroundings import IN_PARTS

DEADLINE = 60.0
AFTERWARDS = 1_000
"""A number of writes that no run reaches."""
BEFORE = (1, 2, 3, 5, 8, 12, AFTERWARDS)
"""Before which write of the second run the request arrives, where not all points are tried."""
THEN = ("rollback", "resume")
STEPS = {
    "update": 6,
    **dict.fromkeys(CHANGES, 6),
    **dict.fromkeys(LIFECYCLE, 8),
    IN_PARTS: 10,
}
"""By default every nth point of a reference is run."""


@dataclass(frozen=True)
class LatePoint(Point):
    """A request of a run that another run's write overtakes."""

    then: str = "rollback"
    before: int = AFTERWARDS
    """The number of that write, from 1."""
    is_paused: bool = False
    """The first host goes on when its request is answered; otherwise it is gone."""

    def __str__(self) -> str:
        where = "after its end" if self.before == AFTERWARDS else f"before write {self.before}"
        host = "paused" if self.is_paused else "killed"
        return f"{self.reference_name}: {self.request} of a {host} host: {where} of a {self.then}"


@dataclass
class HeldRequest:
    """An effect: the request waits until it is let through."""

    _reached: threading.Event = field(default_factory=threading.Event)
    _loop: asyncio.AbstractEventLoop | None = None
    _passes: asyncio.Event = field(default_factory=asyncio.Event)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, faulted: FaultedRequest) -> web.StreamResponse:
        await faulted.request.read()  # nobody sends the body any more when the client is killed
        self._loop = asyncio.get_running_loop()
        self._reached.set()
        await asyncio.wait_for(self._passes.wait(), DEADLINE)
        try:
            return await faulted.handler(faulted.request)
        finally:
            self._arrived.set()

    def wait_for_it(self) -> None:
        if not self._reached.wait(DEADLINE):
            raise MissedError("the request never came")

    async def pass_on(self) -> None:
        """Let the request take effect, and wait for that; in the server's thread."""
        self._passes.set()
        await self._arrived.wait()

    def arrive(self) -> None:
        """Let the request take effect, and wait for that; in any other thread."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self.pass_on(), self._loop).result(DEADLINE)


@dataclass
class Overtaking:
    """A middleware that lets a held request arrive before a write of another run."""

    held: HeldRequest
    namespace: str
    before: int
    writes: int = 0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_write = request.method in ("POST", "PUT", "DELETE")
        if is_write and f"/{self.namespace}" in request.path:
            self.writes += "/leases" not in request.path
            if self.writes == self.before and "/leases" not in request.path:
                await self.held.pass_on()
        return await handler(request)


@dataclass
class LateRun(PointRun):
    """The run of one late point."""

    point: LatePoint

    def _problems(self) -> Iterator[str]:
        held = HeldRequest()
        options = self.reference.options
        if self.point.is_paused:
            options = replace(options, lease_seconds=3)
        victim = Victim(self.lab, self.point.reference_name, self._request(), options)
        with (
            self.lab.script(self.namespace, self.point.request.fault(held, self.namespace)),
            ThreadPoolExecutor(1) as beside,
        ):
            first = beside.submit(victim.run)
            try:
                held.wait_for_it()
                if self.point.is_paused:
                    victim.kill(signal.SIGSTOP)
                else:
                    victim.kill()
                    first.result()
                problems, outcome = self._second(held)
                if self.point.is_paused:
                    victim.kill(signal.SIGCONT)
            finally:
                held.arrive()
            first.result()
        yield from problems
        if victim.end == 0 and outcome:
            yield "the first run reported success"
        yield from settled(lambda: self._state(self._expected(outcome)))
        if not (self.point.request.method == "POST" and self.point.request.path == "leases"):
            yield from settled(self.checker.left_over)
        yield from self._again()

    def _second(self, held: HeldRequest) -> tuple[list[str], bool]:
        """Run the second run; return problems, and whether there was anything to do."""
        overtaking = Overtaking(held, self.namespace, self.point.before)
        middlewares = self.lab.server.middlewares
        recover = (
            self.reference.rollback if self.point.then == "rollback" else self.reference.resume
        )
        middlewares.append(overtaking)
        deadline = time.monotonic() + DEADLINE
        try:
            while True:
                try:
                    outcome = recover(self.lab, self.namespace)
                    break
                except UpdateInProgressError:  # its heartbeat is recent
                    if not self.point.is_paused or time.monotonic() >= deadline:
                        raise
                    time.sleep(0.1)
                except ContainerUpdateError as error:  # its journal was completed just then
                    is_late = self.point.request.path.startswith("secrets")
                    if not is_late or error.next_step is not NextStep.RESUME_OR_ROLLBACK:
                        raise
        except ContainerUpdateError as error:
            return [f"{self.point.then}: {type(error).__name__}: {error}"], True
        finally:
            middlewares.remove(overtaking)
        if overtaking.writes < self.point.before != AFTERWARDS:
            raise MissedError(f"the second run has {overtaking.writes} writes")
        return [], outcome is not None

    def _expected(self, had_to_do: bool) -> matrix.Expected | None:
        if not had_to_do:
            return None
        return self.reference.old if self.point.then == "rollback" else self.reference.new


def writes(requests: Sequence[Request]) -> list[Request]:
    """Return those of the requests that change something, and that are kept out when they are late:
    nothing can own what is created in another namespace."""
    return [
        request
        for request in requests
        if not request.is_dry
        and (
            request.method in ("PUT", "DELETE")
            or (request.method == "POST" and not request.path.startswith("/"))
        )
    ]


def points(reference_name: str, requests: Sequence[Request], circle: Circle) -> list[LatePoint]:
    """Return the late points of a reference: all of them, or each request once."""
    complete = circle is Circle.COMPLETE
    made = [
        LatePoint(reference_name, "done", "late", request, then, before)
        for number, request in enumerate(writes(requests))
        for turn, then in enumerate(THEN)
        for before in (
            (*range(1, 31), AFTERWARDS)
            if complete
            else (BEFORE[(2 * number + turn) % len(BEFORE)],)
        )
    ]
    if complete:
        return made
    step = STEPS[reference_name]
    return made[list(STEPS).index(reference_name) % step :: step]


def run_late_points(late: Sequence[LatePoint]) -> list[str]:
    """Run the points; return their problems, and whether too few of them could be run.

    Some cannot: the second run has fewer writes, or the first one another order of requests.
    """
    missed: list[LatePoint] = []

    def problems_of(point: LatePoint) -> list[str]:
        try:
            return LateRun(point).problems()
        except MissedError:
            missed.append(point)
            return []

    problems = [line for lines in matrix.run_all(late, problems_of) for line in lines]
    if len(missed) > len(late) * 2 / 3:
        problems.append(f"{len(missed)} of {len(late)} points were missed")
    return problems
