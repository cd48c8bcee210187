# SPDX-License-Identifier: Apache-2.0
"""The controllers' rules beyond what was recorded: arithmetic, order, claims, limits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from container_update.emulator.kubernetes.controllers.disruption import budget_status
from container_update.emulator.kubernetes.controllers.workloads import deployment_status, rollout
from container_update.emulator.kubernetes.controllers.workloads.replicaset import deletion_order
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.objects import condition_of
from tests.emulator.stage import (
    Stage,
    image,
    on_stage,
    on_stage_with,
    pod_spec,
    scale,
    workload,
)
from tests.internals.core import Json

# --- arithmetic -------------------------------------------------------------------------------

LIMITS = [
    (4, None, (1, 1)),
    (10, {}, (3, 2)),
    (1, {}, (1, 0)),
    (3, {"maxSurge": "34%", "maxUnavailable": "34%"}, (2, 1)),
    (4, {"maxSurge": 0, "maxUnavailable": "10%"}, (0, 1)),
    (4, {"maxSurge": 1, "maxUnavailable": 0}, (1, 0)),
    (2, {"maxSurge": 5, "maxUnavailable": 5}, (5, 2)),
    (0, {"maxSurge": 0, "maxUnavailable": 0}, (0, 0)),
]


def _deployment(replicas: int, rolling: Json | None, kind: str = "RollingUpdate") -> Json:
    strategy: Json = {"type": kind}
    if rolling is not None:
        strategy["rollingUpdate"] = rolling
    return {"spec": {"replicas": replicas, "strategy": strategy}}


@pytest.mark.parametrize(("replicas", "rolling", "expected"), LIMITS)
def test_a_surge_rounds_up_and_a_lack_rounds_down(
    replicas: int, rolling: Json | None, expected: tuple[int, int]
) -> None:
    assert rollout.limits(_deployment(replicas, rolling)) == expected


def test_recreate_knows_neither_surge_nor_lack() -> None:
    assert rollout.limits(_deployment(4, {"maxSurge": 2}, "Recreate")) == (0, 0)


def _set(name: str, replicas: int, available: int, most: int | None = None) -> Json:
    annotations = {} if most is None else {rollout.MAX: str(most)}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "availableReplicas": available},
    }


SHRINKING = [
    ("nothing goes while the new pod is not available",
     4, _set("new", 1, 0), [_set("old", 4, 4)], {}),
    ("one goes for each new pod that is available",
     4, _set("new", 1, 1), [_set("old", 4, 4)], {"old": 3}),
    ("what is not available goes first, whichever set it is in",
     4, _set("new", 1, 0), [_set("a", 2, 2), _set("b", 2, 0)], {}),
    ("broken pods of an old set go at once where others are available",
     4, _set("new", 1, 1), [_set("a", 3, 3), _set("b", 1, 0)], {"b": 0}),
    ("the oldest set goes before the younger",
     4, _set("new", 3, 3), [_set("a", 1, 1), _set("b", 1, 1)], {"a": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("_rule", "desired", "new", "old", "expected"), SHRINKING)
def test_old_sets_shrink_as_far_as_availability_allows(
    _rule: str, desired: int, new: Json, old: list[Json], expected: dict[str, int]
) -> None:
    deployment = _deployment(desired, {"maxSurge": 1, "maxUnavailable": 0})
    assert rollout.next_sizes_of_old(deployment, new, old) == expected


GROWING = [
    ("a first set takes all there is room for", 4, [], None, 4),
    ("a new set grows by what the surge leaves", 4, [("old", 4)], ("new", 0), 1),
    ("it grows as the old shrink", 4, [("old", 2)], ("new", 1), 3),
    ("never beyond the desired number", 4, [], ("new", 3), 4),
    ("it shrinks when fewer are desired", 2, [], ("new", 5), 2),
]


@pytest.mark.parametrize(("_rule", "desired", "old", "new", "expected"), GROWING)
def test_the_new_set_grows_within_the_surge(
    _rule: str, desired: int, old: list[tuple[str, int]], new: tuple[str, int] | None, expected: int
) -> None:
    deployment = _deployment(desired, {"maxSurge": 1, "maxUnavailable": 0})
    new_set = _set(*new, 0) if new else None
    sets = [_set(name, size, size) for name, size in old] + ([new_set] if new_set else [])
    assert rollout.next_size_of_new(deployment, sets, new_set) == expected


PROPORTIONS = [
    (10, [("new", 5), ("old", 8)], 13, {"new": 5, "old": 8}),
    (20, [("new", 5), ("old", 8)], 13, {"new": 10, "old": 15}),
    (5, [("new", 5), ("old", 8)], 13, {"new": 3, "old": 4}),
    (0, [("new", 5), ("old", 8)], 13, {"new": 0, "old": 0}),
    (5, [("new", 2), ("old", 2)], 5, {"new": 4, "old": 3}),
]


@pytest.mark.parametrize(("desired", "sizes", "most", "expected"), PROPORTIONS)
def test_scaling_in_mid_rollout_keeps_the_proportions(
    desired: int, sizes: list[tuple[str, int]], most: int, expected: dict[str, int]
) -> None:
    deployment = _deployment(desired, {"maxSurge": "25%", "maxUnavailable": "25%"})
    sets = [_set(name, size, size, most) for name, size in sizes]
    sizes_found = rollout.proportional_sizes(deployment, sets)
    assert sizes_found == expected
    assert sum(sizes_found.values()) == (rollout.max_replicas(deployment) if desired else 0)


def test_a_hash_has_the_form_that_names_have() -> None:
    hashes = {template_hash({"image": f"app:{number}"}) for number in range(50)}
    assert len(hashes) == 50
    assert all(re.fullmatch("[456789bcdf]{1,10}", value) for value in hashes)
    assert template_hash({"a": 1}) == template_hash({"a": 1}) != template_hash({"a": 1}, 1)


# --- which pod goes first ---------------------------------------------------------------------


def _pod(name: str, **facts: Any) -> Json:
    ready = facts.get("ready", "2024-01-01T00:00:00Z")
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}]
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": facts.get("created", "2024-01-01T00:00:00Z"),
            "annotations": facts.get("annotations", {}),
        },
        "spec": {"nodeName": facts.get("node", "n1")} if facts.get("node", "n1") else {},
        "status": {
            "phase": facts.get("phase", "Running"),
            "conditions": conditions if ready else [],
            "containerStatuses": [{"restartCount": facts.get("restarts", 0)}],
        },
    }


COST = "controller.kubernetes.io/pod-deletion-cost"
FIRST_TO_GO = [
    ("one without a node", {"node": "", "phase": "Pending", "ready": ""}, {"phase": "Pending"}),
    ("one that is pending", {"phase": "Pending", "ready": ""}, {"ready": ""}),
    ("one that is not ready", {"ready": ""}, {}),
    ("one of lower cost", {"annotations": {COST: "-1"}}, {}),
    ("one ready for a shorter time", {"ready": "2024-01-02T00:00:00Z"}, {}),
    ("one with more restarts", {"restarts": 2}, {"restarts": 1}),
    ("the younger", {"created": "2024-01-02T00:00:00Z"}, {}),
]


@pytest.mark.parametrize(("_rule", "first", "second"), FIRST_TO_GO)
def test_the_pod_whose_loss_matters_least_goes_first(_rule: str, first: Json, second: Json) -> None:
    pods = [_pod("stays", **second), _pod("goes", **first)]
    assert [pod["metadata"]["name"] for pod in deletion_order(pods)] == ["goes", "stays"]


def test_of_equal_pods_one_on_the_fuller_node_goes_first() -> None:
    pods = [_pod("alone", node="n2"), _pod("x", node="n1"), _pod("y", node="n1")]
    assert deletion_order(pods)[-1]["metadata"]["name"] == "alone"


# --- disruption budgets -----------------------------------------------------------------------

BUDGETS = [
    ({"minAvailable": 2}, 3, 3, (1, 3, 2, 3)),
    ({"minAvailable": 3}, 3, 3, (0, 3, 3, 3)),
    ({"minAvailable": "50%"}, 3, 4, (1, 3, 2, 4)),
    ({"maxUnavailable": 1}, 3, 3, (1, 3, 2, 3)),
    ({"maxUnavailable": "30%"}, 4, 4, (2, 4, 2, 4)),
    ({"maxUnavailable": 1}, 2, 4, (0, 2, 3, 4)),
    ({"minAvailable": 1}, 0, 0, (0, 0, 1, 0)),
    ({"maxUnavailable": 1}, 1, 0, (0, 1, 0, 0)),
]


@pytest.mark.parametrize(("spec", "ready", "scale_of_owner", "expected"), BUDGETS)
def test_a_budget_counts_what_may_go(
    spec: Json, ready: int, scale_of_owner: int, expected: tuple[int, int, int, int]
) -> None:
    budget = {"metadata": {"generation": 1}, "spec": spec, "status": {}}
    pods = [_pod(f"p{number}") for number in range(ready)]
    status = budget_status(budget, pods, scale_of_owner, "now")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    assert tuple(status[name] for name in counts) == expected


def test_a_pod_whose_eviction_was_granted_counts_as_lost_until_it_is_deleting() -> None:
    pods = [_pod(f"p{number}") for number in range(3)]
    old_status = {"disruptedPods": {"p0": "then", "gone": "then"}}
    budget = {"metadata": {"generation": 1}, "spec": {"minAvailable": 2}, "status": old_status}
    status = budget_status(budget, pods, 3, "now")
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 0)
    assert status["disruptedPods"] == {"p0": "then"}
    pods[0]["metadata"]["deletionTimestamp"] = "now"
    assert "disruptedPods" not in budget_status(budget, pods, 3, "now")


# --- Deployments ------------------------------------------------------------------------------


async def _rolled(stage: Stage, kind: str, name: str) -> None:
    await stage.until(lambda: stage.is_rolled_out(kind, name), f"{kind} {name} rolled out")
    await stage.settle()


def _revision(obj: Json) -> str:
    return str(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


@on_stage
async def test_going_back_to_a_template_takes_up_its_replicaset_as_a_new_revision(
    stage: Stage,
) -> None:
    stage.create("deployments", workload("deployments", "d"))
    await _rolled(stage, "deployments", "d")
    (first,) = stage.stored("replicasets")
    for value in ("app:2", "app:1"):
        stage.change("deployments", "d", image(value))
        await _rolled(stage, "deployments", "d")
    await stage.until(lambda: _revision(stage.get("deployments", "d")) == "3")
    adopted = stage.get("replicasets", first["metadata"]["name"])
    assert (_revision(adopted), adopted["spec"]["replicas"]) == ("3", 2)
    assert len(stage.stored("replicasets")) == 2
    history = adopted["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"]
    assert history == "1"


@on_stage
async def test_only_so_many_old_replicasets_are_kept(stage: Stage) -> None:
    stage.create("deployments", workload("deployments", "d", 1, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        await _rolled(stage, "deployments", "d")
        stage.change("deployments", "d", image(f"app:{number}"))
    await _rolled(stage, "deployments", "d")
    await stage.until(lambda: len(stage.stored("replicasets")) == 2)
    assert sorted(map(_revision, stage.stored("replicasets"))) == ["3", "4"]


@on_stage
async def test_a_deployment_whose_hash_is_taken_uses_another(stage: Stage) -> None:
    body = workload("deployments", "d", 1)
    stage.create("deployments", body)
    await _rolled(stage, "deployments", "d")
    (first,) = stage.stored("replicasets")
    taken = {**workload("replicasets", first["metadata"]["name"], 0)}
    stage.delete("deployments", "d", propagation="Background")
    await stage.until(lambda: not stage.stored("replicasets"))
    stage.create("replicasets", taken)
    stage.create("deployments", body)
    await _rolled(stage, "deployments", "d")
    assert stage.status("deployments", "d")["collisionCount"] == 1


@on_stage
async def test_a_paused_deployment_can_be_scaled_and_rolls_when_resumed(stage: Stage) -> None:
    stage.create("deployments", workload("deployments", "d"))
    await _rolled(stage, "deployments", "d")

    def pause(value: bool) -> Any:
        return lambda body: body["spec"].update(paused=value)

    stage.change("deployments", "d", pause(True), image("app:2"), scale(3))
    await stage.until(lambda: stage.status("deployments", "d").get("readyReplicas") == 3)
    assert {pod["spec"]["containers"][0]["image"] for pod in stage.stored("pods")} == {"app:1"}
    stage.change("deployments", "d", pause(False))
    await _rolled(stage, "deployments", "d")
    assert {pod["spec"]["containers"][0]["image"] for pod in stage.stored("pods")} == {"app:2"}


@on_stage
async def test_availability_comes_after_the_minimum_of_ready_seconds(stage: Stage) -> None:
    stage.create("deployments", workload("deployments", "d", 1, minReadySeconds=2))
    await stage.until(lambda: stage.status("deployments", "d").get("availableReplicas") == 1)
    ready = [
        obj["status"].get("availableReplicas", 0)
        for _, obj in stage.since(0, "deployments")
        if obj["status"].get("readyReplicas") == 1
    ]
    assert ready == [0, 1]


def test_fewer_old_pods_alone_are_progress() -> None:
    progress = deployment_status.condition(
        "Progressing", "True", "NewReplicaSetCreated", "", "then"
    )
    old = {"replicas": 3, "updatedReplicas": 1, "observedGeneration": 1, "conditions": [progress]}
    deployment = {
        "metadata": {"name": "d", "generation": 1},
        "spec": {"replicas": 2, "progressDeadlineSeconds": 600},
        "status": old,
    }
    sets = [_set("new", 1, 0), _set("old", 1, 1)]
    status = deployment_status.progress_status(deployment, sets[0], sets, late=True, now="now")
    progress = condition_of({"status": status}, "Progressing")
    assert progress is not None
    assert (progress["reason"], progress["lastUpdateTime"]) == ("ReplicaSetUpdated", "now")


# --- ReplicaSets ------------------------------------------------------------------------------


@on_stage
async def test_a_pod_that_no_longer_matches_is_released_and_replaced(stage: Stage) -> None:
    stage.create("replicasets", workload("replicasets", "r", 2))
    await _rolled(stage, "replicasets", "r")
    name = stage.stored("pods")[0]["metadata"]["name"]
    stage.change("pods", name, lambda body: body["metadata"]["labels"].update(app="other"))
    await _rolled(stage, "replicasets", "r")
    assert "ownerReferences" not in stage.get("pods", name)["metadata"]
    assert len(stage.stored("pods")) == 3


@on_stage
async def test_a_pod_on_its_way_out_is_not_adopted(stage: Stage) -> None:
    stage.behaviour.stop_seconds = 3600
    pod = {"metadata": {"name": "leaving", "labels": {"app": "r"}}, "spec": pod_spec()}
    stage.create("pods", pod)
    await stage.until(lambda: stage.status("pods", "leaving")["phase"] == "Running")
    stage.delete("pods", "leaving")
    stage.create("replicasets", workload("replicasets", "r", 1))
    await stage.until(lambda: stage.status("replicasets", "r").get("readyReplicas") == 1)
    assert "ownerReferences" not in stage.get("pods", "leaving")["metadata"]


# --- DaemonSets -------------------------------------------------------------------------------


def _most_at_once(stage: Stage, mark: int, name: str) -> int:
    counts: list[int] = [obj["status"].get(name, 0) for _, obj in stage.since(mark, "daemonsets")]
    return max(counts)


STEPS = [({"maxUnavailable": 1}, 1), ({"maxUnavailable": "50%"}, 2), ({"maxUnavailable": 4}, 4)]


@pytest.mark.parametrize(("rolling", "most"), STEPS)
def test_a_daemonset_takes_no_more_nodes_than_allowed_at_once(rolling: Json, most: int) -> None:
    @on_stage_with(nodes=4)
    async def scenario(stage: Stage) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        body = workload("daemonsets", "d", None, updateStrategy=strategy)
        stage.create("daemonsets", body)
        await _rolled(stage, "daemonsets", "d")
        assert {pod["spec"]["nodeName"] for pod in stage.stored("pods")} == {
            "node-1", "node-2", "node-3", "node-4",
        }  # fmt: skip
        mark = stage.mark()
        stage.change("daemonsets", "d", image("app:2"))
        await _rolled(stage, "daemonsets", "d")
        assert _most_at_once(stage, mark, "numberUnavailable") == most

    scenario()


@on_stage_with(nodes=3)
async def test_a_daemonset_with_surge_keeps_every_node_served(stage: Stage) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    stage.create("daemonsets", workload("daemonsets", "d", None, updateStrategy=strategy))
    await _rolled(stage, "daemonsets", "d")
    ready, least = {pod["metadata"]["name"] for pod in stage.stored("pods")}, 3
    available, most = set(ready), 3
    mark = stage.mark()
    stage.change("daemonsets", "d", image("app:2"))
    await _rolled(stage, "daemonsets", "d")
    for event, pod in stage.since(mark, "pods"):
        name = pod["metadata"]["name"]
        conditions = pod["status"].get("conditions", [])
        says_ready = any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)
        serves = event != "DELETED" and says_ready
        (ready.add if serves else ready.discard)(name)
        least = min(least, len(ready))
        leaves = event == "DELETED" or "deletionTimestamp" in pod["metadata"]
        (available.discard if leaves else available.add)(name)
        most = max(most, len(available))
    assert (least, most) == (3, 4)
    images = {pod["spec"]["containers"][0]["image"] for pod in stage.stored("pods")}
    assert images == {"app:2"}


@on_stage_with(nodes=3)
async def test_a_daemon_pod_comes_back_to_the_node_that_lost_it(stage: Stage) -> None:
    stage.create("daemonsets", workload("daemonsets", "d", None))
    await _rolled(stage, "daemonsets", "d")
    for node in ("node-3", "node-2", "node-3"):
        (pod,) = [pod for pod in stage.stored("pods") if pod["spec"]["nodeName"] == node]
        stage.delete("pods", pod["metadata"]["name"])
        await stage.until(lambda: stage.status("daemonsets", "d")["numberReady"] == 2)
        await _rolled(stage, "daemonsets", "d")
        nodes = sorted(pod["spec"]["nodeName"] for pod in stage.stored("pods"))
        assert nodes == ["node-1", "node-2", "node-3"]


@on_stage
async def test_a_pod_of_another_scheduler_is_not_bound(stage: Stage) -> None:
    for name, scheduler in (("theirs", "another"), ("ours", "default-scheduler")):
        spec = {**pod_spec(), "schedulerName": scheduler}
        stage.create("pods", {"metadata": {"name": name}, "spec": spec})
    await stage.until(lambda: "nodeName" in stage.get("pods", "ours")["spec"])
    assert "nodeName" not in stage.get("pods", "theirs")["spec"]


@on_stage
async def test_a_daemon_pod_that_has_failed_is_replaced(stage: Stage) -> None:
    stage.create("daemonsets", workload("daemonsets", "d", None))
    await _rolled(stage, "daemonsets", "d")
    name = stage.stored("pods")[0]["metadata"]["name"]
    stage.behaviour.evict_pod("rec", name)
    await stage.until(
        lambda: [pod["metadata"]["name"] for pod in stage.stored("pods")] not in ([name], [])
    )
    await _rolled(stage, "daemonsets", "d")


@on_stage
async def test_old_revisions_of_a_daemonset_are_kept_up_to_its_limit(stage: Stage) -> None:
    stage.create("daemonsets", workload("daemonsets", "d", None, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        await _rolled(stage, "daemonsets", "d")
        stage.change("daemonsets", "d", image(f"app:{number}"))
    await _rolled(stage, "daemonsets", "d")
    await stage.until(lambda: len(stage.stored("controllerrevisions")) == 2)
    assert {entry["revision"] for entry in stage.stored("controllerrevisions")} == {3, 4}


# --- StatefulSets -----------------------------------------------------------------------------


def _images(stage: Stage) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in stage.stored("pods", "s-")]


@on_stage
async def test_pods_below_the_partition_stay_as_they_are(stage: Stage) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    stage.create("statefulsets", workload("statefulsets", "s", 3, updateStrategy=strategy))
    await _rolled(stage, "statefulsets", "s")
    stage.change("statefulsets", "s", image("app:2"))
    await stage.until(
        lambda: (
            stage.status("statefulsets", "s").get("updatedReplicas") == 1
            and stage.status("statefulsets", "s").get("readyReplicas") == 3
        )
    )
    assert _images(stage) == ["app:1", "app:1", "app:2"]
    stage.delete("pods", "s-0")
    await stage.until(lambda: stage.status("statefulsets", "s").get("readyReplicas") == 2)
    await stage.until(lambda: stage.status("statefulsets", "s").get("readyReplicas") == 3)
    assert _images(stage) == ["app:1", "app:1", "app:2"]


@on_stage
async def test_parallel_pods_are_all_created_at_once(stage: Stage) -> None:
    stage.behaviour.never_ready = ["s-*"]
    body = workload("statefulsets", "s", 3, podManagementPolicy="Parallel")
    stage.create("statefulsets", body)
    await stage.until(lambda: len(stage.stored("pods", "s-")) == 3)


@on_stage
async def test_a_broken_pod_of_an_ordered_set_has_to_be_deleted_after_a_rollback(
    stage: Stage,
) -> None:
    stage.create("statefulsets", workload("statefulsets", "s", 2))
    await _rolled(stage, "statefulsets", "s")
    stage.change("statefulsets", "s", image("bad:missing"))
    await stage.until(lambda: "ImagePullBackOff" in str(stage.stored("pods", "s-1")))
    stage.change("statefulsets", "s", image("app:1"))
    await stage.until(lambda: stage.status("statefulsets", "s")["observedGeneration"] == 3)
    await stage.settle()
    assert _images(stage) == ["app:1", "bad:missing"]
    stage.delete("pods", "s-1")
    await stage.until(lambda: stage.status("statefulsets", "s").get("readyReplicas") == 2)
    assert _images(stage) == ["app:1", "app:1"]


@on_stage
async def test_scaling_down_takes_the_last_pods_first(stage: Stage) -> None:
    stage.create("statefulsets", workload("statefulsets", "s", 3))
    await _rolled(stage, "statefulsets", "s")
    mark = stage.mark()
    stage.change("statefulsets", "s", scale(1))
    await stage.until(lambda: len(stage.stored("pods", "s-")) == 1)
    deleted = [
        pod["metadata"]["name"] for kind, pod in stage.since(mark, "pods") if kind == "DELETED"
    ]
    assert deleted == ["s-2", "s-1"]


@on_stage
async def test_a_set_adopts_only_what_is_named_as_its_pods_are(stage: Stage) -> None:
    for name in ("s-0", "s-test", "other-1"):
        pod = {"metadata": {"name": name, "labels": {"app": "s"}}, "spec": pod_spec()}
        stage.create("pods", pod)
    stage.create("statefulsets", workload("statefulsets", "s", 2))
    await stage.until(lambda: stage.status("statefulsets", "s").get("updatedReplicas") == 2)
    owned = [pod for pod in stage.stored("pods") if "ownerReferences" in pod["metadata"]]
    assert sorted(pod["metadata"]["name"] for pod in owned) == ["s-0", "s-1"]


# --- all of them ------------------------------------------------------------------------------

REFUSED = 'pods "{pod}" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: '
REFUSALS = {
    "deployments": "Error creating: " + REFUSED,
    "replicasets": "Error creating: " + REFUSED,
    "daemonsets": "Error creating: " + REFUSED,
    "statefulsets": "create Pod {pod} in StatefulSet w failed error: " + REFUSED,
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_pods_that_a_quota_refuses_are_reported_and_created_when_there_is_room(kind: str) -> None:
    """By an Event, of Deployments and ReplicaSets by a condition too; the status is written."""

    def events(stage: Stage) -> list[Json]:
        return [event for event in stage.stored("events") if event["reason"] == "FailedCreate"]

    @on_stage
    async def scenario(stage: Stage) -> None:
        stage.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
        stage.create(kind, workload(kind, "w", None if kind == "daemonsets" else 1))
        await stage.until(lambda: sum(event["count"] for event in events(stage)) > 1)
        pattern = re.escape(REFUSALS[kind]).replace(r"\{pod\}", "w-[-a-z0-9]+") + "pods=0"
        assert all(re.fullmatch(pattern, event["message"]) for event in events(stage))
        assert {event["type"] for event in events(stage)} == {"Warning"}
        await stage.until(lambda: stage.status(kind, "w").get("observedGeneration") == 1)
        if kind in ("deployments", "replicasets"):
            await stage.until(lambda: condition_of(stage.get(kind, "w"), "ReplicaFailure"))
            failure = condition_of(stage.get(kind, "w"), "ReplicaFailure") or {}
            assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
            assert "exceeded quota: q" in failure["message"]
        stage.delete("resourcequotas", "q")
        await _rolled(stage, kind, "w")
        assert condition_of(stage.get(kind, "w"), "ReplicaFailure") is None

    scenario()
