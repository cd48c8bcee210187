# SPDX-License-Identifier: Apache-2.0
"""One update of an instance at a time, whatever the clocks say."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from container_update.cluster.lease import PROCESS_ANNOTATION, Holder, LeaseLock
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.errors import (
    ClusterError,
    LeaseLostError,
    PlanError,
    UpdateInProgressError,
)
from container_update.model.objects import ObjectKey
from container_update.model.process_identity import ProcessIdentity
from tests.unit.fakes import FakeCluster

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEY = ObjectKey("coordination.k8s.io", "Lease", "ns", "container-update-i")
DEADLINE = 20.0
SHORT = 0.2
"""Seconds that a lease lasts where a test waits for its end."""


def lock(cluster: FakeCluster, operation: str = "op-1", **more: Any) -> LeaseLock:
    more = {"cancel": CancelToken(), "seconds": 60, "now": lambda: START, **more}
    return LeaseLock(RetryingCluster(cluster, 0.0), "ns", "i", operation, "host.1", **more)


def left_behind(cluster: FakeCluster, seconds: float = SHORT, **spec: Any) -> None:
    """Put a Lease there whose holder runs on another machine, or did."""
    held = lock(cluster, "op-0", seconds=seconds)
    held._acquire()
    lease = cluster.objects[KEY]
    del lease["metadata"]["annotations"]
    cluster.put({**lease, "spec": {**lease["spec"], "leaseDurationSeconds": seconds, **spec}})


def holder_of(cluster: FakeCluster) -> str:
    return str(cluster.objects[KEY]["spec"]["holderIdentity"])


def test_it_is_there_while_held_and_gone_afterwards() -> None:
    cluster = FakeCluster()
    with lock(cluster, seconds=9.5):
        lease = cluster.objects[KEY]
        assert lease["spec"]["holderIdentity"] == "host.1/op-1"
        assert lease["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
        assert lease["spec"]["leaseDurationSeconds"] == 10
        process = lease["metadata"]["annotations"][PROCESS_ANNOTATION]
        assert ProcessIdentity.parse(process) == ProcessIdentity.current()
    assert KEY not in cluster.objects


# --- another's lease ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [pytest.param(1.0, 0.05, id="its holder's"), pytest.param(0.0, 1.0, id="ours if it has none")],
)
def test_it_is_observed_for_the_duration_that_it_names(theirs: float, ours: float) -> None:
    cluster, taken = FakeCluster(), []
    left_behind(cluster, seconds=theirs)

    def look(verb: str, _: ObjectKey) -> None:
        if verb == "replace":
            taken.append(time.monotonic())

    cluster.hooks.append(look)
    began, later = time.monotonic(), START + timedelta(hours=2)
    lock(cluster, "op-2", seconds=ours, now=lambda: later)._acquire()
    assert taken[0] - began >= 1.0
    assert 3 <= cluster.calls.count(f"get {KEY}") <= 20, "it is looked at a few times meanwhile"


@pytest.mark.parametrize("seconds", [3601, 1_000_000_000])
@pytest.mark.parametrize("later", [timedelta(0), timedelta(hours=2)], ids=["fresh", "old"])
def test_one_that_wants_to_be_waited_for_without_an_end_is_refused(
    seconds: float, later: timedelta
) -> None:
    cluster = FakeCluster()
    left_behind(cluster, seconds=seconds)
    with pytest.raises(PlanError, match=f"{KEY}: expected a lease of at most 3600 s, found"):
        lock(cluster, "op-2", now=lambda: START + later)._acquire()
    assert holder_of(cluster) == "host.1/op-0"


def test_the_time_for_which_another_was_observed_is_not_taken_from_ours() -> None:
    cluster, clock = FakeCluster(), [0.0]
    left_behind(cluster)

    def pass_time(verb: str, _: ObjectKey) -> None:
        if verb == "get":
            clock[0] += SHORT / 2

    cluster.hooks.append(pass_time)
    later = START + timedelta(days=1)
    held = lock(cluster, "op-2", seconds=SHORT, now=lambda: later, clock=lambda: clock[0])
    held._acquire()
    assert clock[0] >= SHORT
    held.check()


@pytest.mark.parametrize("read", [1, 2], ids=["before it is read", "while it is observed"])
def test_one_that_its_holder_releases_just_then_is_created(read: int) -> None:
    cluster = FakeCluster()
    left_behind(cluster)
    gets = itertools.count(1)

    def release(verb: str, _: ObjectKey) -> None:
        if verb == "get" and next(gets) == read:
            del cluster.objects[KEY]

    cluster.hooks.append(release)
    later = START + timedelta(days=1)
    lock(cluster, "op-2", now=lambda: later)._acquire()
    assert holder_of(cluster) == "host.1/op-2"


def test_one_that_may_not_be_created_is_refused_as_the_server_says() -> None:
    cluster = FakeCluster()
    refusal = ClusterError("leases is forbidden", status=403)
    cluster.hooks.append(lambda verb, _: raise_(refusal) if verb == "create" else None)
    with pytest.raises(ClusterError, match="leases is forbidden"):
        lock(cluster)._acquire()


def raise_(error: Exception) -> None:
    raise error


def test_one_that_was_just_renewed_is_refused_without_waiting() -> None:
    cluster = FakeCluster()
    left_behind(cluster, seconds=3600.0)
    with pytest.raises(UpdateInProgressError):
        lock(cluster, "op-2")._acquire()


def test_waiting_for_another_ends_when_the_run_is_cancelled() -> None:
    cluster = FakeCluster()
    left_behind(cluster, seconds=3600.0)
    cancel = CancelToken()
    cluster.hooks.append(lambda verb, _: cancel.request("by SIGTERM") if verb == "get" else None)
    later = START + timedelta(days=1)
    with pytest.raises(UpdateInProgressError):
        lock(cluster, "op-2", now=lambda: later, cancel=cancel)._acquire()
    assert holder_of(cluster) == "host.1/op-0"


def ended_process() -> str:
    program = (
        "from container_update.model.process_identity import ProcessIdentity;"
        "print(ProcessIdentity.current())"
    )
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize(
    ("is_same_namespace", "is_free"),
    [
        pytest.param(True, True, id="of this container"),
        pytest.param(False, False, id="of another container of this node"),
    ],
)
def test_one_whose_process_has_ended_is_free_at_once(
    is_same_namespace: bool, is_free: bool
) -> None:
    cluster = FakeCluster()
    left_behind(cluster, seconds=3600.0)
    process = ended_process()
    if not is_same_namespace:
        process = process.replace("pid:[", "pid:[9")
    lease = cluster.objects[KEY]
    cluster.put(
        {**lease, "metadata": {**lease["metadata"], "annotations": {PROCESS_ANNOTATION: process}}}
    )
    if is_free:
        lock(cluster, "op-2")._acquire()
        assert holder_of(cluster) == "host.1/op-2"
        return
    with pytest.raises(UpdateInProgressError):
        lock(cluster, "op-2")._acquire()


@pytest.mark.parametrize(
    ("is_taken", "status", "error", "message"),
    [
        pytest.param(True, 409, UpdateInProgressError, "took over the expired lease", id="taken"),
        pytest.param(False, 404, UpdateInProgressError, "took over the expired", id="deleted"),
        pytest.param(False, 403, ClusterError, "the server refused", id="refused"),
    ],
)
def test_of_two_that_take_over_one_wins(
    is_taken: bool, status: int, error: type[Exception], message: str
) -> None:
    cluster = FakeCluster()
    left_behind(cluster, holderIdentity="")

    def overtake(verb: str, key: ObjectKey) -> None:
        if verb == "replace":
            cluster.hooks.clear()
            if is_taken:
                lock(cluster, "op-3")._acquire()
                return
            if status == 404:
                del cluster.objects[KEY]
            raise ClusterError("the server refused", status=status)

    cluster.hooks.append(overtake)
    with pytest.raises(error, match=message):
        lock(cluster, "op-2")._acquire()
    if is_taken:
        assert holder_of(cluster) == "host.1/op-3"


# --- losing it ----------------------------------------------------------------------------------


def taken_by_another(cluster: FakeCluster) -> None:
    taken = dict(cluster.objects[KEY])
    cluster.put({**taken, "spec": {**taken["spec"], "holderIdentity": "other/op"}})


def test_nothing_is_written_when_the_lease_could_not_be_renewed_for_most_of_its_duration() -> None:
    cluster, seconds, cancel = FakeCluster(), [0.0], CancelToken()
    held = lock(cluster, clock=lambda: seconds[0], cancel=cancel)
    held._acquire()
    seconds[0] = 53.9
    held.check()
    seconds[0] = 54.0
    with pytest.raises(LeaseLostError, match="could not be renewed in time"):
        held.check()
    assert cancel.lease_lost


def test_a_renewal_holds_for_most_of_the_duration_from_when_it_was_sent() -> None:
    cluster, seconds = FakeCluster(), [0.0]
    held = lock(cluster, clock=lambda: seconds[0])
    held._acquire()
    seconds[0] = 50.0
    held.confirm()
    seconds[0] = 103.9
    held.check()
    seconds[0] = 104.0
    with pytest.raises(LeaseLostError):
        held.check()


@pytest.mark.parametrize(
    ("status", "is_there", "tries"), [(404, True, 1), (409, True, 2), (409, False, 1)]
)
def test_a_renewal_that_is_refused_for_good_is_a_loss_whoever_seems_to_hold_it(
    status: int, is_there: bool, tries: int
) -> None:
    cluster = FakeCluster()
    held = lock(cluster, seconds=4)
    held._acquire()

    def refuse(verb: str, _: ObjectKey) -> None:
        if verb == "replace":
            if not is_there:
                del cluster.objects[KEY]
            raise ClusterError("refused", status=status)

    cluster.hooks.append(refuse)
    with pytest.raises(LeaseLostError, match="is lost: refused"):
        held.confirm()
    assert cluster.calls.count(f"replace {KEY}") == tries


def test_a_server_that_is_away_for_too_long_loses_the_lease_though_nothing_is_asked() -> None:
    cluster, cancel, cancelled = FakeCluster(), CancelToken(), threading.Event()
    cancel.on_request(cancelled.set)

    def away(verb: str, _: ObjectKey) -> None:
        if verb == "replace":
            raise ClusterError("away", status=503, transient=True)

    cluster.hooks.append(away)
    with lock(cluster, cancel=cancel, seconds=SHORT):
        assert cancelled.wait(DEADLINE)
    assert cancel.lease_lost


@pytest.mark.parametrize(
    "trouble",
    [ClusterError("away", status=503, transient=True), RuntimeError("a defect")],
    ids=["server away", "a defect"],
)
def test_a_renewal_that_fails_for_a_moment_loses_nothing(trouble: Exception) -> None:
    cluster, cancel = FakeCluster(), CancelToken()
    renewed = threading.Event()
    failures = [trouble]

    def hook(verb: str, key: ObjectKey) -> None:
        if verb == "replace":
            if failures:
                raise failures.pop()
            renewed.set()

    cluster.hooks.append(hook)
    with lock(cluster, cancel=cancel, seconds=2.0):
        assert renewed.wait(DEADLINE)
    assert not cancel


def test_a_renewal_whose_answer_was_lost_is_our_own() -> None:
    cluster, cancel = FakeCluster(), CancelToken()
    with lock(cluster, cancel=cancel) as held:
        lease = cluster.objects[KEY]
        cluster.put({**lease, "spec": {**lease["spec"], "renewTime": "2026-01-01T00:00:01Z"}})
        held.confirm()
    assert not cancel
    assert KEY not in cluster.objects


def test_the_end_of_a_run_is_confirmed_by_a_renewal_that_takes_effect() -> None:
    cluster = FakeCluster()
    failures = [ClusterError("away", status=503, transient=True)] * 2

    def hook(verb: str, key: ObjectKey) -> None:
        if verb == "replace" and failures:
            raise failures.pop()

    with lock(cluster, seconds=20) as held:
        before = cluster.objects[KEY]["metadata"]["resourceVersion"]
        cluster.hooks.append(hook)
        held.confirm()
        assert cluster.objects[KEY]["metadata"]["resourceVersion"] != before
        assert not failures


# --- releasing it -------------------------------------------------------------------------------


def test_a_lease_that_another_has_taken_is_not_released() -> None:
    cluster = FakeCluster()
    with lock(cluster):
        taken_by_another(cluster)
    assert holder_of(cluster) == "other/op"


def test_a_lease_of_the_same_name_that_another_created_is_not_released() -> None:
    cluster = FakeCluster()
    with lock(cluster):
        cluster.objects.pop(KEY)
        lock(cluster, "op-2")._acquire()
    assert holder_of(cluster) == "host.1/op-2"


def test_a_renewal_that_is_under_way_ends_before_the_release() -> None:
    cluster, done = FakeCluster(), []
    renewing, released = threading.Event(), threading.Event()

    def hook(verb: str, _: ObjectKey) -> None:
        if verb == "replace":
            renewing.set()
            released.wait(SHORT)
        if verb == "delete":
            released.set()
        if verb in ("replace", "delete"):
            done.append(verb)

    cluster.hooks.append(hook)
    with lock(cluster, seconds=2.0):
        assert renewing.wait(DEADLINE)
    assert done == ["replace", "delete"]
    assert KEY not in cluster.objects


@pytest.mark.parametrize("status", [409, 410])
def test_a_release_that_is_refused_once_is_sent_again(status: int) -> None:
    cluster, refusals = FakeCluster(), [ClusterError("not now", status=status)]

    def refuse(verb: str, _: ObjectKey) -> None:
        if verb == "delete" and refusals:
            raise refusals.pop()

    cluster.hooks.append(refuse)
    with lock(cluster):
        pass
    assert KEY not in cluster.objects


@pytest.mark.parametrize("found", ["changed", "gone"])
def test_a_lease_that_somebody_touches_just_then_is_released(found: str) -> None:
    cluster = FakeCluster()

    def touch(verb: str, _: ObjectKey) -> None:
        if verb == "delete":
            cluster.hooks.clear()
            lease = cluster.objects.pop(KEY)
            if found == "gone":
                raise ClusterError("there is none", status=404)
            cluster.put({**lease, "metadata": {**lease["metadata"], "labels": {"team": "core"}}})

    cluster.hooks.append(touch)
    with lock(cluster):
        pass
    assert KEY not in cluster.objects


@pytest.mark.parametrize(("status", "tries"), [(403, 2), (503, 1)])
def test_a_release_that_stays_refused_is_told(
    status: int, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was refused because the server is away has been sent again and again before."""
    cluster = FakeCluster()
    refusal = ClusterError("not now", status=status, transient=status == 503)
    cluster.hooks.append(lambda verb, _: raise_(refusal) if verb == "delete" else None)
    with lock(cluster):
        pass
    assert cluster.calls.count(f"delete {KEY}") == tries
    assert f"{KEY} stays until it expires: not now" in caplog.text


# --- what is shown of it ------------------------------------------------------------------------

RENEWED = {"holderIdentity": "h/o", "leaseDurationSeconds": 60}


@pytest.mark.parametrize(
    ("spec", "alive"),
    [
        ({**RENEWED, "renewTime": "2026-01-01T00:00:00Z"}, True),
        ({**RENEWED, "renewTime": "2026-01-01T00:00:50Z"}, True),
        ({**RENEWED, "renewTime": "2025-12-31T23:59:00Z"}, True),
        ({**RENEWED, "renewTime": "2025-12-31T23:58:59Z"}, False),
        ({**RENEWED, "renewTime": "2026-01-01T01:00:00Z"}, False),
        ({**RENEWED, "renewTime": "2026-01-01T00:00:00Z", "holderIdentity": ""}, False),
        ({"holderIdentity": "h/o"}, False),
        ({}, False),
    ],
)
def test_a_holder_seems_alive_when_it_renewed_a_moment_ago(
    spec: dict[str, Any], alive: bool
) -> None:
    assert Holder.of({"spec": spec}).seems_alive(START) is alive


@pytest.mark.parametrize(
    ("lease", "holder", "run", "sentence"),
    [
        ({}, Holder("", "", None, 0.0), "", "last heartbeat 0 s ago; expires after 0 s"),
        (
            {"metadata": {}, "spec": {"holderIdentity": "h/1/o", "leaseDurationSeconds": 30}},
            Holder("h/1/o", "", None, 30.0),
            "o on h/1",
            "last heartbeat 0 s ago; expires after 30 s",
        ),
        (
            {"spec": {**RENEWED, "renewTime": "2025-12-31T23:59:50Z"}},
            Holder("h/o", "2025-12-31T23:59:50Z", START - timedelta(seconds=10), 60.0),
            "o on h",
            "since 2025-12-31T23:59:50Z (last heartbeat 10 s ago; expires after 60 s",
        ),
        (
            {"spec": {**RENEWED, "renewTime": "2026-01-01T00:00:10Z", "acquireTime": "at dawn"}},
            Holder("h/o", "at dawn", START + timedelta(seconds=10), 60.0),
            "o on h",
            "since at dawn (last heartbeat 0 s ago; expires after 60 s",
        ),
    ],
    ids=["nobody", "never renewed", "renewed", "its clock is ahead"],
)
def test_what_a_lease_says_of_its_holder(
    lease: dict[str, Any], holder: Holder, run: str, sentence: str
) -> None:
    found = Holder.of(lease)
    assert found == holder
    assert found.run == run
    assert f"operation {run} holds this VNF instance" in found.sentence(START)
    assert sentence in found.sentence(START)
