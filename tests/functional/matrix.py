# SPDX-License-Identifier: Apache-2.0
"""Every single fault at every single request of a run: the points, and what a point must show.

What runs is a reference: an update, a change of the package by one of the strategies, the
installation of a package, or its end.

Points are independent of each other, so that many run at once: some in each of a few
processes, each of which has an embedded cluster of its own, or a proxy in front of the real one.
"""

from __future__ import annotations

import atexit
import collections
import functools
import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from container_update import ContainerUpdateError, Options, UndoIncompleteError, connect
from container_update.emulator import faults
from container_update.emulator.faults import Effect, Fault
from container_update.emulator.http_server import RequestRecord
from tests import forks, garbage
from tests.circles import Circle
from tests.functional import scripts
from tests.functional.promise import Checker, Expected, settled
from tests.functional.real import REAL
from tests.functional.reference_change import CHANGES
from tests.functional.reference_lifecycle import LIFECYCLE
from tests.functional.reference_surroundings import REFUSED, SURROUNDINGS
from tests.functional.reference_update import UPDATE, Lab, Reference
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import LeaseLock, cluster_instance, keeping, utc_now

REFERENCES: dict[str, Reference[Any]] = {
    "update": UPDATE,
    **CHANGES,
    **LIFECYCLE,
    **SURROUNDINGS,
    **REFUSED,
}
WAYS = ("done", "undone")
"""A run that goes well, and one that fails near its end and goes back."""

_SPREAD = 7
"""Has the points of one fault begin at other requests than those of the next one; a prime number,
so that every request comes."""

_FIRST = 24
"""The default circle has one of so many points of the thorough one."""

_ATTEMPTS = 5
PROCESSES = 2
AT_ONCE = 6
"""How many points one process runs at the same time: most of a point's time is waiting."""

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
"""Faults that the update itself has to tolerate or to undo."""

CONTRADICTIONS = ("answered 409", "answered 410")
"""Not transient: an update may fail because of them."""

AWAY_FOR_LONG = "server away for longer than is tried"

KILLED = {
    f"killed {when}, then {then}": (when, then)
    for when in ("before", "after")
    for then in ("resume", "rollback")
}
"""Faults after which another run has to finish or undo the update."""

FAULTS = (*TROUBLE, AWAY_FOR_LONG, *KILLED)


@dataclass(frozen=True)
class Request:
    """One request of a run, identified independently of the order of the requests."""

    method: str
    path: str
    """Below the namespace, otherwise from the first '/'; with '?????' for the random part of a
    name, and NAMESPACE."""
    watch: bool
    nth: int
    """Of its kind, from 1."""
    is_dry: bool = False
    """It asks what a write would do: it changes nothing, and nobody holds a lease for it."""

    @classmethod
    def kind_of(cls, request: RequestRecord, namespace: str) -> tuple[str, str, bool] | None:
        """Return the method, path and watch of a request; None: it is not about the namespace, nor
        about what is beside it."""
        if f"/{namespace}" not in request.path:
            return None
        _, below, path = request.path.partition(f"/namespaces/{namespace}/")
        if not below:
            path = request.path.replace(namespace, "NAMESPACE")
        return request.method, _RANDOM.sub("?????", path), "watch=true" in request.query

    def fault(self, effect: Effect, namespace: str) -> Fault:
        """Return a fault of this request."""
        path = self.path.replace("NAMESPACE", namespace)
        below = "" if path.startswith("/") else f"*/namespaces/{namespace}/"
        return Fault(effect, self.method, below + path, self.watch, self.nth)

    def __str__(self) -> str:
        verb = "WATCH" if self.watch else self.method
        return f"{verb} {self.path} (no. {self.nth})"


@dataclass(frozen=True)
class Point:
    """A fault at a request."""

    reference_name: str
    """The key of the reference that runs."""
    way: str
    fault: str
    request: Request

    @property
    def must_succeed(self) -> bool:
        """Whether the update has to succeed: the fault is transient and the package good.

        The very first request may fail, since it is not known yet whether there is a server.
        """
        return (
            self.way == "done"
            and self.fault not in CONTRADICTIONS
            and self.request != Request("GET", "secrets", watch=False, nth=1)
        )

    def __str__(self) -> str:
        return f"{self.reference_name}, {self.way}: {self.request} {self.fault}"


@functools.cache
def lab() -> Lab:
    """Return this process's lab."""
    garbage.leave_modules_alone()
    logging.getLogger().addHandler(logging.NullHandler())
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="container-update-lab-"))
    return stack.enter_context(Lab.running(Path(folder)))


@contextmanager
def arranged_for(reference_names: Iterable[str]) -> Iterator[None]:
    """Have journals of this process cut as these references ask for, and their scripts end at once,
    while the block runs."""
    (size,) = {REFERENCES[name].part_bytes for name in reference_names} or {keeping.PART_BYTES}
    with mock.patch.object(keeping, "PART_BYTES", size), scripts.ended_at_once():
        yield


# --- the requests -------------------------------------------------------------------------------

_RANDOM = re.compile(r"(?:(?<=^pods/[a-z]-)|(?<=^deployments/w-))[a-z0-9]{5}(?=/|$)")
"""Pods, and the Deployment that replaces another one of its name."""


def record(reference_name: str, way: str) -> list[Request]:
    """Return the requests of a run without faults, in order."""
    cluster_lab, reference = lab(), REFERENCES[reference_name]
    namespace = reference.deploy(cluster_lab)
    cluster_lab.server.clear_requests()
    request = reference.request(cluster_lab, namespace, reference.ways[way])
    try:
        with arranged_for([reference_name]):
            _run(cluster_lab.kubeconfig, reference_name, request, reference.options)
    except ContainerUpdateError:
        assert way == "undone" or reference_name in REFUSED
    counts: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    requests = []
    for sent in cluster_lab.server.requests:
        kind = Request.kind_of(sent, namespace)
        if kind is not None:
            counts[kind] += 1
            requests.append(Request(*kind, counts[kind], "dryRun=All" in sent.query))
    cluster_lab.remove(namespace)
    return [request for request in requests if not _depends_on_time(request)]


def _depends_on_time(request: Request) -> bool:
    """Tell whether it depends on how long a run takes: a renewal, which has tests of its own, or
    what a real cluster is asked about pods that are late."""
    renews = request.method == "PUT" and request.path.startswith("leases/")
    return renews or (bool(REAL) and (request.method, request.path) == ("GET", "events"))


PointT = TypeVar("PointT", bound=Point)


# --- one point ----------------------------------------------------------------------------------


class MissedError(Exception):
    """The request was not sent: how far an update gets before it fails varies."""


@dataclass
class PointRun:
    """The run of one point, in a namespace of its own."""

    point: Point
    cause: str = ""
    """Why the run failed, if it did."""

    def problems(self) -> list[str]:
        """Return what contradicts the promise; nothing if it holds."""
        self.lab = lab()
        self.reference = REFERENCES[self.point.reference_name]
        self.namespace = self.reference.deploy(self.lab)
        self.checker = Checker(self.lab.server, self.namespace)
        try:
            return [f"{self.point}: {text}" for text in self._problems()]
        finally:
            self.lab.remove(self.namespace)

    def _problems(self) -> Iterator[str]:
        if self.point.fault in KILLED:
            yield from self._killed(*KILLED[self.point.fault])
        elif self.point.fault == AWAY_FOR_LONG:
            yield from self._away_for_long()
        else:
            yield from self._in_trouble(TROUBLE[self.point.fault])
        yield from self._again()

    # --- a fault that the update itself tolerates or undoes -------------------------------------

    def _in_trouble(self, effect: Effect) -> Iterator[str]:
        problems, expected = self._under_fault(effect, lambda: self._run(self.reference.options))
        yield from problems
        if expected is not self.reference.new and self.point.must_succeed:
            yield f"it failed a valid update: {self.cause}"
        yield from self._state(expected)
        yield from settled(self.checker.left_over)

    def _away_for_long(self) -> Iterator[str]:
        """Nothing is promised during the outage; afterwards a rollback restores the old state."""
        impatient = replace(self.reference.options, retry_seconds=0.3)
        problems, expected = self._under_fault(faults.outage(1.5), lambda: self._run(impatient))
        yield from (text for text in problems if "UndoIncompleteError" not in text)
        if self.checker.left_over():
            self.lab.free_leases(self.namespace)
            undone = self.reference.rollback(self.lab, self.namespace)
            expected = self.reference.old if undone else None
        yield from self._state(expected)

    def _request(self) -> Any:
        files = self.reference.ways[self.point.way]
        return self.reference.request(self.lab, self.namespace, files)

    def _run(self, options: Options) -> Expected:
        _run(self.lab.kubeconfig, self.point.reference_name, self._request(), options)
        return self.reference.new

    def _under_fault(
        self, effect: Effect, run: Callable[[], Expected | None]
    ) -> tuple[list[str], Expected | None]:
        """Run with the fault; return problems and the state that the run reports."""
        problems, expected = [], None
        fault = self.point.request.fault(effect, self.namespace)
        with self.lab.script(self.namespace, fault) as script:
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
        options = self.reference.options
        victim = Victim(self.lab, self.point.reference_name, self._request(), options)
        effect = {"before": faults.call_before, "after": faults.call_after}[when](victim.kill)
        problems, _ = self._under_fault(effect, victim.run)
        yield from problems
        request = self.point.request  # that of the journal is watched beside what ends the run
        is_beside = request.watch and request.path.endswith("secrets")
        if victim.end != -signal.SIGKILL and not is_beside:
            yield f"the updater was not killed: it ended with {victim.end}"
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
        yield from settled(self.checker.left_over)

    def _again(self) -> Iterator[str]:
        """Run once more with the good package, which has to end with the new state."""
        reference = self.reference
        reference.make_room(self.lab, self.namespace)
        request = reference.request(self.lab, self.namespace, reference.ways["done"])
        reference.run(self.lab.cluster, request, reference.options)
        yield from (f"run again: {text}" for text in self._state(reference.new))
        yield from (f"run again: {text}" for text in self.checker.left_over())

    def _state(self, expected: Expected | None) -> list[str]:
        """Return the differences from a state; None: from the nearer one."""
        if expected is not None:
            return self._differences(expected)
        states = (self.reference.old, self.reference.new)
        return min(map(self._differences, states), key=len)

    def _differences(self, expected: Expected) -> list[str]:
        is_old = expected is self.reference.old
        differences = self.checker.differences(expected, as_before=is_old)
        return differences or self.reference.untruths(self.lab, self.namespace, expected)


_PROCESS_LOCK = threading.Lock()
"""Starting a process also polls the others' exit statuses, which can be read only once."""


@dataclass
class Victim:
    """An update in a process of its own, to be killed."""

    lab: Lab
    reference_name: str
    request: Any
    options: Options
    skew: timedelta = timedelta()
    """What its clock differs by."""

    def __post_init__(self) -> None:
        context = forks.context()
        parent_end, child_end = context.Pipe()
        self._go = parent_end
        run = (self.lab.kubeconfig, self.reference_name, self.request, self.options)
        self._process = context.Process(target=_live, args=(child_end, self.skew, *run))
        with _PROCESS_LOCK:
            self._process.start()

    def run(self) -> None:
        """Let it run until it ends or is killed."""
        self._go.send("go")
        wait([self._process.sentinel], 60)

    @property
    def end(self) -> int | None:
        """Its exit status, None while it lives."""
        with _PROCESS_LOCK:
            return self._process.exitcode

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)


def _live(
    go: Connection,
    skew: timedelta,
    kubeconfig: str,
    reference_name: str,
    request: Any,
    options: Options,
) -> None:
    logging.getLogger().addHandler(logging.NullHandler())
    skewed = functools.partial(LeaseLock, now=lambda: utc_now() + skew)
    go.recv()
    try:
        with (
            arranged_for([reference_name]),
            mock.patch.object(cluster_instance, "LeaseLock", skewed),
        ):
            _run(kubeconfig, reference_name, request, options)
    except ContainerUpdateError as error:
        os._exit(error.exit_status)


def _run(kubeconfig: str, reference_name: str, request: Any, options: Options) -> None:
    with connect(kubeconfig, options=options) as cluster:
        REFERENCES[reference_name].run(cluster, request, options)


@dataclass(frozen=True)
class Row:
    """A way of a reference, with every fault at every request."""

    reference_name: str
    way: str
    step: int
    """In the thorough circle every so many requests have each fault."""
    least: int
    """How many requests there are at least."""

    def points(self, requests: dict[str, list[Request]], circle: Circle) -> list[Point]:
        """Return the points of a circle; of an undo only the requests after the failure.

        :param requests: those of each way.
        """
        chosen = requests[self.way]
        if self.way == "undone" and self.reference_name not in REFUSED:
            chosen = [request for request in chosen if request not in requests["done"]]
        assert len(chosen) >= self.least, f"{self}: {len(chosen)} requests"
        step = 1 if circle is Circle.COMPLETE else self.step
        points = [
            Point(self.reference_name, self.way, fault, request)
            for number, fault in enumerate(FAULTS)
            for request in chosen[number * _SPREAD % step :: step]
        ]
        if circle is Circle.DEFAULT:
            return points[ROWS.index(self) % min(_FIRST, len(points)) :: _FIRST]
        return points

    def __str__(self) -> str:
        return f"{self.reference_name}, {self.way}"


ROWS = (
    Row("update", "done", step=32, least=30),
    Row("update", "undone", step=32, least=20),
    Row(BLUE_GREEN, "done", step=64, least=40),
    Row(BLUE_GREEN, "undone", step=12, least=10),
    Row(CANARY, "done", step=48, least=20),
    Row(CANARY, "undone", step=12, least=7),
    Row(ROLLING, "done", step=32, least=30),
    Row(ROLLING, "undone", step=10, least=7),
    Row("install", "done", step=64, least=40),
    Row("install", "undone", step=24, least=20),
    Row("uninstall", "done", step=40, least=40),
    Row("uninstall", "undone", step=24, least=15),
    *(Row(name, "done", step=128, least=35) for name in SURROUNDINGS),
    *(Row(name, "undone", step=128, least=24) for name in SURROUNDINGS),
    *(Row(name, "undone", step=16, least=10) for name in REFUSED),
)


def run_all(
    points: Sequence[PointT], problems_of: Callable[[PointT], list[str]]
) -> list[list[str]]:
    """Run points, several at the same time; return the problems of each."""

    def run(point: PointT) -> list[str]:
        try:
            return problems_of(point)
        except Exception as error:  # noqa: BLE001 - any error is the point's result
            return [f"{point}: {type(error).__name__}: {error}"]

    names = {point.reference_name for point in points}
    with arranged_for(names), ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, points))


def run_points(points: Sequence[Point]) -> list[list[str]]:
    """Run points of the matrix; return the problems of each."""
    return run_all(points, _problems_of)


def _problems_of(point: Point) -> list[str]:
    for _ in range(_ATTEMPTS - 1):
        with suppress(MissedError):
            return PointRun(point).problems()
    return PointRun(point).problems()


class Workers:
    """Processes that run points, each on a server of its own."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    @classmethod
    @contextmanager
    def ready(cls) -> Iterator[Workers]:
        """Yield the processes while the block runs."""
        with ProcessPoolExecutor(PROCESSES, mp_context=forks.context()) as pool:
            yield cls(pool)

    def requests(self, reference_name: str) -> dict[str, list[Request]]:
        """Return the requests of a reference for each way."""
        requests = self._pool.map(functools.partial(record, reference_name), WAYS)
        return dict(zip(WAYS, requests, strict=True))

    def problems(self, points: Sequence[Point]) -> str:
        """Return what contradicts the promise, a line each; '' if it holds."""
        shares = [points[start::PROCESSES] for start in range(PROCESSES)]
        results = self._pool.map(run_points, shares)
        return "\n".join(text for share in results for lines in share for text in lines)
