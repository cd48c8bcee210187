# SPDX-License-Identifier: Apache-2.0
"""Where a workload is on its way, from its status and its pods: whole rollouts, step by step.

The statuses are those that an API server 1.36 with its controllers showed during such rollouts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from container_update.model.objects import Json, ObjectKey
from container_update.workloads import registry
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.kinds import pod as pod_kind
from container_update.workloads.kinds.statefulset import StatefulSet
from container_update.workloads.pod_status import (
    has_ended,
    is_finished,
    is_ready,
    patience,
    problem,
    pull_text,
)
from container_update.workloads.readiness import Baseline, Counts, RolloutState, abandoned_pods
from tests.unit.build import container, pod

DONE, PROGRESSING = RolloutState.DONE, RolloutState.PROGRESSING
FAILING, FAILED = RolloutState.FAILING, RolloutState.FAILED

Verdict = tuple[RolloutState, str]
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "bad:missing"'}
PULL_TEXT = 'ImagePullBackOff: image "bad:missing"'


def bad(name: str, reason: str = "ErrImagePull", *, deleting: bool = False) -> Json:
    """A new pod that does not start."""
    trouble = container(waiting={"reason": reason}, started=False)
    return pod(name, ready=False, phase="Pending", deleting=deleting, containers=[trouble])


def crashing(name: str) -> Json:
    """A new pod that runs again after it has crashed."""
    trouble = container(restarts=1, running={}, ended={"exitCode": 1})
    return pod(name, ready=False, containers=[trouble])


def starting(name: str) -> Json:
    return pod(name, ready=False, phase="Pending")


def workload(kind: str, status: Json, *, generation: int = 2, **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "generation": generation},
        "spec": {"replicas": 3, **spec},
        "status": {"observedGeneration": 2, **status},
    }


def judge(live: Json, pods: list[Json], baseline: Baseline) -> Verdict:
    found = kind_of(live).readiness(live, pods, baseline)
    return found.state, found.message


def kind_of(live: Json) -> WorkloadKind:
    return registry.known_kind(ObjectKey.of(live))


def baseline(*names: str, allowed: str = "") -> Baseline:
    return Baseline(frozenset(names), allowed=frozenset(allowed.split()))


# --- a Deployment -------------------------------------------------------------------------------


def replicas(total: int, updated: int, ready: int, available: int | None = None) -> Json:
    return {
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready if available is None else available,
    }


def test_a_deployment_that_is_paused_meanwhile_is_failing() -> None:
    live = workload("Deployment", replicas(3, 1, 3), paused=True)
    live["metadata"]["namespace"] = "n"
    resume = "resume it (kubectl rollout resume deployment w -n n)"
    verdict = (FAILING, f"it is paused (1 of 3 pods are updated): {resume}")
    assert judge(live, [O1, O2, N3], baseline("o1", "o2", "o3")) == verdict
    live["status"] |= replicas(3, 3, 3)
    assert judge(live, [N1, N2, N3], baseline("o1", "o2", "o3")) == (DONE, "")


O1, O2, O3 = pod("o1"), pod("o2"), pod("o3")
N1, N2, N3 = pod("n1"), pod("n2"), pod("n3")
LEAVING = pod("o3", deleting=True)
REFUSED = {
    "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
    "message": "pods are forbidden",
}  # fmt: skip
UNREADY = {"type": "Ready", "status": "False", "message": "containers with unready status: [a]"}

DEPLOYMENT: dict[str, tuple[Json, list[Json], RolloutState, str]] = {
    "the controller has not looked yet": (
        {"observedGeneration": 1, **replicas(3, 3, 3)}, [O1, O2, O3],
        PROGRESSING, "its controller has not seen the change yet",
    ),
    "there is no status at all": (
        {"observedGeneration": 0}, [], PROGRESSING, "its controller has not seen the change yet",
    ),
    "it has looked and done nothing": (
        replicas(3, 0, 3), [O1, O2, O3], PROGRESSING, "0 of 3 pods are updated",
    ),
    "the server refuses new pods": (
        replicas(3, 0, 3) | {"conditions": [REFUSED]}, [O1, O2, O3],
        FAILING, "FailedCreate: pods are forbidden (0 of 3 pods are updated)",
    ),
    "the server refused pods before": (
        replicas(3, 0, 3) | {"conditions": [REFUSED | {"status": "False"}]}, [O1, O2, O3],
        PROGRESSING, "0 of 3 pods are updated",
    ),
    "the server refused pods of the template before": (
        {"observedGeneration": 1, **replicas(3, 0, 3), "conditions": [REFUSED]}, [O1, O2, O3],
        PROGRESSING, "its controller has not seen the change yet",
    ),
    "a first new pod starts": (
        replicas(4, 1, 3), [O1, O2, O3, starting("n1")],
        PROGRESSING, "1 of 3 pods are updated: pod n1 is not Ready (phase Pending)",
    ),
    "a first old pod leaves": (
        replicas(3, 2, 3), [O1, O2, LEAVING, N1, N2],
        PROGRESSING, "2 of 3 pods are updated: pod o3 is still being deleted",
    ),
    "all are updated, an old one is there": (
        replicas(4, 3, 4), [O1, N1, N2, N3], PROGRESSING, "1 old pod is still there",
    ),
    "all are updated, one is not ready": (
        replicas(3, 3, 2), [N1, N2, pod("n3", ready=False, status={"conditions": [UNREADY]})],
        PROGRESSING,
        "2 of 3 pods are ready: pod n3 is not Ready: containers with unready status: [a]",
    ),
    "all are ready, one not available yet": (
        replicas(3, 3, 3, 2), [N1, N2, N3], PROGRESSING, "2 of 3 pods are ready",
    ),
    "an old one more by the counts, the pods of the list lag behind": (
        replicas(4, 3, 4), [N1, N2, N3], PROGRESSING, "1 old pod is still there",
    ),
    "the counts are right, an old pod still leaves": (
        replicas(3, 3, 3), [LEAVING, N1, N2, N3],
        PROGRESSING, "1 old pod is still there: pod o3 is still being deleted",
    ),
    "the counts are right, the pods of the list lag behind": (
        replicas(3, 3, 3), [N1, N2], PROGRESSING, "2 of 3 pods are ready",
    ),
    "the counts are right, but the pods are the old ones": (
        replicas(3, 3, 3), [O1, O2, O3], PROGRESSING, "3 old pods are still there",
    ),
    "the counts are right, a new pod is not Ready any more": (
        replicas(3, 3, 3), [N1, N2, starting("n3")],
        PROGRESSING, "2 of 3 pods are ready: pod n3 is not Ready (phase Pending)",
    ),
    "the counts are right, a new pod too many is not Ready": (
        replicas(3, 3, 3), [N1, N2, N3, starting("n4")],
        PROGRESSING, "3 of 3 pods are ready: pod n4 is not Ready (phase Pending)",
    ),
    "all are new and Ready": (replicas(3, 3, 3), [N1, N2, N3], DONE, ""),
    "an old pod has ended and is only to be collected": (
        replicas(3, 3, 3), [pod("o3", phase="Succeeded", deleting=True, ready=False), N1, N2, N3],
        DONE, "",
    ),
    "a new pod was evicted and replaced": (
        replicas(3, 3, 3), [pod("n0", phase="Failed", ready=False), N1, N2, N3], DONE, "",
    ),
    "a new pod does not start": (
        replicas(4, 1, 3), [O1, O2, O3, bad("n1")],
        FAILING, "pod n1, container a: ErrImagePull (1 of 3 pods are updated)",
    ),
    "all new pods do not start": (
        replicas(3, 3, 0), [bad("n1"), bad("n2", "ImagePullBackOff"), bad("n3")],
        FAILING, "pod n1, container a: ErrImagePull (0 of 3 pods are ready)",
    ),
    "one of the new pods does not start, the other does": (
        replicas(4, 2, 3), [O1, O2, N1, bad("n2")],
        PROGRESSING, "2 of 3 pods are updated: pod n2, container a: ErrImagePull",
    ),
    "the only new pod crashes": (
        replicas(4, 1, 3), [O1, O2, O3, crashing("n1")],
        FAILING,
        "pod n1, container a: CrashLoopBackOff: ended with exit code 1 (1 of 3 pods are updated)",
    ),
    "one of the new pods crashes, the other does not": (
        replicas(4, 2, 3), [O1, O2, N1, crashing("n2")],
        PROGRESSING,
        "2 of 3 pods are updated: pod n2, container a: CrashLoopBackOff: ended with exit code 1",
    ),
    "an old pod is in trouble, and a new one starts": (
        replicas(4, 1, 2), [bad("o1"), O2, O3, starting("n1")],
        PROGRESSING, "1 of 3 pods are updated: pod n1 is not Ready (phase Pending)",
    ),
    "the new pod that did not start is being deleted": (
        replicas(4, 1, 3), [O1, O2, O3, bad("n1", deleting=True)],
        PROGRESSING, "1 of 3 pods are updated: pod n1 is still being deleted",
    ),
    "an old pod is in trouble, no new one is there": (
        replicas(3, 0, 2), [O1, O2, bad("o3")],
        PROGRESSING, "0 of 3 pods are updated: pod o3, container a: ErrImagePull",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "pods", "state", "message"), DEPLOYMENT.values(), ids=DEPLOYMENT.keys()
)
def test_a_deployment_is_judged_when(
    status: Json, pods: list[Json], state: RolloutState, message: str
) -> None:
    live = workload("Deployment", status)
    assert judge(live, pods, baseline("o1", "o2", "o3")) == (state, message)


DEADLINE = [
    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
]


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        pytest.param(
            replicas(4, 1, 3), [O1, O2, O3, bad("n1")],
            (FAILED, "ProgressDeadlineExceeded: pod n1, container a: ErrImagePull "
                     "(1 of 3 pods are updated)"),
            id="fails for good where a pod does not start",
        ),
        pytest.param(
            replicas(3, 0, 3), [O1, O2, O3],
            (FAILED, "ProgressDeadlineExceeded: 0 of 3 pods are updated"),
            id="fails for good where there are not even pods",
        ),
        pytest.param(
            {"observedGeneration": 1, **replicas(3, 0, 3)}, [O1, O2, O3],
            (PROGRESSING, "its controller has not seen the change yet"),
            id="says nothing about a change that the controller has not seen",
        ),
        pytest.param(
            replicas(3, 3, 3), [N1, N2, N3], (DONE, ""), id="says nothing once all is there"
        ),
    ],
)  # fmt: skip
def test_the_progress_deadline(status: Json, pods: list[Json], expected: Verdict) -> None:
    live = workload("Deployment", {**status, "conditions": DEADLINE})
    assert judge(live, pods, baseline("o1", "o2", "o3")) == expected


def test_a_condition_that_was_there_before_says_nothing_about_the_change() -> None:
    at = {"lastUpdateTime": "2026-01-01T00:00:00Z"}
    exceeded, refused = {**DEADLINE[1], **at}, {**REFUSED, **at}
    before = Baseline(frozenset({"o1", "o2", "o3"}), conditions=[exceeded, refused])
    pods, counts = [O1, O2, O3], replicas(3, 0, 3)
    for seen, state in {
        (): PROGRESSING,
        (exceeded["reason"],): FAILED,
        (refused["reason"],): FAILING,
    }.items():
        newer = {"lastUpdateTime": "2026-01-01T00:00:01Z"}
        conditions = [{**c, **newer} if c["reason"] in seen else c for c in (exceeded, refused)]
        live = workload("Deployment", {**counts, "conditions": conditions})
        assert judge(live, pods, before)[0] is state


def test_a_refusal_that_was_there_before_is_said_while_pods_are_waited_for() -> None:
    before = Baseline(frozenset({"o1"}), conditions=[REFUSED])
    live = workload("Deployment", {**replicas(1, 0, 1), "conditions": [REFUSED]}, replicas=1)
    told = (PROGRESSING, "0 of 1 pods are updated: FailedCreate: pods are forbidden")
    assert judge(live, [O1], before) == told


def test_a_deployment_whose_status_is_not_there_has_not_been_seen() -> None:
    live = workload("Deployment", {}, generation=1)
    del live["status"]
    not_seen = (PROGRESSING, "its controller has not seen the change yet")
    assert judge(live, [], baseline()) == not_seen


def test_other_conditions_do_not_fail_a_deployment() -> None:
    conditions = [
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
    ]
    live = workload("Deployment", {**replicas(3, 0, 2), "conditions": conditions})
    assert judge(live, [O1, O2, O3], baseline("o1", "o2", "o3"))[0] is PROGRESSING


def test_a_deployment_without_replicas_has_one_and_one_of_zero_needs_none() -> None:
    live = workload("Deployment", replicas(1, 1, 1))
    live["spec"]["replicas"] = None
    assert judge(live, [N1], baseline("o1"))[0] is DONE
    assert judge(live, [], baseline("o1"))[0] is PROGRESSING
    live = workload("Deployment", {}, replicas=0)
    assert judge(live, [], baseline())[0] is DONE
    assert judge(live, [O1], baseline("o1"))[0] is PROGRESSING


def test_an_object_without_a_generation_is_judged_by_its_counts() -> None:
    live = workload("Deployment", replicas(3, 3, 3))
    del live["metadata"]["generation"], live["status"]["observedGeneration"]
    assert judge(live, [N1, N2, N3], baseline())[0] is DONE
    live["status"]["conditions"] = DEADLINE
    assert judge(live, [N1, N2], baseline())[0] is FAILED


def test_what_is_waited_for_is_the_new_pod_where_the_old_one_waits_for_it() -> None:
    live = workload("Deployment", replicas(2, 1, 1), replicas=1)
    waiting = "0 of 1 new pods are ready: pod n1 is not Ready (phase Pending)"
    assert judge(live, [O1, starting("n1")], baseline("o1")) == (PROGRESSING, waiting)
    old = (PROGRESSING, "1 old pod is still there")
    assert judge(live, [O1, N1], baseline("o1")) == old


# --- a DaemonSet --------------------------------------------------------------------------------


def nodes(wanted: int, updated: int, ready: int, available: int | None = None) -> Json:
    return {
        "desiredNumberScheduled": wanted,
        "updatedNumberScheduled": updated,
        "numberReady": ready,
        "numberAvailable": ready if available is None else available,
    }


@pytest.mark.parametrize(
    ("status", "pods", "state", "message"),
    [
        pytest.param(
            nodes(2, 0, 2), [O1, O2], PROGRESSING, "0 of 2 pods are updated", id="nothing yet"
        ),
        pytest.param(
            nodes(2, 1, 2), [O1, N1], PROGRESSING, "1 of 2 pods are updated", id="one node"
        ),
        pytest.param(
            nodes(2, 2, 1), [N1, starting("n2")], PROGRESSING,
            "1 of 2 pods are ready: pod n2 is not Ready (phase Pending)", id="one not ready",
        ),
        pytest.param(
            nodes(2, 2, 2, 1), [N1, N2], PROGRESSING, "1 of 2 pods are ready", id="not available"
        ),
        pytest.param(
            nodes(2, 2, 2), [N1, O2], PROGRESSING, "1 old pod is still there", id="no proof"
        ),
        pytest.param(nodes(2, 2, 2), [N1, N2], DONE, "", id="both nodes"),
        pytest.param(
            nodes(2, 1, 1), [O1, bad("n2")], FAILING,
            "pod n2, container a: ErrImagePull (1 of 2 pods are updated)", id="the new one is bad",
        ),
        pytest.param(nodes(0, 0, 0), [], DONE, "", id="no node is to have one"),
        pytest.param(
            {"observedGeneration": 1, **nodes(2, 2, 2)}, [O1, O2], PROGRESSING,
            "its controller has not seen the change yet", id="not seen yet",
        ),
    ],
)  # fmt: skip
def test_a_daemonset_is_judged_by_its_nodes(
    status: Json, pods: list[Json], state: RolloutState, message: str
) -> None:
    assert judge(workload("DaemonSet", status), pods, baseline("o1", "o2")) == (state, message)


# --- a StatefulSet ------------------------------------------------------------------------------


def member(ordinal: int, age: str, **facts: Any) -> Json:
    """A StatefulSet's pod: its name stays, its UID tells old from new."""
    return pod(f"w-{ordinal}", uid=f"{age}{ordinal}", **facts)


OLD = [member(0, "old"), member(1, "old"), member(2, "old")]
NEW = [member(0, "new"), member(1, "new"), member(2, "new")]
OLD_UIDS = ("old0", "old1", "old2")


def rolling(partition: int) -> Json:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    return {"updateStrategy": strategy}


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        pytest.param(
            replicas(3, 0, 3), OLD, (PROGRESSING, "0 of 3 pods are updated"), id="nothing yet"
        ),
        pytest.param(
            replicas(3, 0, 3), [*OLD[:2], member(2, "old", deleting=True)],
            (PROGRESSING, "0 of 3 pods are updated: pod w-2 is still being deleted"),
            id="the last pod leaves",
        ),
        pytest.param(
            replicas(2, 0, 2), OLD[:2], (PROGRESSING, "0 of 3 pods are updated"), id="it is gone"
        ),
        pytest.param(
            replicas(3, 1, 2), [*OLD[:2], member(2, "new", ready=False)],
            (PROGRESSING, "1 of 3 pods are updated: pod w-2 is not Ready (phase Running)"),
            id="the new one starts",
        ),
        pytest.param(
            replicas(3, 3, 2), [member(0, "new", ready=False), *NEW[1:]],
            (PROGRESSING, "2 of 3 pods are ready: pod w-0 is not Ready (phase Running)"),
            id="the first one is the last to be new",
        ),
        pytest.param(
            replicas(3, 3, 3), [*OLD[:1], *NEW[1:]],
            (PROGRESSING, "1 old pod is still there"), id="the list lags behind",
        ),
        pytest.param(
            replicas(4, 3, 4), NEW, (PROGRESSING, "1 old pod is still there"),
            id="one too many by the counts",
        ),
        pytest.param(replicas(3, 3, 3), NEW, (DONE, ""), id="all are new"),
    ],
)  # fmt: skip
def test_a_statefulset_is_judged_pod_by_pod(
    status: Json, pods: list[Json], expected: Verdict
) -> None:
    live = workload("StatefulSet", status, **rolling(0))
    assert judge(live, pods, baseline(*OLD_UIDS)) == expected


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        pytest.param({}, "", id="no strategy"),
        pytest.param({"updateStrategy": {"rollingUpdate": None}}, "", id="no partition"),
        pytest.param(rolling(0), "", id="a partition at the first pod"),
        pytest.param(rolling(1), "old0", id="a partition after the first pod"),
        pytest.param(rolling(2), "old0 old1", id="a partition at the last pod"),
        pytest.param(rolling(9), "old0 old1 old2", id="a partition behind the last pod"),
        pytest.param(
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 2}}}, "",
            id="OnDelete has no partition",
        ),
    ],
)  # fmt: skip
def test_a_partition_leaves_pods_at_the_old_template(spec: Json, left: str) -> None:
    live = workload("StatefulSet", {}, **spec)
    assert StatefulSet().left_alone(live, OLD) == frozenset(left.split())


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        pytest.param(
            replicas(3, 0, 3), OLD, (PROGRESSING, "0 of 1 pods are updated"), id="nothing yet"
        ),
        pytest.param(
            replicas(3, 1, 3), OLD, (PROGRESSING, "1 old pod is still there"), id="no proof"
        ),
        pytest.param(
            replicas(3, 1, 2), [*OLD[:2], member(2, "new", ready=False)],
            (PROGRESSING, "2 of 3 pods are ready: pod w-2 is not Ready (phase Running)"),
            id="the new one starts",
        ),
        pytest.param(
            replicas(3, 1, 3), [NEW[0], OLD[1], OLD[2]],
            (PROGRESSING, "1 old pod is still there"),
            id="a pod below the partition was replaced, the one above was not",
        ),
        pytest.param(replicas(3, 1, 3), [*OLD[:2], NEW[2]], (DONE, ""), id="the last one is new"),
        pytest.param(
            replicas(3, 1, 3), [NEW[0], OLD[1], NEW[2]], (DONE, ""),
            id="a pod below the partition was replaced too",
        ),
        pytest.param(
            replicas(3, 1, 2), [*OLD[:2], bad("w-2")],
            (FAILING, "pod w-2, container a: ErrImagePull (2 of 3 pods are ready)"),
            id="the new one is bad",
        ),
    ],
)  # fmt: skip
def test_a_statefulset_with_a_partition_is_done_when_the_rest_is_new(
    status: Json, pods: list[Json], expected: Verdict
) -> None:
    live = workload("StatefulSet", status, **rolling(2))
    assert judge(live, pods, baseline(*OLD_UIDS)) == expected


def test_a_partition_spares_no_pod_above_it_when_an_update_is_undone() -> None:
    live = workload("StatefulSet", replicas(3, 2, 3), **rolling(2))
    assert judge(live, [*OLD[:2], NEW[2]], baseline("new2"))[0] is PROGRESSING
    again = member(2, "again")
    live = workload("StatefulSet", replicas(3, 3, 3), **rolling(2))
    assert judge(live, [*OLD[:2], again], baseline("new2")) == (DONE, "")


def test_a_partition_counts_from_the_first_ordinal() -> None:
    spec = {**rolling(1), "ordinals": {"start": 5}}
    live = workload("StatefulSet", replicas(3, 2, 3), **spec)
    old, new = [member(n, "old") for n in (5, 6, 7)], [member(n, "new") for n in (5, 6, 7)]
    before = baseline("old5", "old6", "old7")
    assert judge(live, [old[0], *new[1:]], before) == (DONE, "")
    assert judge(live, [new[0], old[1], new[2]], before)[0] is PROGRESSING


# --- replaced one by one ------------------------------------------------------------------------

FOUR = [pod(f"o{number}") for number in (1, 2, 3, 4)]


def one_by_one(total: int, ready: int) -> Json:
    status = {"replicas": total, "readyReplicas": ready, "availableReplicas": ready}
    return workload("ReplicaSet", status, replicas=4)


TURNS: dict[str, tuple[Json, list[Json], str, Verdict]] = {
    "the first is evicted, nothing is seen of it": (
        one_by_one(4, 4), FOUR, "o2 o3 o4", (PROGRESSING, "1 old pod is still there"),
    ),
    "the first is being deleted": (
        one_by_one(4, 4), [pod("o1", deleting=True), *FOUR[1:]], "o2 o3 o4",
        (PROGRESSING, "1 old pod is still there: pod o1 is still being deleted"),
    ),
    "the first is gone, its replacement is not there": (
        one_by_one(3, 3), FOUR[1:], "o2 o3 o4", (PROGRESSING, "3 of 4 pods are ready"),
    ),
    "the first is gone, the status lags behind": (
        one_by_one(4, 4), FOUR[1:], "o2 o3 o4", (PROGRESSING, "3 of 4 pods are ready"),
    ),
    "the replacement starts": (
        one_by_one(4, 3), [*FOUR[1:], starting("n1")], "o2 o3 o4",
        (PROGRESSING, "3 of 4 pods are ready: pod n1 is not Ready (phase Pending)"),
    ),
    "the replacement does not start": (
        one_by_one(4, 3), [*FOUR[1:], bad("n1")], "o2 o3 o4",
        (FAILING, "pod n1, container a: ErrImagePull (3 of 4 pods are ready)"),
    ),
    "the replacement is Ready": (one_by_one(4, 4), [*FOUR[1:], N1], "o2 o3 o4", (DONE, "")),
    "the second turn is not done by the first": (
        one_by_one(4, 4), [*FOUR[1:], N1], "o3 o4", (PROGRESSING, "1 old pod is still there"),
    ),
    "a later one was not Ready before": (
        one_by_one(4, 3), [starting("o2"), *FOUR[2:], N1], "o2 o3 o4", (DONE, ""),
    ),
    "a later one was not Ready before, nor is the replacement": (
        one_by_one(4, 2), [starting("o2"), *FOUR[2:], starting("n1")], "o2 o3 o4",
        (PROGRESSING, "2 of 4 pods are ready: pod n1 is not Ready (phase Pending)"),
    ),
    "a later one was not Ready before, the replacement not available yet": (
        workload("ReplicaSet", replicas(4, 0, 3, 2), replicas=4),
        [starting("o2"), *FOUR[2:], N1], "o2 o3 o4",
        (PROGRESSING, "2 of 4 pods are ready: pod o2 is not Ready (phase Pending)"),
    ),
    "the last turn": (one_by_one(4, 4), [N1, N2, N3, pod("n4")], "", (DONE, "")),
    "one more than wanted": (
        one_by_one(5, 5), [*FOUR[1:], N1, N2], "o2 o3 o4",
        (PROGRESSING, "1 old pod is still there"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("live", "pods", "allowed", "expected"), TURNS.values(), ids=TURNS.keys())
def test_pods_are_replaced_in_turn(
    live: Json, pods: list[Json], allowed: str, expected: Verdict
) -> None:
    before = baseline("o1", "o2", "o3", "o4", allowed=allowed)
    assert judge(live, pods, before) == expected


def test_a_statefulset_that_waits_for_deletions_takes_turns_too() -> None:
    strategy: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
    before = baseline(*OLD_UIDS, allowed="old0 old1")
    live = workload("StatefulSet", replicas(3, 0, 3), **strategy)
    assert judge(live, OLD, before) == (PROGRESSING, "0 of 1 pods are updated")
    live = workload("StatefulSet", replicas(3, 1, 3), **strategy)
    assert judge(live, [*OLD[:2], NEW[2]], before) == (DONE, "")


# --- pods that belong to nobody -----------------------------------------------------------------


def conditions(ready: str, containers: str, **more: str) -> Json:
    return {
        "conditions": [
            {"type": "ContainersReady", "status": containers},
            {"type": "Ready", "status": ready, **more},
        ]
    }


LOST = pod("lost", deleting=True, status=conditions("False", "True"))
DYING = pod("dying", deleting=True)
OVERDUE = "which should have ended at 2026-01-01T00:00:00Z, has not"
NOBODYS: dict[str, tuple[Json, list[Json], Verdict]] = {
    "a Deployment has another in its place": (
        workload("Deployment", replicas(3, 3, 3)), [DYING, LOST, N1, N2, N3], (DONE, ""),
    ),
    "the others of a Deployment are waited for": (
        workload("Deployment", replicas(3, 2, 3)), [DYING, O1, N1, N2],
        (PROGRESSING, f"2 of 3 pods are updated, and pod dying, {OVERDUE}"),
    ),
    "a DaemonSet has none on its node": (
        workload("DaemonSet", nodes(3, 2, 2)), [DYING, N1, N2], (DONE, ""),
    ),
    "a DaemonSet's other nodes are waited for": (
        workload("DaemonSet", nodes(3, 1, 2)), [DYING, O1, N1],
        (PROGRESSING, f"1 of 2 pods are updated, and pod dying, {OVERDUE}"),
    ),
    "a StatefulSet has none of its name": (
        workload("StatefulSet", replicas(3, 2, 2)),
        [member(0, "old", deleting=True), *NEW[1:]], (DONE, ""),
    ),
    "a StatefulSet's other pods are waited for": (
        workload("StatefulSet", replicas(3, 1, 2)),
        [member(0, "old", deleting=True), OLD[1], NEW[2]],
        (PROGRESSING, f"1 of 2 pods are updated, and pod w-0, {OVERDUE}"),
    ),
    "a StatefulSet was to have less pods": (
        workload("StatefulSet", replicas(4, 3, 3)), [*NEW, member(3, "old", deleting=True)],
        (DONE, ""),
    ),
    "a StatefulSet was to have less pods, and lacks another": (
        workload("StatefulSet", replicas(3, 2, 2)), [*NEW[1:], member(3, "old", deleting=True)],
        (PROGRESSING, f"2 of 3 pods are updated, and pod w-3, {OVERDUE}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("live", "pods", "expected"), NOBODYS.values(), ids=NOBODYS.keys())
def test_a_pod_that_was_being_deleted_before_is_not_counted(
    live: Json, pods: list[Json], expected: Verdict
) -> None:
    before = Baseline(
        frozenset({"o1", "o2", "o3", "lost", "old1", "old2"}),
        abandoned=frozenset({"dying", "old0", "old3"}),
    )
    assert judge(live, pods, before) == expected


def test_a_pod_that_was_there_before_and_is_deleted_since_is_counted() -> None:
    assert abandoned_pods([DYING, LOST, N1], before={"lost"}) == {"dying"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(conditions("False", "True"), True, id="its containers ran well"),
        pytest.param(conditions("Unknown", "True"), True, id="nobody knows"),
        pytest.param(conditions("True", "True"), False, id="it is Ready"),
        pytest.param(conditions("False", "False"), False, id="its containers are not ready"),
        pytest.param(
            conditions("False", "True", reason="ReadinessGatesNotReady"), False,
            id="a readiness gate is not met",
        ),
        pytest.param({"conditions": []}, False, id="no kubelet has seen it"),
    ],
)  # fmt: skip
def test_a_node_that_does_not_answer_shows_in_its_pods(status: Json, expected: bool) -> None:
    leaving = pod("p", deleting=True, status=status)
    assert Baseline(frozenset({"p"})).leaves_out(leaving) is expected
    assert not Baseline(frozenset({"p"})).leaves_out(pod("p", status=status))
    back = Baseline(frozenset({"p"}), restores=Counts(1, 1, 1, 1, 1))
    assert back.leaves_out(pod("p", status=status)) is expected


def test_a_place_that_cannot_be_filled_does_not_make_a_workload_incomplete() -> None:
    live = workload("DaemonSet", {"desiredNumberScheduled": 3})
    before = Baseline(abandoned=frozenset({"dying"}))
    assert kind_of(live).completeness(live, [DYING, O1, N1], before).state is DONE
    lacking = kind_of(live).completeness(live, [DYING, O1], before)
    assert (lacking.state, lacking.message) == (PROGRESSING, "1 of 2 pods are there")


# --- back to what was there before --------------------------------------------------------------


def had(total: int, updated: int, ready: int) -> Counts:
    return Counts(desired=3, updated=updated, ready=ready, available=ready, total=total)


WELL, ILL, BROKEN, LESS = had(3, 3, 3), had(3, 3, 2), had(3, 3, 0), had(2, 2, 2)
B1, B2, B3 = bad("b1"), bad("b2"), bad("b3")
BACK: dict[str, tuple[Counts, Json, list[Json], Verdict]] = {
    "all of them were ready": (WELL, replicas(3, 3, 3), [O1, O2, O3], (DONE, "")),
    "all of them were ready, one is not": (
        WELL, replicas(3, 3, 2), [O1, O2, starting("o3")],
        (PROGRESSING, "2 of 3 pods are ready: pod o3 is not Ready (phase Pending)"),
    ),
    "all of them were ready, one is in trouble": (
        WELL, replicas(3, 3, 0), [B1, B2, B3],
        (FAILING, "pod b1, container a: ErrImagePull (0 of 3 pods are ready)"),
    ),
    "two of them were ready": (ILL, replicas(3, 3, 2), [O1, O2, starting("o3")], (DONE, "")),
    "two of them were ready, one is not": (
        ILL, replicas(3, 3, 1), [O1, starting("o2"), starting("o3")],
        (PROGRESSING, "1 of 3 pods are ready: pod o2 is not Ready (phase Pending)"),
    ),
    "two of them were ready, the list lags behind": (
        ILL, replicas(3, 3, 2), [O1, starting("o2"), starting("o3")],
        (PROGRESSING, "1 of 3 pods are ready: pod o2 is not Ready (phase Pending)"),
    ),
    "none was ready": (BROKEN, replicas(3, 3, 0), [B1, B2, B3], (DONE, "")),
    "none was ready, and the controller keeps pods of the other template": (
        BROKEN, replicas(4, 3, 2), [B1, B2, N1, N2], (DONE, ""),
    ),
    "none was ready, and none is there yet": (
        BROKEN, replicas(3, 0, 3), [N1, N2, N3], (PROGRESSING, "0 of 3 pods are updated"),
    ),
    "two were ready, and the controller has only begun": (
        ILL, replicas(4, 1, 3), [B1, N1, N2, N3],
        (FAILING, "pod b1, container a: ErrImagePull (1 of 3 pods are updated)"),
    ),
    "all were ready, and one more of a roll that was stuck was not": (
        had(4, 1, 3), replicas(4, 1, 3), [O1, O2, O3, B1], (DONE, ""),
    ),
    "all were ready and one more not, now another one is not": (
        had(4, 1, 3), replicas(4, 1, 3), [O1, O2, starting("o3"), B1],
        (PROGRESSING, "2 of 3 pods are ready: pod o3 is not Ready (phase Pending)"),
    ),
    "one was never created": (LESS, replicas(2, 2, 2), [O1, O2], (DONE, "")),
    "what is being deleted is not waited for": (
        WELL, replicas(3, 3, 3), [O1, O2, O3, pod("n1", deleting=True)], (DONE, ""),
    ),
    "what is not being deleted is": (
        WELL, replicas(3, 3, 3), [O1, O2, O3, N1], (PROGRESSING, "1 old pod is still there"),
    ),
    "the controller has not looked yet": (
        BROKEN, {"observedGeneration": 1, **replicas(3, 3, 0)}, [B1, B2, B3],
        (PROGRESSING, "its controller has not seen the change yet"),
    ),
    "the deadline that was missed is the other template's": (
        WELL, {**replicas(3, 3, 2), "conditions": DEADLINE}, [O1, O2, starting("o3")],
        (PROGRESSING, "2 of 3 pods are ready: pod o3 is not Ready (phase Pending)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "status", "pods", "expected"), BACK.values(), ids=BACK.keys()
)  # fmt: skip
def test_an_undo_is_complete_when_a_workload_is_no_less_ready_than_it_was(
    before: Counts, status: Json, pods: list[Json], expected: Verdict
) -> None:
    failed = Baseline(frozenset({"n1", "n2", "n3"}), restores=before)
    assert judge(workload("Deployment", status), pods, failed) == expected


@pytest.mark.parametrize(
    ("before", "pods", "expected"),
    [
        pytest.param(BROKEN, [starting("o1"), N1, N2], True, id="none was ready"),
        pytest.param(ILL, [O1, O2, starting("o3"), N1], True, id="so many are ready"),
        pytest.param(ILL, [O1, N2, N3], False, id="so many are, but of the other template"),
        pytest.param(WELL, [O1, O2, O3, N1], False, id="all were ready: all must be as before"),
    ],
)
def test_pods_of_the_failed_template_may_stay_where_those_before_do_not_get_ready(
    before: Counts, pods: list[Json], expected: bool
) -> None:
    live = workload("Deployment", replicas(4, 3, 2))
    failed = Baseline(frozenset({"n1", "n2", "n3"}), restores=before)
    assert kind_of(live).is_no_less_ready(live, pods, failed) is expected
    assert not kind_of(live).is_no_less_ready(live, pods, replace(failed, restores=None))
    unseen = {**live, "metadata": {**live["metadata"], "generation": 3}}
    assert not kind_of(live).is_no_less_ready(unseen, pods, failed)


# --- complete, whatever its pods' age -----------------------------------------------------------

THERE: dict[str, tuple[Json, list[Json], Verdict]] = {
    "all pods are there, Ready or not": (
        workload("StatefulSet", {}), [O1, starting("n1"), bad("n2")], (DONE, ""),
    ),
    "one more than wanted is there": (workload("StatefulSet", {}), [O1, O2, O3, N1], (DONE, "")),
    "one is missing": (
        workload("StatefulSet", {}), [O1, O2], (PROGRESSING, "2 of 3 pods are there"),
    ),
    "one is being deleted": (
        workload("StatefulSet", {}), [O1, O2, LEAVING], (PROGRESSING, "2 of 3 pods are there"),
    ),
    "one has ended": (
        workload("StatefulSet", {}), [O1, O2, pod("o3", phase="Failed")],
        (PROGRESSING, "2 of 3 pods are there"),
    ),
    "the controller has not looked yet": (
        workload("StatefulSet", {"observedGeneration": 1}), [O1, O2, O3],
        (PROGRESSING, "its controller has not seen the change yet"),
    ),
    "no more come while one is not Ready": (
        workload("StatefulSet", {}), [O1, bad("o2")], (DONE, ""),
    ),
    "no more come while one is not Ready, once the controller has looked": (
        workload("StatefulSet", {"observedGeneration": 1}), [O1, bad("o2")],
        (PROGRESSING, "its controller has not seen the change yet"),
    ),
    "a ReplicaSet does not wait for one that is not Ready": (
        workload("ReplicaSet", {}), [O1, bad("o2")], (PROGRESSING, "2 of 3 pods are there"),
    ),
    "a DaemonSet has one on each node": (
        workload("DaemonSet", {"desiredNumberScheduled": 2}, replicas=9), [O1, O2], (DONE, ""),
    ),
    "a DaemonSet lacks one": (
        workload("DaemonSet", {"desiredNumberScheduled": 2}), [O1],
        (PROGRESSING, "1 of 2 pods are there"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("live", "pods", "expected"), THERE.values(), ids=THERE.keys())
def test_a_workload_is_complete_when(live: Json, pods: list[Json], expected: Verdict) -> None:
    found = kind_of(live).completeness(live, pods, Baseline())
    assert (found.state, found.message) == expected


# --- pods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "ready"),
    [
        pytest.param(pod("p"), True, id="its condition says so"),
        pytest.param(pod("p", ready=False), False, id="its condition says no"),
        pytest.param(pod("p", deleting=True), False, id="not while it is being deleted"),
        pytest.param({"metadata": {"name": "p"}}, False, id="not without a status"),
        pytest.param(
            pod("p", status={"conditions": [{"type": "Initialized", "status": "True"}]}), False,
            id="not by another condition",
        ),
    ],
)  # fmt: skip
def test_a_pod_is_ready(body: Json, ready: bool) -> None:
    assert is_ready(body) is ready


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_has_finished_by_its_phase(phase: str, finished: bool) -> None:
    assert is_finished(pod("p", phase=phase)) is finished
    assert not is_finished({"metadata": {"name": "p"}})


@pytest.mark.parametrize(
    ("states", "deleted", "ended"),
    [
        (["terminated", "terminated"], True, True),
        (["terminated", "running"], True, False),
        (["terminated"], False, False),
        ([], True, False),
    ],
)
def test_a_pod_has_ended_that_is_being_deleted_and_whose_containers_have(
    states: list[str], deleted: bool, ended: bool
) -> None:
    metadata = {"name": "p", **({"deletionTimestamp": "now"} if deleted else {})}
    statuses = [{"name": f"c{number}", "state": {state: {}}} for number, state in enumerate(states)]
    status = {"phase": "Running", "containerStatuses": statuses}
    assert has_ended({"metadata": metadata, "status": status}) is ended


CRASHED = {"exitCode": 1}
PROBLEMS: dict[str, tuple[list[Json], dict[str, int] | None, str | None]] = {
    "an image that cannot be pulled": (
        [container(waiting=PULL, started=False)], None,
        PULL_TEXT,
    ),
    "a missing ConfigMap": (
        [container(waiting={"reason": "CreateContainerConfigError",
                            "message": 'configmap "absent" not found'}, started=False)],
        None, 'CreateContainerConfigError: configmap "absent" not found',
    ),
    "a crash loop": (
        [container(restarts=2, waiting={"reason": "CrashLoopBackOff"}, ended=CRASHED)], None,
        "CrashLoopBackOff",
    ),
    "a reason without a message": (
        [container(waiting={"reason": "InvalidImageName"})], None, "InvalidImageName",
    ),
    "a container that is being made": (
        [container(waiting={"reason": "ContainerCreating"})], None, None,
    ),
    "a container that waits for init containers": (
        [container(waiting={"reason": "PodInitializing"})], None, None,
    ),
    "a container that has crashed and runs again": (
        [container(restarts=1, running={}, ended=CRASHED)], None,
        "CrashLoopBackOff: ended with exit code 1",
    ),
    "a container that has crashed and is down": (
        [container(restarts=1, terminated={"exitCode": 137})], None,
        "CrashLoopBackOff: ended with exit code 137",
    ),
    "a container that has crashed for the first time": (
        [container(terminated=CRASHED)], None, None,
    ),
    "a container that has crashed and is ready again": (
        [container(restarts=3, ready=True, running={}, ended=CRASHED)], None, None,
    ),
    "a container that ended well and was started again": (
        [container(restarts=1, running={}, ended={"exitCode": 0})], None, None,
    ),
    "the one restart that an update wants": (
        [container(restarts=5, running={}, ended={"exitCode": 137})], {"a": 4}, None,
    ),
    "one more restart than the update wants": (
        [container(restarts=6, running={}, ended={"exitCode": 137})], {"a": 4},
        "CrashLoopBackOff: ended with exit code 137",
    ),
    "the restart of another container": (
        [container(restarts=1, running={}, ended=CRASHED)], {"b": 4},
        "CrashLoopBackOff: ended with exit code 1",
    ),
    "no status of the container": ([], None, None),
    "a status without a state": ([{"name": "a"}], None, None),
}  # fmt: skip


@pytest.mark.parametrize(
    ("containers", "restarts", "found"), PROBLEMS.values(), ids=PROBLEMS.keys()
)
def test_a_pods_trouble_is_named(
    containers: list[Json], restarts: dict[str, int] | None, found: str | None
) -> None:
    body = pod("p", ready=False, containers=containers)
    expected = None if found is None else f"pod p, container a: {found}"
    assert problem(body, restarts) == expected


@pytest.mark.parametrize(
    "reason",
    [
        "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImagePull",
        "ErrImageNeverPull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName",
        "RunContainerError",
    ],
)  # fmt: skip
def test_a_reason_that_waiting_does_not_mend_is_trouble(reason: str) -> None:
    assert problem(bad("p", reason)) == f"pod p, container a: {reason}"


def test_an_init_containers_trouble_comes_first() -> None:
    init = [container("ok", ready=True), container("i", waiting={"reason": "ErrImagePull"})]
    later = [container("a", waiting={"reason": "CrashLoopBackOff"})]
    body = pod("p", ready=False, containers=later, status={"initContainerStatuses": init})
    assert problem(body) == "pod p, container i: ErrImagePull"


# --- a Pod of its own ---------------------------------------------------------------------------


def restarted(before: Json, after: Json, *containers: str) -> Verdict:
    found = pod_kind.judge_restart(after, Baseline.of([before], containers))
    return found.state, found.message


RUNNING = container(restarts=2, ready=True, running={})
IN_PLACE: dict[str, tuple[Json, Verdict]] = {
    "nothing has happened yet": (
        pod("p", containers=[RUNNING]), (PROGRESSING, "container a has not restarted yet"),
    ),
    "the container is being made again": (
        pod("p", ready=False, containers=[
            container(restarts=2, waiting={"reason": "ContainerCreating"}, ended={"exitCode": 0})
        ]),
        (PROGRESSING, "container a has not restarted yet"),
    ),
    "its status is not there": (
        pod("p", ready=False), (PROGRESSING, "container a has not restarted yet"),
    ),
    "the pod's status is not there": (
        {"metadata": {"name": "p"}}, (PROGRESSING, "container a has not restarted yet"),
    ),
    "it was started again and is not ready": (
        pod("p", ready=False, containers=[container(restarts=3, running={}, ended=CRASHED)]),
        (PROGRESSING, "pod p is not Ready (phase Running)"),
    ),
    "it was started again and is ready": (
        pod("p", containers=[container(restarts=3, ready=True, running={})]), (DONE, ""),
    ),
    "it was started again and has done its work": (
        pod("p", ready=False, phase="Succeeded",
            containers=[container(restarts=3, terminated={"exitCode": 0})]),
        (DONE, ""),
    ),
    "its new image cannot be pulled": (
        pod("p", ready=False, containers=[container(restarts=2, waiting=PULL)]),
        (FAILING, f"pod p, container a: {PULL_TEXT}"),
    ),
    "it crashes": (
        pod("p", ready=False, containers=[container(restarts=4, running={}, ended=CRASHED)]),
        (FAILING, "pod p, container a: CrashLoopBackOff: ended with exit code 1"),
    ),
    "the pod is being deleted": (
        pod("p", deleting=True, containers=[container(restarts=3, ready=True)]),
        (FAILED, "pod p is gone or has failed"),
    ),
    "the pod has failed": (
        pod("p", phase="Failed", ready=False), (FAILED, "pod p is gone or has failed"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("after", "expected"), IN_PLACE.values(), ids=IN_PLACE.keys())
def test_a_pod_is_restarted_in_place_when(after: Json, expected: Verdict) -> None:
    assert restarted(pod("p", containers=[RUNNING]), after, "a") == expected


def test_every_container_of_a_restart_in_place_is_waited_for_and_no_other() -> None:
    before = pod("p", containers=[container("a", ready=True), container("b", ready=True)])
    after = pod(
        "p", containers=[container("a", restarts=1, ready=True), container("b", ready=True)]
    )
    assert restarted(before, after, "a") == (DONE, "")
    waiting = (PROGRESSING, "container b has not restarted yet")
    assert restarted(before, after, "a", "b") == waiting
    assert restarted(before, pod("p"), "b") == waiting


def test_a_sidecars_restart_is_waited_for() -> None:
    before = pod("p", status={"initContainerStatuses": [container("side", ready=True)]})
    assert restarted(before, before, "side")[0] is PROGRESSING
    after = pod("p", status={"initContainerStatuses": [container("side", restarts=1, ready=True)]})
    assert restarted(before, after, "side") == (DONE, "")


NEVER_STARTED = {
    "its old image could not be pulled": [container(waiting=PULL, started=False)],
    "its old configuration was missing": [
        container(waiting={"reason": "CreateContainerConfigError"}, started=False)
    ],
    "nothing is known of it": [],
    "its status has no state": [{"name": "a", "ready": False, "restartCount": 0}],
}


@pytest.mark.parametrize("statuses", NEVER_STARTED.values(), ids=NEVER_STARTED.keys())
def test_a_container_that_never_started_starts_without_counting_a_restart(
    statuses: list[Json],
) -> None:
    before = pod("p", ready=False, phase="Pending", containers=statuses)
    assert restarted(before, before, "a")[0] is not DONE
    after = pod("p", containers=[container(restarts=0, ready=True, running={})])
    assert restarted(before, after, "a") == (DONE, "")
    once = pod("p", ready=False, containers=[container(terminated=CRASHED)])
    assert restarted(before, once, "a")[0] is PROGRESSING
    crashed = container(restarts=1, waiting={"reason": "CrashLoopBackOff"}, ended=CRASHED)
    assert restarted(before, pod("p", ready=False, containers=[crashed]), "a")[0] is FAILING


@pytest.mark.parametrize(
    "was",
    [
        pytest.param(container(restarts=0, started=False, terminated=CRASHED), id="it has ended"),
        pytest.param(container(restarts=0, started=False, running={}), id="it runs"),
        pytest.param(
            container(restarts=0, waiting=PULL, started=False, ended={"exitCode": 0}),
            id="it ran before its image changed",
        ),
        pytest.param(container(restarts=0, waiting=PULL), id="it has an id"),
    ],
)
def test_a_container_that_was_started_counts_a_restart(was: Json) -> None:
    before = pod("p", ready=False, containers=[was])
    after = pod("p", containers=[container(restarts=0, ready=True, running={})])
    assert restarted(before, after, "a") == (PROGRESSING, "container a has not restarted yet")


RECREATED: dict[str, tuple[Json | None, Verdict]] = {
    "there is none": (None, (PROGRESSING, "the new pod is not there yet")),
    "it is the old one": (pod("p", uid="old"), (PROGRESSING, "the old pod is still there")),
    "the old one has ended": (
        pod("p", uid="old", phase="Failed"), (PROGRESSING, "the old pod is still there"),
    ),
    "it starts": (
        pod("p", ready=False, phase="Pending"), (PROGRESSING, "pod p is not Ready (phase Pending)"),
    ),
    "it cannot be scheduled": (
        pod("p", ready=False, phase="Pending", status={"conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]}),
        (PROGRESSING, "pod p is not Ready: 0/1 nodes are available"),
    ),
    "a condition that is true explains nothing": (
        pod("p", ready=False, phase="Pending", status={"conditions": [
            {"type": "PodScheduled", "status": "True", "message": "all is well"}]}),
        (PROGRESSING, "pod p is not Ready (phase Pending)"),
    ),
    "it has no status": (
        {"metadata": {"name": "p", "uid": "p"}},
        (PROGRESSING, "pod p is not Ready (phase Pending)"),
    ),
    "it is Ready": (pod("p"), (DONE, "")),
    "it is Ready and being deleted": (
        pod("p", deleting=True), (PROGRESSING, "pod p is still being deleted"),
    ),
    "it has done its work": (pod("p", phase="Succeeded", ready=False), (DONE, "")),
    "it does not start": (bad("p"), (FAILING, "pod p, container a: ErrImagePull")),
    "it crashes": (
        crashing("p"), (FAILING, "pod p, container a: CrashLoopBackOff: ended with exit code 1"),
    ),
    "it failed": (
        pod("p", phase="Failed", ready=False), (FAILED, "pod p failed: it ended with an error"),
    ),
    "it failed, its container says why": (
        pod("p", phase="Failed", ready=False, containers=[container(waiting=PULL)]),
        (FAILED, f"pod p failed: pod p, container a: {PULL_TEXT}"),
    ),
    "it failed, the node says why": (
        pod("p", phase="Failed", ready=False, status={"reason": "UnexpectedAdmissionError"}),
        (FAILED, "pod p failed: UnexpectedAdmissionError"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("live", "expected"), RECREATED.values(), ids=RECREATED.keys())
def test_a_pod_is_created_again_when(live: Json | None, expected: Verdict) -> None:
    found = pod_kind.judge_new_pod(live, baseline("old"))
    assert (found.state, found.message) == expected


def test_a_baseline_is_of_pods_and_of_the_containers_to_restart() -> None:
    first = pod("p", containers=[container("a", restarts=2), container("b", restarts=3)])
    assert Baseline.of([first, O1]) == Baseline(frozenset({"p", "o1"}), {})
    assert Baseline.of([first], ("b",)) == Baseline(frozenset({"p"}), {"b": 3})
    assert Baseline.of([]) == Baseline()


NOT_FOUND = "rpc error: code = NotFound desc = failed to pull and unpack image: not found"
NO_CODE = 'failed to pull and unpack image "r/a-not-found:1": not found'
UNREACHABLE = "rpc error: code = Unavailable desc = connection refused"
DENIED = 'failed to resolve reference "r/a:1": pull access denied, may require authorization'
NAMED = 'failed to pull and unpack image "r/not-found:401": r/not-found:401: connection refused'


@pytest.mark.parametrize(
    ("reason", "message", "seconds"),
    [
        ("InvalidImageName", "", 0),
        ("ErrImageNeverPull", "", 0),
        ("ErrImagePull", NOT_FOUND, 5),
        ("ErrImagePull", NO_CODE, 5),
        ("ImagePullBackOff", f'Back-off pulling image "a:1": ErrImagePull: {NOT_FOUND}', 5),
        ("ErrImagePull", DENIED, 15),
        ("ImagePullBackOff", f'Back-off pulling image "r/a:1": ErrImagePull: {DENIED}', 15),
        ("ErrImagePull", UNREACHABLE, math.inf),
        ("ErrImagePull", NAMED, math.inf),
        ("ImagePullBackOff", "", math.inf),
        ("CrashLoopBackOff", NOT_FOUND, math.inf),
    ],
)
def test_only_for_an_image_that_is_refused_there_is_an_end_to_patience(
    reason: str, message: str, seconds: float
) -> None:
    trouble = container(waiting={"reason": reason, "message": message}, started=False)
    assert patience(pod("n1", ready=False, containers=[trouble])) == seconds


OF_CONTAINERD = (
    'Back-off pulling image "r.example/a/b:2": ErrImagePull: rpc error: code = NotFound desc = '
    'failed to pull and unpack image "r.example/a/b:2": failed to resolve reference '
    '"r.example/a/b:2": r.example/a/b:2: not found'
)


@pytest.mark.parametrize(
    ("message", "short"),
    [
        (OF_CONTAINERD, 'image "r.example/a/b:2": not found'),
        (
            'Back-off pulling image "b": ErrImagePull: pull access denied for b',
            'image "b": pull access denied for b',
        ),
        ('Back-off pulling image "b:1"', 'image "b:1"'),
        ("connection refused", "connection refused"),
    ],
)
def test_what_a_kubelet_says_of_a_pull_names_the_image_once(message: str, short: str) -> None:
    assert pull_text(message) == short
