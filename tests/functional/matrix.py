"""Every single fault at every single request of a run: the points, and what a point must show.

What runs is a reference: an update, or a change of the package by one of the strategies.

Points are independent of each other, so that many are played at once: some in each of a few
processes, each of which has an embedded cluster of its own.
"""

from __future__ import annotations

import atexit
import collections
import functools
import logging
import multiprocessing
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from container_update.cluster.client import connect
from container_update.emulator import faults
from container_update.emulator.faults import Effect, Fault
from container_update.model.errors import ContainerUpdateError, UndoIncompleteError
from container_update.model.options import Options
from tests.functional.promise import Checker, Expected, settled
from tests.functional.reference_change import CHANGES
from tests.functional.reference_update import UPDATE, Lab, Reference

REFERENCES: dict[str, Reference[Any]] = {"update": UPDATE, **CHANGES}
WAYS = ("done", "undone")
"""A run that goes well, and one that fails near its end and goes back."""

COMPLETE = bool(os.environ.get("CONTAINER_UPDATE_COMPLETE_MATRIX"))
"""Play every point; otherwise a fixed part of them, in which every request has several faults."""
PARTS = {"update": (4, 8), "Blue-Green": (12, 6), "RollingUpdate": (12, 6)}
"""Every how many-th point is played of each way."""

_PLAYS = 5
PROCESSES = 2
AT_ONCE = 6
"""How many points one process plays at the same time: most of a point is waiting."""

TROUBLE: dict[str, Effect] = {
    "dropped before it takes effect": faults.drop_before,
    "dropped after it took effect": faults.drop_after,
    "delayed": faults.delay(0.1),
    "answered 409": faults.answer(409),
    "answered 410": faults.answer(410),
    "answered 429 with Retry-After": faults.answer(429, retry_after=1),
    "answered 500": faults.answer(500),
    "answered 503": faults.answer(503),
    "answered 504 after it took effect": faults.answer_after(504),
    "all watches cut": faults.cut_watches,
    "server away for a while": faults.outage(0.5),
}
"""What the update itself has to get over, or undo."""

CONTRADICTIONS = ("answered 409", "answered 410")
"""Not transient: an update may fail because of them."""

AWAY_FOR_LONG = "server away for longer than is tried"

KILLED = {
    f"killed {when}, then {then}": (when, then)
    for when in ("before", "after")
    for then in ("resume", "rollback")
}
"""What another run has to put right."""

FAULTS = (*TROUBLE, AWAY_FOR_LONG, *KILLED)


@dataclass(frozen=True)
class Request:
    """One request of an update, found again in every run whatever its place among the others."""

    method: str
    path: str
    """Below the namespace, with '?????' for the random part of a name."""
    watch: bool
    nth: int
    """Of its kind, from 1."""

    def fault(self, effect: Effect) -> Fault:
        """A fault that happens to this request."""
        return Fault(effect, self.method, f"*{self.path}", self.watch, self.nth)

    def __str__(self) -> str:
        verb = "WATCH" if self.watch else self.method
        return f"{verb} {self.path} (no. {self.nth})"


@dataclass(frozen=True)
class Point:
    """A fault at a request."""

    what: str
    """The key of the reference that runs."""
    way: str
    fault: str
    request: Request

    @property
    def is_to_be_got_over(self) -> bool:
        """The update has to succeed: the trouble is transient, and the package good. Of the very
        first request nobody knows yet whether there is a server at all."""
        return (
            self.way == "done"
            and self.fault not in CONTRADICTIONS
            and not (self.request.path.startswith("secrets/") and self.request.method == "GET")
        )

    def __str__(self) -> str:
        return f"{self.what}, {self.way}: {self.request} {self.fault}"


@functools.cache
def lab() -> Lab:
    """This process's own."""
    logging.getLogger().addHandler(logging.NullHandler())
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="container-update-lab-"))
    return stack.enter_context(Lab.running(Path(folder)))


# --- the requests -------------------------------------------------------------------------------

_RANDOM = re.compile(r"(?:(?<=^pods/[a-z]-)|(?<=^deployments/w-))[a-z0-9]{5}(?=/|$)")
"""Pods, and the Deployment that takes the place of another of its name."""


def record(what: str, way: str) -> list[Request]:
    """The requests of a run without faults, in order."""
    here, reference = lab(), REFERENCES[what]
    namespace = here.deploy(reference.old_files)
    request = reference.request(here, namespace, reference.ways[way])
    try:
        _run(here.kubeconfig, what, request, reference.options)
    except ContainerUpdateError:
        assert way == "undone"
    seen: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    found = []
    for request in here.embedded.requests:
        before, _, path = request.path.partition(f"/namespaces/{namespace}/")
        if before and path:
            kind = (request.method, _RANDOM.sub("?????", path), "watch=true" in request.query)
            seen[kind] += 1
            found.append(Request(*kind, seen[kind]))
    here.remove(namespace)
    return [request for request in found if not _is_renewal(request)]


def _is_renewal(request: Request) -> bool:
    """Depends on how long a run takes; has tests of its own."""
    return request.method == "PUT" and request.path.startswith("leases/")


# --- one point ----------------------------------------------------------------------------------


class MissedError(Exception):
    """The request did not come about: how far an update gets before it fails takes its chance."""


@dataclass
class Play:
    """One point, played in a namespace of its own."""

    point: Point
    cause: str = ""
    """Why the run failed, where it did."""

    def problems(self) -> list[str]:
        """What contradicts the promise; nothing where it holds."""
        here = self.lab = lab()
        self.reference = REFERENCES[self.point.what]
        self.namespace = here.deploy(self.reference.old_files)
        self.checker = Checker(here.embedded, self.namespace)
        try:
            return [f"{self.point}: {text}" for text in self._problems()]
        finally:
            here.remove(self.namespace)

    def _problems(self) -> Iterator[str]:
        if self.point.fault in KILLED:
            yield from self._killed(*KILLED[self.point.fault])
        elif self.point.fault == AWAY_FOR_LONG:
            yield from self._away_for_long()
        else:
            yield from self._in_trouble(TROUBLE[self.point.fault])
        yield from self._again()

    # --- a fault that the update itself gets over, or undoes ------------------------------------

    def _in_trouble(self, effect: Effect) -> Iterator[str]:
        problems, expected = self._under_fault(effect, lambda: self._run(self.reference.options))
        yield from problems
        if expected is not self.reference.new and self.point.is_to_be_got_over:
            yield f"it failed a good update: {self.cause}"
        yield from self._state(expected)
        yield from self.checker.left_over()

    def _away_for_long(self) -> Iterator[str]:
        """Nothing is promised while the server is away; afterwards a rollback puts it right."""
        impatient = replace(self.reference.options, retry_seconds=0.3)
        problems, expected = self._under_fault(faults.outage(1.5), lambda: self._run(impatient))
        yield from (text for text in problems if "UndoIncompleteError" not in text)
        if self.checker.left_over():
            self.lab.expire_leases(self.namespace)
            undone = self.reference.rollback(self.lab, self.namespace)
            expected = self.reference.old if undone else None
        yield from self._state(expected)

    def _request(self) -> Any:
        files = self.reference.ways[self.point.way]
        return self.reference.request(self.lab, self.namespace, files)

    def _run(self, options: Options) -> Expected:
        _run(self.lab.kubeconfig, self.point.what, self._request(), options)
        return self.reference.new

    def _under_fault(
        self, effect: Effect, run: Callable[[], Expected | None]
    ) -> tuple[list[str], Expected | None]:
        """Run with the fault: problems, and the state it says the CNF is in."""
        problems, expected = [], None
        with self.lab.script(self.namespace, self.point.request.fault(effect)) as script:
            try:
                expected = run()
            except UndoIncompleteError as error:
                problems.append(f"UndoIncompleteError: {error}")
            except ContainerUpdateError as error:
                expected, self.cause = self.reference.old, str(error)
        if not script.happened:
            raise MissedError("the request never came")
        return problems, expected

    # --- a fault that another run puts right ----------------------------------------------------

    def _killed(self, when: str, then: str) -> Iterator[str]:
        victim = Victim(self.lab, self.point.what, self._request())
        effect = {"before": faults.call_before, "after": faults.call_after}[when](victim.kill)
        problems, _ = self._under_fault(effect, victim.run)
        yield from problems
        if victim.end != -signal.SIGKILL:
            yield f"the updater was not killed: it ended with {victim.end}"
        self.lab.expire_leases(self.namespace)
        try:
            recover = self.reference.rollback if then == "rollback" else self.reference.resume
            outcome = recover(self.lab, self.namespace)
        except UndoIncompleteError as error:
            yield f"{then}: {error}"
            return
        except ContainerUpdateError:
            if self.point.way == "done":
                yield f"{then} failed"
            yield from self._state(self.reference.old)
            return
        if outcome is None:
            yield from self._state(None)
        else:
            forward = then == "resume" and self.point.way == "done"
            yield from self._state(self.reference.new if forward else self.reference.old)

    def _again(self) -> Iterator[str]:
        """Run once more, with the good package: ends with the new state."""
        self.lab.expire_leases(self.namespace)
        reference = self.reference
        request = reference.request(self.lab, self.namespace, reference.ways["done"])
        reference.run(self.lab.cluster, request, reference.options)
        yield from (f"run again: {text}" for text in self._state(reference.new))
        yield from (f"run again: {text}" for text in self.checker.left_over())

    def _state(self, expected: Expected | None) -> list[str]:
        """Differences from a state; None: from the one that it is nearer to."""
        if expected is not None:
            return self._differences(expected)
        states = (self.reference.old, self.reference.new)
        return min(map(self._differences, states), key=len)

    def _differences(self, expected: Expected) -> list[str]:
        return self.checker.differences(expected, as_before=expected is self.reference.old)


_ONE_AT_A_TIME = threading.Lock()
"""Starting a process asks for the end of the others too, and an end can be asked for only once."""


@dataclass
class Victim:
    """An update in a process of its own, to be killed."""

    lab: Lab
    what: str
    request: Any

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["kubernetes.client", __name__])
        here, there = context.Pipe()
        self._go = here
        arguments = (there, self.lab.kubeconfig, self.what, self.request)
        self._process = context.Process(target=_live, args=arguments)
        with _ONE_AT_A_TIME:
            self._process.start()

    def run(self) -> None:
        """Let it run until it ends, one way or the other."""
        self._go.send("go")
        wait([self._process.sentinel], 30)

    @property
    def end(self) -> int | None:
        """Its exit status, None while it lives."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def kill(self) -> None:
        """kill -9."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)


def _live(go: Connection, kubeconfig: str, what: str, request: Any) -> None:
    logging.getLogger().addHandler(logging.NullHandler())
    go.recv()
    _run(kubeconfig, what, request, REFERENCES[what].options)


def _run(kubeconfig: str, what: str, request: Any, options: Options) -> None:
    with connect(kubeconfig, options=options) as cluster:
        REFERENCES[what].run(cluster, request, options)


def points(what: str, way: str, requests: dict[str, list[Request]]) -> dict[str, list[Point]]:
    """The points of a way by fault, all or a fixed part of them; of the undo only the requests that
    come after the failure.

    :param requests: those of each way.
    """
    chosen = requests[way]
    if way == "undone":
        chosen = [request for request in chosen if request not in requests["done"]]
    step = 1 if COMPLETE else PARTS[what][WAYS.index(way)]
    return {
        fault: [Point(what, way, fault, request) for request in chosen[number % step :: step]]
        for number, fault in enumerate(FAULTS)
    }


def play(points: Sequence[Point]) -> list[list[str]]:
    """The problems of each point."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_play, points))


def _play(point: Point) -> list[str]:
    for _ in range(_PLAYS):
        try:
            return Play(point).problems()
        except MissedError as error:
            missed = error
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the point's result
            return [f"{point}: {type(error).__name__}: {error}"]
    return [f"{point}: {missed}"]


class Players:
    """Processes that play points, each on a cluster of its own."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    @classmethod
    @contextmanager
    def ready(cls) -> Iterator[Players]:
        """While the block runs."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
            yield cls(pool)

    def requests(self, what: str) -> dict[str, list[Request]]:
        """The requests of each way that a reference can go."""
        recorded = self._pool.map(functools.partial(record, what), WAYS)
        return dict(zip(WAYS, recorded, strict=True))

    def problems(self, points: Sequence[Point]) -> str:
        """What contradicts the promise, a line each; '' where it holds."""
        shares = [points[start::PROCESSES] for start in range(PROCESSES)]
        played = self._pool.map(play, shares)
        return "\n".join(text for share in played for found in share for text in found)


__all__ = ["FAULTS", "WAYS", "Players", "Point", "Request", "play", "record", "settled"]
