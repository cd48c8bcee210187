# SPDX-License-Identifier: Apache-2.0
"""Which pods a controller waits for in vain: they are deleted, once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import Waiter
from container_update.engine.stuck_pods import StuckError, StuckPods
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from tests.unit.build import container, pod
from tests.unit.fakes import Everything, FakeCluster

GRACE = 30
STARTING = pod("p", ready=False)
CRASHED = pod(
    "p", ready=False, containers=[container(restarts=4, running={}, ended={"exitCode": 1})]
)
HELD_UP = pod("p", ready=False, containers=[container(waiting={"reason": "CrashLoopBackOff"})])


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def stuck_pods(
    clock: Clock, *known: str, started: str = "", status: int = 0, there: Json | None = None
) -> StuckPods:
    def refuse(verb: str, key: ObjectKey) -> None:
        if status and verb == "delete":
            raise ClusterError(f"{key} is not deleted", status=status)

    cluster = FakeCluster(*filter(None, [there]))
    cluster.hooks.append(refuse)
    waiter = Waiter(Informer(cluster, Everything()), GRACE, clock)
    return StuckPods(cluster, waiter, frozenset(known), frozenset(started.split()))


def found(pods: StuckPods, *seen: Json, to_replace: str = "p") -> list[str]:
    try:
        pods.refuse(seen, to_replace.split())
    except StuckError as error:
        pods.delete(error.pods)
        return [each["metadata"]["uid"] for each in error.pods]
    return []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(HELD_UP, ["p"], id="it is held up now"),
        pytest.param(CRASHED, [], id="it has crashed at some time, and is not Ready for a moment"),
        pytest.param(STARTING, [], id="it is not Ready for a moment"),
        pytest.param(pod("p"), [], id="it is Ready"),
        pytest.param({**HELD_UP, "metadata": pod("p", deleting=True)["metadata"]}, [],
                     id="it is being deleted"),
    ],
)  # fmt: skip
def test_a_pod_is_stuck_at_once(body: Json, expected: list[str]) -> None:
    assert found(stuck_pods(Clock()), body) == expected


def test_a_pod_that_was_not_ready_before_is_stuck_at_once_and_deleted_once() -> None:
    pods = stuck_pods(Clock(), "p")
    assert found(pods, STARTING) == ["p"]
    assert found(pods, STARTING) == []


def test_a_pod_is_stuck_once_it_is_not_ready_for_the_grace_period() -> None:
    clock = Clock()
    pods = stuck_pods(clock)
    for clock.now, body, expected in (
        (0, STARTING, []),
        (29, STARTING, []),
        (29.5, pod("p"), []),  # back again
        (31, STARTING, []),
        (60, STARTING, []),
        (61, STARTING, ["p"]),
    ):
        assert found(pods, body) == expected, clock.now


def test_only_pods_that_are_to_be_replaced_are_looked_at() -> None:
    assert found(stuck_pods(Clock(), "p"), STARTING, to_replace="q") == []
    assert found(stuck_pods(Clock(), "p", started="p"), STARTING, to_replace="q") == ["p"]


def test_a_pod_that_another_has_replaced_needs_no_deletion() -> None:
    assert found(stuck_pods(Clock(), status=409), HELD_UP) == ["p"]


@pytest.mark.parametrize("status", [403, 409, 500])
def test_a_deletion_that_is_refused_is_tried_again(status: int) -> None:
    pods = stuck_pods(Clock(), status=status, there=HELD_UP)
    for _ in range(2):
        with pytest.raises(ClusterError):
            found(pods, HELD_UP)
