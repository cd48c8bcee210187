"""The order of an undo, on a cluster in memory."""

from __future__ import annotations

import copy

import pytest

from container_update.cluster.execution.context import ExecutionContext
from container_update.cluster.execution.rollout import RolloutWaiter
from container_update.cluster.execution.undo import Undo
from container_update.cluster.execution.writer import ObjectWriter
from container_update.cluster.informer import Informer
from container_update.cluster.waiting import Waiter
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import StepState
from container_update.model.plan import Action
from container_update.planning.steps import ManifestStep
from tests.unit.fakes import FakeCluster

JOB = ObjectKey("batch", "CronJob", "ns", "old")
SCALER = ObjectKey("autoscaling", "HorizontalPodAutoscaler", "ns", "scaler")


def body(key: ObjectKey, target: str = "") -> Json:
    spec: Json = {"scaleTargetRef": {"name": target}} if target else {"jobTemplate": {"spec": {}}}
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{key.group}/v1", "kind": key.kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("state", ["there", "gone", "being deleted"])
def test_what_was_removed_is_there_again_before_anything_points_at_it(state: str) -> None:
    """One that is being deleted is as good as gone, though it can be read."""
    cluster = FakeCluster(body(JOB), body(SCALER, "new"))
    before = copy.deepcopy(cluster.objects[JOB])
    old_scaler = {**cluster.objects[SCALER], "spec": {"scaleTargetRef": {"name": "old"}}}
    if state == "gone":
        del cluster.objects[JOB]
    if state == "being deleted":
        cluster.objects[JOB]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    looks = []

    def let_go(verb: str, key: ObjectKey) -> None:
        if state == "being deleted" and (verb, key) == ("get", JOB):
            looks.append(verb)
            if len(looks) == 3:
                del cluster.objects[JOB]

    cluster.hooks.append(let_go)
    steps = (
        ManifestStep(SCALER, Action.SWITCH, old_scaler, content=body(SCALER, "new")),
        ManifestStep(JOB, Action.DELETE, before),
    )
    waiter = Waiter(Informer(cluster), 1.0)
    context = ExecutionContext(ObjectWriter(cluster, waiter), RolloutWaiter(waiter))
    results = Undo(context, workers=2).run(steps, waiter.clock() + 10)
    assert {result.state for result in results} == {StepState.UNDONE}
    writes = [call.split()[0] for call in cluster.calls if not call.startswith("get")]
    assert writes == (["replace"] if state == "there" else ["create", "replace"])
    assert "deletionTimestamp" not in cluster.objects[JOB]["metadata"]
