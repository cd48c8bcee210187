# SPDX-License-Identifier: Apache-2.0
"""Pods that the server refuses, as the Events of their controller tell it."""

from __future__ import annotations

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, RefusedPods, Waiter
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.workloads.readiness import Readiness, RolloutState
from container_update.workloads.registry import known_kind
from tests.unit.fakes import Everything, FakeCluster

SET: Json = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "w", "namespace": "ns", "uid": "u", "generation": 1},
    "spec": {"replicas": 1},
    "status": {"observedGeneration": 1},
}
PROGRESSING = Readiness(RolloutState.PROGRESSING, "0 of 1 pods are ready")
GRACE = 10.0


class Events(Informer):
    """An informer without a network, whose clock goes on by at most a second with each wait."""

    def __init__(self, *, counting: bool, status: int | None = None) -> None:
        super().__init__(FakeCluster(), Everything())
        self.now, self.reads = 0.0, 0
        self.counting, self.status = counting, status

    def wait(self, seconds: float, key: object = None, seen: object = None) -> None:
        self.now += min(1.0, seconds)

    def list(self, collections: object) -> None:
        """Nothing is read: the last look before a timeout sees the same."""

    def events_about(self, body: Json, **fields: str) -> tuple[Json, ...]:
        self.reads += 1
        version = str(self.reads) if self.counting else "1"
        metadata = {"name": "w.1", "resourceVersion": version}
        return (
            {"metadata": metadata, "message": f"{fields['reason']} of {body['metadata']['name']}"},
        )


def wait(informer: Events, live: Json = SET, deadline: float = 60.0) -> str:
    """Wait for pods that do not come; return the error."""
    waiter = Waiter(informer, GRACE, clock=lambda: informer.now)
    refused = RefusedPods(known_kind(ObjectKey.of(SET)), waiter)
    with pytest.raises(NotReadyError) as raised:
        waiter.until_done(lambda: refused.judge(live, PROGRESSING), deadline, [])
    return str(raised.value)


def test_a_refusal_that_is_reported_again_fails_after_the_grace_period() -> None:
    informer = Events(counting=True)
    assert wait(informer) == "0 of 1 pods are ready: FailedCreate: FailedCreate of w"
    assert (informer.now, informer.reads) == (GRACE, 2)


def test_a_report_from_before_is_no_failure_and_is_told_at_the_time_limit() -> None:
    informer = Events(counting=False)
    message = wait(informer)
    assert message.startswith("not ready in time: 0 of 1 pods are ready")
    assert "FailedCreate of w" in message
    assert informer.now == 60.0


@pytest.mark.parametrize(
    "live",
    [
        pytest.param({**SET, "spec": {"replicas": 0}}, id="no pod is lacking"),
        pytest.param({**SET, "status": {"observedGeneration": 0}}, id="not looked at yet"),
    ],
)
def test_events_are_read_only_while_pods_are_lacking(live: Json) -> None:
    informer = Events(counting=True)
    assert "not ready in time: 0 of 1 pods are ready" in wait(informer, live)
    assert informer.reads == 0


def test_a_lack_that_begins_anew_is_looked_at_anew() -> None:
    informer = Events(counting=True)
    waiter = Waiter(informer, GRACE, clock=lambda: informer.now)
    refused = RefusedPods(known_kind(ObjectKey.of(SET)), waiter)
    there = {**SET, "spec": {"replicas": 0}}
    for live in (SET, there, SET):
        refused.judge(live, PROGRESSING)
        informer.now += GRACE
    assert refused.judge(SET, PROGRESSING).state is RolloutState.PROGRESSING
    informer.now += GRACE
    assert refused.judge(SET, PROGRESSING).state is RolloutState.FAILED


def test_without_the_right_to_read_events_there_are_none() -> None:
    cluster = FakeCluster()

    def refuse(verb: str, _: ObjectKey) -> None:
        raise ClusterError(f"{verb} Events: 403", status=403)

    cluster.hooks.append(refuse)
    assert Informer(cluster, Everything()).events_about(SET, reason="FailedCreate") == ()
