# SPDX-License-Identifier: Apache-2.0
"""A host that lost its hold: its last request arrives late, or it wakes up and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from container_update import (
    ClusterError,
    ContainerUpdateError,
    LeaseLostError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
)
from tests.circles import Circle, in_circles
from tests.functional.stacks.change import change
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.matrix import AT_ONCE, OPTIONS, WAYS, Lab, Point, Request
from tests.functional.stacks.site import REAL
from tests.internals.core import Json, NoWayBackError
from tests.internals.stacks import ROLLING, Heat, connect

SAMPLED_STEP = 299
"""Odd: every second point cancels an update."""
AWAKE_STEP = 29
MOST_REQUESTS = 110
"""More than a host sends that takes over."""
MOST_WRITES = 11

PointT = TypeVar("PointT")
THEN = ("resume", "rollback")
ENOUGH = 1 if REAL else 3
"""How many points of a way have to come about. A real cloud has one, which takes minutes."""
JOURNAL = "container-update-"


class KilledError(BaseException):
    """Stands for SIGKILL: no handler of the process runs."""


@dataclass(frozen=True)
class Sent:
    """A request to Heat."""

    method: str
    path: str
    body: Json | None = None

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_journals(self) -> bool:
        name = str((self.body or {}).get("stack_name", self.path))
        return JOURNAL in name

    def sees(self, other: Sent) -> bool:
        """Return whether this one looks at the stack that the other one writes to."""
        target = other.path.removesuffix("/actions")
        if other.path == "/stacks":
            target += f"/{(other.body or {})['stack_name']}"
        return self.method == "GET" and self.path.startswith(target)


Before = Callable[[int, Sent], object]


@dataclass
class Host:
    """A host whose requests are counted, from 1, and can be stopped."""

    heat: Heat
    before: Before
    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        send = self.heat._send

        def observed(method: str, path: str, body: Json | None) -> Json:
            request = Sent(method, path.partition("?")[0], body)
            self.sent.append(request)
            self.before(len(self.sent), request)
            return send(method, path, body)

        self.heat._send = observed  # type: ignore[method-assign]


@contextmanager
def hosts(lab: Lab, *before: Before) -> Iterator[list[Host]]:
    """Connect hosts to the lab's cloud."""
    auth = lab.cloud.auth()
    with connect(auth=auth, options=OPTIONS) as one, connect(auth=auth, options=OPTIONS) as two:
        yield [Host(heat, what) for heat, what in zip((one, two), before, strict=True)]


def take_over(lab: Lab, heat: Heat, then: str) -> list[str]:
    """Finish or undo what another host left; return the error of that."""
    instance = replace(lab.vnf.instance(lab.balancer, clock=in_an_hour()), service=heat)
    try:
        try:
            instance.recover(back=then == "rollback")
        except NoWayBackError:
            instance.recover()
    except UpdateFailedError as error:
        undone = not isinstance(error, UndoIncompleteError)
        return [] if undone and lab.balancer.fails else [f"{type(error).__name__}: {error}"]
    except UpdateInProgressError:
        return take_over(lab, lab.vnf.heat, then)  # a late request was a sign of life
    except ContainerUpdateError as error:
        return [f"{type(error).__name__}: {error}"]
    return []


def lab_of(way: str) -> Point:
    return Point(way, "", Request("", "", 0))


# --- a request that arrives late ------------------------------------------------------------------


@dataclass(frozen=True)
class Late:
    """The last request of a host, and when it arrives."""

    way: str
    write: int
    """Which of the host's writes it is, from 1."""
    then: str
    at: int
    """Before which request of the host that takes over; negative: before which look of that host
    at the request's stack."""
    cancels: bool = False
    """Its last write took effect; a request to cancel it is late."""

    def problems(self) -> list[str] | None:
        """Return what contradicts the promise; None: it was too late, or there is no such write."""
        with Lab.running(lab_of(self.way)) as lab:
            problems = self._run(lab)
        return problems and [f"{self}: {text}" for text in problems]

    def _run(self, lab: Lab) -> list[str] | None:
        writes: list[Sent] = []
        late: list[Sent] = []
        messenger, arrived = lab.vnf.heat, 0

        def last(_: int, request: Sent) -> None:
            if late:
                raise KilledError
            if request.is_write:
                writes.append(request)
            if request.is_write and len(writes) == self.write:
                late.append(request)
                if not self.cancels:
                    raise KilledError

        def arrives(number: int, _: Sent) -> None:
            nonlocal arrived
            request = late[0]
            looks = sum(sent.sees(request) for sent in other.sent)
            if arrived or (number < self.at if self.at > 0 else looks < -self.at):
                return
            if self.cancels:
                action = {"cancel_without_rollback": None}
                request = Sent("POST", f"{request.path}/actions", action)
            try:
                messenger._send(request.method, request.path, request.body)
            except ClusterError as error:
                if error.reason == "ActionInProgress":
                    return  # a Heat with convergence accepts it, and it wins: it arrives afterwards
            arrived = number

        with hosts(lab, last, arrives) as (lost, other):
            with suppress(ContainerUpdateError, KilledError):
                change(lab.request, lost.heat, OPTIONS, coordinate=lab.balancer)
            if not late or (self.cancels and late[0].method != "PUT"):
                return None
            problems = take_over(lab, other.heat, self.then)
            if not arrived:
                return None
            looks = (number for number, sent in enumerate(other.sent, 1) if sent.sees(late[0]))
            if not late[0].is_journals and arrived > max(looks, default=0):
                return None  # after the last look at its stack: Heat cannot refuse it
        if late[0].method == "POST" and late[0].is_journals:
            problems += take_over(lab, messenger, "rollback")  # a change that did nothing so far
        return [*problems, *lab.state(is_new=None)]


@pytest.mark.parametrize("way", WAYS[::2])
def test_what_arrives_after_the_undo_of_its_stack_is_undone_too(way: str) -> None:
    assert Late(way, write=2, then="rollback", at=-2).problems() == []


def test_a_deletion_that_may_arrive_late_leaves_no_way_back() -> None:
    """With the way back both stacks would be gone."""
    deletion = 7
    assert Late("Blue-Green done", deletion, "rollback", at=-1).problems() == []


def skip_on_real_cloud(circle: Circle) -> None:
    """Leave the complete circle to the embedded cloud."""
    if REAL and circle is Circle.COMPLETE:
        pytest.skip("the second circle has the points of a real cloud: each takes minutes")


def run(play: Callable[[PointT], list[str] | None], points: Sequence[PointT]) -> list[list[str]]:
    """Return the problems of each point that came about."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [problems for problems in pool.map(play, points) if problems is not None]


@pytest.mark.parametrize("way", WAYS)
@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_a_request_that_arrives_late_spoils_nothing(way: str, circle: Circle) -> None:
    skip_on_real_cloud(circle)
    points = [
        Late(way, write, then, at, cancels)
        for write in range(1, MOST_WRITES)
        for then in THEN
        for at in range(1, MOST_REQUESTS)
        for cancels in (False, True)
    ]
    if circle is not Circle.COMPLETE:
        points = points[WAYS.index(way) :: SAMPLED_STEP]
    if REAL:
        then = THEN[WAYS.index(way) % 2]
        points = [Late(way, write=2, then=then, at=3, cancels=way.startswith(ROLLING))]
    results = run(Late.problems, points)
    assert len(results) >= ENOUGH
    assert "\n".join(problem for problems in results for problem in problems) == ""


# --- a host that wakes up -------------------------------------------------------------------------


@dataclass(frozen=True)
class Awake:
    """A host that sleeps before a request while another one takes over and ends the change."""

    way: str
    at: int
    then: str

    def problems(self) -> list[str] | None:
        """Return what contradicts the promise; None: there is no such request."""
        with Lab.running(lab_of(self.way)) as lab:
            problems = self._run(lab)
        return problems and [f"{self}: {text}" for text in problems]

    def _run(self, lab: Lab) -> list[str] | None:
        asleep: list[Sent] = []
        own, problems = lab.vnf.heat, []

        def sleeps(number: int, request: Sent) -> None:
            if number == self.at:
                asleep.append(request)
                problems.extend(take_over(lab, other.heat, self.then))

        with hosts(lab, sleeps, lambda *_: None) as (first, other):
            end: Exception | None = None
            try:
                change(lab.request, first.heat, OPTIONS, coordinate=lab.balancer)
            except ContainerUpdateError as error:
                end = error
            if not asleep:
                return None
            lab.vnf.heat = own
            if any(sent.method == "POST" for sent in other.sent) and not isinstance(
                end, (LeaseLostError, UpdateInProgressError)
            ):
                problems.append(f"it was taken over and ended with {end!r}")
            if asleep[0].is_write and not asleep[0].is_journals:
                return problems  # it was sent before the other host began, as far as Heat can tell
        return [*problems, *lab.state(is_new=None)]


@pytest.mark.parametrize("way", WAYS)
@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_a_host_that_wakes_up_after_it_was_taken_over_stops_and_says_so(
    way: str, circle: Circle
) -> None:
    skip_on_real_cloud(circle)
    points = [Awake(way, at, then) for at in range(1, MOST_REQUESTS) for then in THEN]
    if circle is not Circle.COMPLETE:
        points = points[WAYS.index(way) :: AWAKE_STEP]
    if REAL:  # soon after its first write to a stack of the VNF
        points = [Awake(way, 60 if way.startswith(ROLLING) else 30, THEN[WAYS.index(way) % 2])]
    results = run(Awake.problems, points)
    assert len(results) >= ENOUGH
    assert "\n".join(problem for problems in results for problem in problems) == ""
