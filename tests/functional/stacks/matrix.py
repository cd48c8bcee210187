# SPDX-License-Identifier: Apache-2.0
"""Every single fault at every single request of a change of stacks, and what must hold then.

Each point has an embedded cloud of its own, so that many run at once; on a real cloud a proxy of
its own makes the fault, one point after the other, at a write. A stand-in for the load balancer
records what the coordination scripts send; in the end it has to match the servers.
"""

from __future__ import annotations

import collections
import logging
import os
import re
import signal
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from aiohttp import web

from container_update import ContainerUpdateError, Options, UndoIncompleteError
from container_update.emulator import faults
from container_update.emulator.faults import Effect, Fault, FaultedRequest, Faults
from container_update.emulator.heat import CloudFaults, EmbeddedOpenStack
from container_update.emulator.heat.api_errors import OpenStackApiError
from tests import forks
from tests.circles import Circle
from tests.functional.stacks.balancer import Balancer
from tests.functional.stacks.change import change
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.proxy import HEAT, CloudProxy
from tests.functional.stacks.site import REAL, Site
from tests.functional.stacks.vnf import PATIENCE, Vnf
from tests.internals.core import NoWayBackError, process
from tests.internals.stacks import BLUE_GREEN, ROLLING, StackRequest, connect

SAMPLED_STEP = 80
"""In the thorough circle every so many requests have each fault."""
AT_ONCE = 1 if REAL else 4
"""How many points one process runs at the same time."""
_ATTEMPTS = 4
_ANSWER_SECONDS = 0.002
"""How long the cloud takes for a resource: now and then a stack is seen IN_PROGRESS."""

LONG = 600 if REAL else 20
OPTIONS = Options(timeout=LONG, undo_timeout=LONG, retry_seconds=10, lease_seconds=30)
WAYS = tuple(f"{kind} {end}" for kind in (BLUE_GREEN, ROLLING) for end in ("done", "undone"))
"""A change that goes well, and one whose last script fails, so that it goes back."""


def refused(status: int, kind: str, *, retry_after: int | None = None) -> Effect:
    """Answered so, without effect."""
    return faults.raise_error(OpenStackApiError(status, kind, "injected", retry_after=retry_after))


async def answered_504_after(faulted: FaultedRequest) -> web.StreamResponse:
    """A proxy loses patience with a request that takes effect."""
    await faulted.handler(faulted.request)
    raise OpenStackApiError(504, "GatewayTimeout", "injected")


TROUBLE: dict[str, Effect] = {
    "dropped before it takes effect": faults.drop_before,
    "dropped after it took effect": faults.drop_after,
    "delayed": faults.delay(0.1),
    "answered 409": refused(409, "ActionInProgress"),
    "answered 429 with Retry-After": refused(429, "TooManyRequests", retry_after=1),
    "answered 500": refused(500, "InternalServerError"),
    "answered 503": refused(503, "ServiceUnavailable"),
    "answered 504 after it took effect": answered_504_after,
    "cloud away for a while": faults.outage(0.4),
}
EXPIRED = "token expired"
KILLED = {
    f"killed {when}, then {then}": (when, then)
    for when in ("before", "after")
    for then in ("resume", "rollback")
}
FAULTS = (*TROUBLE, EXPIRED, *KILLED)


@dataclass(frozen=True)
class Request:
    """One request of a change, identified in the same way in every run."""

    method: str
    path: str
    """A pattern: a question mark for each letter that is another one in another run."""
    nth: int
    """Of its kind, from 1."""

    @property
    def is_begin(self) -> bool:
        """Nobody knows yet whether there is a cloud, and one that never answered is not waited
        for."""
        is_first = self.nth == 1 and self.method == "GET" and self.path.endswith("/stacks")
        return "/identity" in self.path or is_first

    def __str__(self) -> str:
        return f"{self.method} {self.path} (no. {self.nth})"


@dataclass(frozen=True)
class Point:
    """A fault at a request."""

    way: str
    fault: str
    request: Request

    @property
    def is_good(self) -> bool:
        """Whether the change has to succeed in spite of the fault."""
        transient = self.fault != "answered 409" and not self.request.is_begin
        return transient and self.way.endswith(" done")

    def __str__(self) -> str:
        return f"{self.way}: {self.request} {self.fault}"


# --- the requests -------------------------------------------------------------------------------

_RANDOM = re.compile(
    r"(?<=\.)[0-9a-f]{8}(?=[-/]|$)"  # what Blue-Green puts behind the name
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=/)[0-9a-f]{32}(?=/)"  # the project
    r"|(?<=-)[a-z2-7]{12}(?=[-/]|$)"  # a group's member, a nested stack
)


def record(way: str) -> list[Request]:
    """Return the requests of a change without faults, in order."""
    with Lab.running(Point(way, "", Request("", "", 0))) as lab:
        before = len(lab.cloud.requests)
        lab.run()
        counts: collections.Counter[tuple[str, str]] = collections.Counter()
        requests = []
        for request in lab.cloud.requests[before:]:
            kind = request.method, _RANDOM.sub(lambda match: "?" * len(match[0]), request.path)
            counts[kind] += 1
            requests.append(Request(*kind, counts[kind]))
    return requests


WRITES = {
    f"{BLUE_GREEN} done": 10,
    f"{BLUE_GREEN} undone": 8,
    f"{ROLLING} done": 13,
    f"{ROLLING} undone": 11,
}
"""How many writes to Heat a change has. Heartbeats come on top: a real cloud takes long enough."""
_APART = 3
"""No divisor of these numbers, so that each write of a way has a fault."""


def write_of_real_cloud(way: str, fault: str) -> Point:
    """Return the point of a fault and a way that a real cloud has: another write for each, as far
    as there are so many, from the journal's creation to its deletion.

    What is read there, and how often, is different in each run.
    """
    nth = 1 + _APART * FAULTS.index(fault) % WRITES[way]
    return Point(way, fault, Request("[!G]*", f"{HEAT}/*", nth))


def points(way: str, requests: Sequence[Request], circle: Circle) -> dict[str, list[Point]]:
    """Return the points of a way by fault, all or a fixed part of them; in the
    default circle one of each fault. The faults begin at requests all over the change: what comes
    after its first script has some too. Because a stack is busy Heat refuses only writes."""
    chosen_points = {}
    for number, fault in enumerate(FAULTS):
        chosen = [
            request for request in requests if fault != "answered 409" or request.method != "GET"
        ]
        step = 1 if circle is Circle.COMPLETE else SAMPLED_STEP
        start = number * len(chosen) // len(FAULTS) % step
        chosen_points[fault] = [Point(way, fault, request) for request in chosen[start::step]]
        if circle is Circle.DEFAULT:
            chosen_points[fault] = chosen_points[fault][:1]
    return chosen_points


# --- one point ----------------------------------------------------------------------------------


class MissedError(Exception):
    """The request did not come about: how often a stack is read until it is done takes its chance.
    One that writes always comes."""


@dataclass
class Lab:
    """A cloud with the VNF of one point."""

    point: Point
    cloud: EmbeddedOpenStack | CloudProxy
    vnf: Vnf
    request: StackRequest
    balancer: Balancer
    before: Any = field(default=None)

    @classmethod
    @contextmanager
    def running(cls, point: Point) -> Iterator[Lab]:
        """With the old package's VNF."""
        logging.getLogger().addHandler(logging.NullHandler())
        with (
            tempfile.TemporaryDirectory(prefix="container-update-lab-") as folder,
            _cloud() as cloud,
            connect(auth=cloud.auth(), options=OPTIONS) as heat,
        ):
            site = Site.of_cloud(heat) if REAL else Site()
            instance_id = str(uuid.uuid4()) if REAL else "1"
            vnf = Vnf(heat, Path(folder), site, OPTIONS, instance_id)
            try:
                vnf.instantiate("group")
                new = vnf.package("group", site.images[1])
                request = vnf.request(new, point.way.partition(" ")[0])
                balancer = Balancer(str(Path(folder, "messages")), point.way.endswith(" undone"))
                yield cls(point, cloud, vnf, request, balancer, (vnf.body(), vnf.servers()))
            finally:
                vnf.leave_real_cloud()

    def run(self) -> bool:
        """Change the package and return whether it succeeded."""
        return _change(self.cloud.auth(), self.request, self.balancer)

    # --- the faults -----------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Return what contradicts the promise."""
        problems = self._killed() if self.point.fault in KILLED else self._in_trouble()
        return [*problems, *self._again()]

    @contextmanager
    def _fault(self, effect: Effect) -> Iterator[None]:
        request = self.point.request
        script = Faults(Fault(effect, request.method, request.path, nth=request.nth))
        self.cloud.middlewares.append(script)
        try:
            yield
        finally:
            self.cloud.middlewares.remove(script)
        if not script.happened:
            raise MissedError("the request never came")

    async def _expired(self, faulted: FaultedRequest) -> web.StreamResponse:
        if isinstance(self.cloud, CloudProxy):
            await self.cloud.revoke_token_of(faulted.request)
        else:
            self.cloud.keystone.expire_tokens()
        return await faulted.handler(faulted.request)

    def _in_trouble(self) -> Iterator[str]:
        effect = TROUBLE.get(self.point.fault, self._expired)
        succeeded = False
        with self._fault(effect):
            try:
                succeeded = self.run()
            except UndoIncompleteError as error:
                yield f"not undone: {error}"
        if not succeeded and self.point.is_good:
            yield "it failed a valid change"
        yield from self.state(is_new=succeeded)

    def _killed(self) -> Iterator[str]:
        when, then = KILLED[self.point.fault]
        victim = Victim(self)
        effect = {"before": faults.call_before, "after": faults.call_after}[when](victim.kill)
        with self._fault(effect):
            victim.run()
        if victim.end != -signal.SIGKILL:
            yield f"it was not killed: it ended with {victim.end}"
        is_new: bool | None = then == "resume" and not self.balancer.fails
        instance = self.vnf.instance(coordinate=self.balancer, clock=in_an_hour())
        try:
            outcome = instance.recover(back=then == "rollback")
            is_new = is_new if outcome else None
        except NoWayBackError:
            instance.recover()
            is_new = True
        except UndoIncompleteError as error:
            yield f"{then}: {error}"
        except ContainerUpdateError as error:
            if is_new:
                yield f"{then} failed: {error}"
            is_new = False
        yield from self.state(is_new=is_new)

    def _again(self) -> Iterator[str]:
        """Run the good change once more, which has to end with the new state."""
        if self.request.stack not in self.vnf.stacks():
            return  # Blue-Green has done it
        _change(self.cloud.auth(), self.request, replace(self.balancer, fails=False))
        yield from (f"run again: {text}" for text in self.state(is_new=True))

    # --- the promise ----------------------------------------------------------------------------

    def state(self, *, is_new: bool | None) -> list[str]:
        """Return the differences from the new or the old state; None: from the nearer one."""
        stacks = self.vnf.stacks()
        if len(stacks) != 1:
            return [f"expected one stack, found {stacks}"]
        if is_new is None:
            return min(self._differences(True), self._differences(False), key=len)
        return self._differences(is_new)

    def _differences(self, is_new: bool) -> list[str]:
        stack, body, servers = self.vnf.live_stack(), self.vnf.body(), self.vnf.servers()
        old_body, old_servers = self.before
        image = self.vnf.site.images[is_new]
        conditions = {
            f"stack is {stack['stack_status']}": stack["stack_status"].endswith("_COMPLETE"),
            f"servers are {servers}": list(servers.values()) == [image] * 2,
            f"parameters are {body.parameters}": body.parameters["image"] == image,
        }
        in_place = self.request.upgrade_type == ROLLING
        if not is_new:
            conditions["the old templates and parameters are others"] = body == old_body
        if in_place or not is_new:
            conditions[f"other servers: {servers}"] = set(servers) == set(old_servers)
        traffic = self.balancer.traffic()
        if in_place:
            expected = {"new"} if is_new else {"old"}
            right = {role for role, _ in traffic.values()} <= expected
            right = right and (len(traffic) == 2 or not is_new)
        else:
            _, serving_stack = traffic.get("", ("old", self.request.stack))
            right = serving_stack == stack["stack_name"]
        conditions[f"traffic goes to {traffic}"] = right
        return [text for text, holds in conditions.items() if not holds]


def _cloud() -> EmbeddedOpenStack | CloudProxy:
    """Return the point's cloud, to be opened."""
    return (
        CloudProxy(REAL) if REAL else EmbeddedOpenStack(faults=CloudFaults(seconds=_ANSWER_SECONDS))
    )


def _change(auth: dict[str, str], request: StackRequest, balancer: Balancer) -> bool:
    with connect(auth=auth, options=OPTIONS) as heat:
        try:
            change(request, heat, OPTIONS, coordinate=balancer)
        except UndoIncompleteError:
            raise
        except ContainerUpdateError:
            return False
    return True


_PROCESS_LOCK = threading.Lock()
"""Starting a process also polls the others' exit statuses, which can be read only once."""


class Victim:
    """A change in a process of its own, to be killed."""

    def __init__(self, lab: Lab) -> None:
        context = forks.context()
        self._go, child_end = context.Pipe()
        known = dict(process._KNOWN)  # the VNFDs: a process of its own reads each of them
        arguments = (child_end, known, lab.cloud.auth(), lab.request, lab.balancer)
        self._process = context.Process(target=_live, args=arguments)
        with _PROCESS_LOCK:
            self._process.start()

    def run(self) -> None:
        """Let it run until it ends or is killed."""
        self._go.send("go")
        wait([self._process.sentinel], PATIENCE)

    @property
    def end(self) -> int | None:
        """Its exit status, None while it lives."""
        with _PROCESS_LOCK:
            return self._process.exitcode

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)


def _live(
    go: Connection,
    known: dict[bytes, bytes],
    auth: dict[str, str],
    request: StackRequest,
    balancer: Balancer,
) -> None:
    logging.getLogger().addHandler(logging.NullHandler())
    process._KNOWN.update(known)
    go.recv()
    _change(auth, request, balancer)


def run_points(points: Sequence[Point]) -> list[list[str]]:
    """Run the points and return the problems of each."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_run_point, points))


def _run_point(point: Point) -> list[str]:
    for _ in range(_ATTEMPTS):
        try:
            with Lab.running(point) as lab:
                return [f"{point}: {text}" for text in lab.problems()]
        except MissedError as error:
            missed = error
        except Exception as error:  # noqa: BLE001 - any error is the point's result
            return [f"{point}: {type(error).__name__}: {error}"]
    return [] if point.request.method == "GET" else [f"{point}: {missed}"]
