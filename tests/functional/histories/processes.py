# SPDX-License-Identifier: Apache-2.0
"""Processes of hosts, as the engine and the API server see them, and the trouble of one of them.

Each operation of a host is a thread of the test, and a process of its own to the engine: with an
identity, a clock, and a line to the API server on which one write request meets trouble.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from container_update import ClusterError
from tests.functional.change_vnfpkg.dying import Died
from tests.functional.histories.packages import GONE
from tests.internals.core import Collection, LeaseLock, ProcessIdentity, WatchEvent, utc_now
from tests.internals.core import cluster_instance as engine

LEASE_SECONDS = 1.0
"""Of the two hosts: soon free, less than an option allows. The third has what OPTIONS say."""
DEADLINE = 60.0
_MACHINE = ("histories", "pid:[1]")
_NUMBERS = itertools.count(1)

LATE = (
    "dies, and the request is late",
    "paused, and the request is late",
    "the request is late",
)
TROUBLE = (
    "none",
    "request lost",
    "answer lost",
    "dies before the request",
    "dies after the request",
    *LATE,
)


@dataclass(frozen=True)
class Event:
    """A host does something, and one of its writes meets trouble."""

    host: int
    operation: str
    """'update', 'bad update', 'install', 'uninstall', 'rollback', 'resume' or 'status'."""
    target: int = 1
    """Of an update or an installation: a package."""
    trouble: str = "none"
    nth: int = 1
    """The number of that write, from 1."""
    overtaken: int = 1
    """By how many writes of others a late request is overtaken."""
    is_known_dead: bool = True
    """Whether others can tell that the process has ended: it is a process of their host."""

    @property
    def leads_to(self) -> set[int]:
        """The state that the VNF is in afterwards, if it is another one."""
        if self.operation == "uninstall":
            return {GONE}
        return {self.target} if self.operation in ("update", "install") else set()

    def __str__(self) -> str:
        has_goal = self.operation in ("update", "bad update", "install")
        goal = f" to {self.target}" if has_goal else ""
        late = f" by {self.overtaken} writes" if "late" in self.trouble else ""
        known = "" if self.is_known_dead else ", unknown to others"
        trouble = f": {self.trouble}{late}, at write {self.nth}{known}"
        happened = f"host {self.host}: {self.operation}{goal}"
        return happened if self.trouble == "none" else happened + trouble


@dataclass
class Process:
    """One operation of a host, as the engine and the API server see it."""

    event: Event
    skew: float
    """Seconds that its host's clock is fast."""
    lease_seconds: float = LEASE_SECONDS
    number: int = field(default_factory=lambda: next(_NUMBERS))
    is_dead: bool = False
    is_stalled: bool = False
    """Its request is late, and it waits for the answer."""
    result: str = ""
    failure: BaseException | None = None
    writes: int = 0
    went: threading.Event = field(default_factory=threading.Event)
    """Set while nothing stops its requests."""
    quiet: threading.Event = field(default_factory=threading.Event)
    """Set when it waits for a late request, or has ended."""
    thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.went.set()

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(*_MACHINE, self.number, "0")

    @property
    def is_open(self) -> bool:
        return not self.result

    def now(self) -> datetime:
        return utc_now() + timedelta(seconds=self.skew)


PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


class _Lease(LeaseLock):
    """A lease by the clock of its host; the thread of a dead process ends quietly."""

    def _keep_renewing(self) -> None:
        with suppress(Died):
            super()._keep_renewing()


@contextmanager
def processes() -> Iterator[dict[int, Process]]:
    """Let the engine see the processes of histories; yield them by their number."""
    known: dict[int, Process] = {}

    def lease(*arguments: Any) -> LeaseLock:
        *others, seconds, cancel = arguments
        process = PROCESS.get()
        seconds = min(seconds, process.lease_seconds)
        return _Lease(*others, seconds, cancel, now=process.now)

    def is_gone(identity: ProcessIdentity) -> bool:
        process = known[identity.pid]
        return process.event.is_known_dead and (process.is_dead or not process.is_open)

    with ExitStack() as stack:
        for owner, name, value in (
            (engine, "LeaseLock", lease),
            (engine, "utc_now", lambda: PROCESS.get().now()),
            (ProcessIdentity, "current", lambda: PROCESS.get().identity),
            (ProcessIdentity, "is_gone", is_gone),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield known


@dataclass
class Late:
    """A request on its way."""

    sender: Process
    deliver: Callable[[], object]
    left: int
    """How many writes of others overtake it still."""


@dataclass
class Network:
    """The requests of all processes on their way to the API server."""

    late: list[Late] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, process: Process, call: Callable[[], Any], *, counts: bool) -> Any:
        """Send a write request.

        :param counts: it may meet trouble and overtake others; renewals of leases depend on time.
        """
        self.wait(process)
        if not counts:
            return call()
        with self._lock:
            process.writes += 1
            number = process.writes
            due = self._overtake(process)
        for late in due:
            late.deliver()
        self.wait(process)
        event = process.event
        if number != event.nth or event.trouble == "none":
            return call()
        return self._in_trouble(process, call)

    def _overtake(self, process: Process) -> list[Late]:
        for late in self.late:
            late.left -= late.sender is not process
        due = [late for late in self.late if late.left <= 0]
        self.late = [late for late in self.late if late.left > 0]
        return due

    def _in_trouble(self, process: Process, call: Callable[[], Any]) -> Any:
        event = process.event
        match event.trouble:
            case "request lost":
                raise ClusterError("the request is lost", transient=True)
            case "answer lost":
                call()
                raise ClusterError("the answer is lost", transient=True)
            case "dies after the request":
                with suppress(ClusterError):
                    call()
            case "dies, and the request is late":

                def deliver() -> None:
                    with suppress(ClusterError):
                        call()

                self.late.append(Late(process, deliver, event.overtaken))
            case "paused, and the request is late" | "the request is late":
                return self._stall(process, call, event)
        process.is_dead = True
        raise Died

    def _stall(self, process: Process, call: Callable[[], Any], event: Event) -> Any:
        arrives, arrived = threading.Event(), threading.Event()

        def deliver() -> None:
            arrives.set()
            assert arrived.wait(DEADLINE), "a late request is not answered"

        if event.trouble.startswith("paused"):
            process.went.clear()
        process.is_stalled = True
        self.late.append(Late(process, deliver, event.overtaken))
        process.quiet.set()
        assert arrives.wait(DEADLINE), "a late request never arrives"
        try:
            return call()
        finally:
            process.is_stalled = False
            process.quiet.clear()
            process.went.set()
            arrived.set()

    def wait(self, process: Process) -> None:
        """Return when the process may send a request."""
        if process.is_dead:
            raise Died
        if not process.went.wait(DEADLINE):
            raise AssertionError("a paused process never goes on")

    def deliver_all(self) -> None:
        """Let everything arrive that is on its way."""
        while self.late:
            self.late.pop(0).deliver()


@dataclass
class Line:
    """The cluster as one process reaches it."""

    cluster: Any
    process: Process
    network: Network

    def watch(self, collection: Collection, version: str, seconds: float) -> Iterator[WatchEvent]:
        for event in self.cluster.watch(collection, version, seconds):
            if self.process.is_dead:
                raise ClusterError("the process is dead", status=403)
            yield event

    def create(self, body: Any) -> Any:
        return self._write(lambda: self.cluster.create(body))

    def replace(self, body: Any) -> Any:
        counts = body["kind"] != "Lease"
        return self._write(lambda: self.cluster.replace(body), counts=counts)

    def dry_run(self, verb: Any, body: Any) -> Any:
        return self._write(lambda: self.cluster.dry_run(verb, body), counts=False)

    def delete(self, *arguments: Any, **more: Any) -> None:
        self._write(lambda: self.cluster.delete(*arguments, **more))

    def evict(self, *arguments: Any, **more: Any) -> None:
        self._write(lambda: self.cluster.evict(*arguments, **more))

    def _write(self, call: Callable[[], Any], *, counts: bool = True) -> Any:
        return self.network.write(self.process, call, counts=counts)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.cluster, name)
        if not callable(attribute):
            return attribute

        def read(*arguments: Any) -> Any:
            self.network.wait(self.process)
            return attribute(*arguments)

        return read
