"""One update of an instance at a time."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from container_update.cluster.lease import Holder, LeaseLock
from container_update.model.errors import ClusterError, UpdateInProgressError
from container_update.model.objects import ObjectKey
from tests.unit.fakes import FakeCluster

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEY = ObjectKey("coordination.k8s.io", "Lease", "ns", "container-update-i")


def lock(cluster: FakeCluster, operation: str = "op-1", **more: Any) -> LeaseLock:
    more = {"on_loss": lambda reason: None, "seconds": 60, "now": lambda: START, **more}
    return LeaseLock(cluster, "ns", "i", operation, "host.1", **more)


def test_it_is_there_while_held_and_gone_afterwards() -> None:
    cluster = FakeCluster()
    with lock(cluster):
        spec = cluster.objects[KEY]["spec"]
        assert spec["holderIdentity"] == "host.1/op-1"
        assert spec["renewTime"] == "2026-01-01T00:00:00.000000Z"
    assert KEY not in cluster.objects


def test_a_second_one_is_told_who_holds_it_since_when_and_for_what() -> None:
    cluster = FakeCluster()
    with (
        lock(cluster),
        pytest.raises(UpdateInProgressError) as raised,
        lock(cluster, "op-2"),
    ):
        pytest.fail("held twice")
    assert str(raised.value) == (
        "operation op-1 on host.1 holds this VNF instance since 2026-01-01T00:00:00.000000Z (last "
        "heartbeat 0 s ago; expires after 60 s without one)"
    )


def test_one_that_gave_no_sign_of_life_is_taken_over() -> None:
    cluster = FakeCluster()
    lock(cluster)._acquire()
    later = START + timedelta(seconds=61)
    with lock(cluster, "op-2", now=lambda: later):
        assert cluster.objects[KEY]["spec"]["holderIdentity"] == "host.1/op-2"


def test_of_two_that_take_over_one_wins() -> None:
    cluster = FakeCluster()
    lock(cluster)._acquire()
    later = START + timedelta(seconds=61)

    def overtake(verb: str, key: ObjectKey) -> None:
        if verb == "replace":
            cluster.hooks.clear()
            lock(cluster, "op-3", now=lambda: later)._take_over()

    cluster.hooks.append(overtake)
    with (
        pytest.raises(UpdateInProgressError, match="another run took over the expired lease first"),
        lock(cluster, "op-2", now=lambda: later),
    ):
        pytest.fail("held twice")


def test_its_own_creation_is_known_again_when_the_answer_got_lost() -> None:
    cluster = FakeCluster()
    first = lock(cluster)
    first._acquire()
    again = lock(cluster)
    again._acquire()
    assert again._lease["metadata"]["uid"] == first._lease["metadata"]["uid"]


@pytest.mark.parametrize("status", [404, 409], ids=["deleted by another", "taken by another"])
def test_a_lock_that_is_lost_is_told(status: int) -> None:
    cluster = FakeCluster()
    told = threading.Event()
    reasons: list[str] = []

    def on_loss(reason: str) -> None:
        reasons.append(reason)
        told.set()

    held = lock(cluster, on_loss=on_loss, seconds=0.04)
    with held:
        if status == 404:
            cluster.objects.pop(KEY, None)
        else:
            taken = dict(cluster.objects[KEY])
            cluster.put({**taken, "spec": {**taken["spec"], "holderIdentity": "other/op"}})
        assert told.wait(5)
    assert "is lost" in reasons[0]


def test_a_renewal_that_fails_for_a_moment_loses_nothing() -> None:
    cluster = FakeCluster()
    renewed = threading.Event()
    reasons: list[str] = []
    failures = [ClusterError("away", status=503)] * 2

    def hook(verb: str, key: ObjectKey) -> None:
        if verb == "replace":
            if failures:
                raise failures.pop()
            renewed.set()

    cluster.hooks.append(hook)
    with lock(cluster, on_loss=reasons.append, seconds=0.04):
        assert renewed.wait(5)
    assert reasons == []


@pytest.mark.parametrize(
    ("spec", "expired"),
    [
        (
            {
                "holderIdentity": "h/o",
                "renewTime": "2026-01-01T00:00:00Z",
                "leaseDurationSeconds": 60,
            },
            False,
        ),
        (
            {
                "holderIdentity": "h/o",
                "renewTime": "2025-12-31T23:58:59Z",
                "leaseDurationSeconds": 60,
            },
            True,
        ),
        (
            {"holderIdentity": "", "renewTime": "2026-01-01T00:00:00Z", "leaseDurationSeconds": 60},
            True,
        ),
        ({"holderIdentity": "h/o"}, True),
        ({}, True),
    ],
)
def test_a_lease_expires_when_its_holder_is_silent(spec: dict[str, Any], expired: bool) -> None:
    assert Holder.of({"spec": spec}).is_expired(START) is expired
