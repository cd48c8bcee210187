# SPDX-License-Identifier: Apache-2.0
"""What a heal and a scaling decide, from a package and what is live; no cluster."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, Plan
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.steps import PodsStep, ScaleStep, object_steps
from container_update.planning.steps.codec import step_from_dict, step_to_dict
from container_update.planning.steps.manifest import DIGEST_ANNOTATION, manifest_digest
from container_update.planning.upkeep import HealPlanner, scale_plan
from tests.unit.planning.test_change import config, deployment, manifests, service

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "solo"},
    "spec": {"containers": [{"name": "main", "image": "a:1"}]},
}
CLAIM: Json = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"resources": {"requests": {"storage": "1Gi"}}},
}
JOB: Json = {**deployment("job"), "apiVersion": "batch/v1", "kind": "Job"}
CNF = (deployment(), POD, service(), config(), CLAIM, JOB)
VDUS = {"VDU1": "web", "VDU2": "solo", "VDU3": "nowhere", "VDU4": "job"}


def packages() -> Packages:
    objects = manifests(CNF)
    return Packages(objects, objects, VDUS, VDUS, "vnfd", ("all.yaml",))


def live(*without: str, pods: int = 2) -> dict[ObjectKey, Json]:
    """Return the live objects, as the server has them."""
    bodies = [copy.deepcopy(body) for body in CNF if body["metadata"]["name"] not in without]
    set_body: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1"}}
    set_body["metadata"]["ownerReferences"] = [{"uid": "uid Deployment web", "controller": True}]
    bodies.append(set_body)
    for number in range(pods):
        pod = copy.deepcopy(POD)
        pod["metadata"]["name"] = f"web-1-{number}"
        owner = {"uid": "uid ReplicaSet web-1", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        bodies.append(pod)
    found = {}
    for body in bodies:
        metadata = body["metadata"]
        uid = f"uid {body['kind']} {metadata['name']}"
        metadata |= {"namespace": "n", "uid": uid, "resourceVersion": "7"}
        found[ObjectKey.of(body)] = body
    return found


def healed(now: dict[ObjectKey, Json], *vnfcs: tuple[str, str], heal_id: str = "h") -> Plan:
    planner = HealPlanner(packages(), now, "n", None, heal_id=heal_id)
    return planner.plan_vnfcs(vnfcs) if vnfcs else planner.plan()


def actions(plan: Plan) -> dict[str, Action]:
    return {str(step.key): step.action for step in plan.steps}


ALL_PODS = {"Deployment n/web": Action.ROLL, "Pod n/solo": Action.RECREATE_POD}


def test_a_heal_of_the_whole_vnf_replaces_all_pods_and_nothing_that_is_right() -> None:
    assert actions(healed(live())) == ALL_PODS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web", {"Deployment n/web": Action.CREATE, "Service n/web": Action.CREATE}),
        ("solo", {"Pod n/solo": Action.CREATE}),
        ("cm", {"ConfigMap n/cm": Action.CREATE}),
        ("job", {"Job n/job": Action.CREATE}),
        ("data", {"PersistentVolumeClaim n/data": Action.CREATE}),
    ],
)
def test_what_is_missing_is_created(name: str, expected: dict[str, Action]) -> None:
    assert actions(healed(live(name))) == ALL_PODS | expected


def _changed(kind: str, change: Any) -> dict[ObjectKey, Json]:
    now = live()
    change(next(body for key, body in now.items() if key.kind == kind))
    return now


def test_what_somebody_changed_is_brought_back() -> None:
    now = _changed("Service", lambda body: body["spec"]["ports"].append({"port": 81}))
    plan = healed(now)
    assert actions(plan) == ALL_PODS | {"Service n/web": Action.SWITCH}
    (step,) = (step for step in object_steps(plan) if step.key.kind == "Service")
    assert step.with_change(step.old)["spec"]["ports"] == [{"port": 80}]
    assert step_from_dict(step_to_dict(step)) == step


def test_what_was_brought_back_can_be_undone_also_where_an_earlier_heal_left_its_digest() -> None:
    def stamped(body: Json) -> None:
        digest = manifest_digest(service())
        body["metadata"]["annotations"] = {DIGEST_ANNOTATION: digest}
        body["spec"]["ports"].append({"port": 81})

    plan = healed(_changed("Service", stamped))
    (step,) = (step for step in object_steps(plan) if step.key.kind == "Service")
    assert not step.is_applied(step.old)
    mended = step.with_change(step.old)
    assert step.is_applied(mended)
    assert not step.is_restored(mended)
    assert step.without_change(mended)["spec"] == step.old["spec"]


def test_what_the_server_or_others_added_is_no_difference() -> None:
    def added(body: Json) -> None:
        body["metadata"]["labels"] = {"of": "others"}
        body["metadata"]["annotations"] = {DIGEST_ANNOTATION: "of an earlier change"}
        body["spec"]["ports"][0] |= {"protocol": "TCP", "nodePort": 30000}
        body["spec"]["clusterIP"] = "10.0.0.1"
        body["status"] = {"loadBalancer": {}}

    assert actions(healed(_changed("Service", added))) == ALL_PODS


def test_an_object_that_holds_data_is_noted_and_left_alone() -> None:
    def grown(body: Json) -> None:
        body["spec"]["resources"]["requests"]["storage"] = "2Gi"

    plan = healed(_changed("PersistentVolumeClaim", grown))
    assert actions(plan) == ALL_PODS
    assert "it holds data" in str(plan.notes)


def test_the_number_of_pods_stays() -> None:
    def scaled(body: Json) -> None:
        body["spec"]["replicas"] = 5

    plan = healed(_changed("Deployment", scaled))
    (step,) = (step for step in object_steps(plan) if step.key.kind == "Deployment")
    assert step.with_change(step.old)["spec"]["replicas"] == 5


def test_a_heal_that_is_planned_again_finds_its_workloads_healed() -> None:
    now = live()
    (step,) = (step for step in object_steps(healed(now)) if step.key.kind == "Deployment")
    now[step.key] = step.with_change(step.old)
    assert actions(healed(now)) == {"Pod n/solo": Action.RECREATE_POD}
    assert actions(healed(now, heal_id="another")) == ALL_PODS


def test_a_vnfc_is_its_pod_by_uid() -> None:
    (step,) = object_steps(healed(live(), ("VDU1", "web-1-1"), ("VDU1", "web-1-9")))
    assert isinstance(step, PodsStep)
    assert (step.action, step.pods) == (Action.REPLACE_PODS, (("web-1-1", "uid Pod web-1-1"),))
    assert step_from_dict(step_to_dict(step)) == step


def test_a_vnfc_without_a_controller_is_created_from_its_manifest() -> None:
    (step,) = object_steps(healed(live(), ("VDU2", "solo")))
    assert step.action is Action.RECREATE_POD
    (step,) = object_steps(healed(live("solo"), ("VDU2", "solo")))
    assert step.action is Action.CREATE


def test_a_vnfc_whose_workload_is_gone_has_it_created() -> None:
    (step,) = healed(live("web"), ("VDU1", "web-1-1")).steps
    assert (str(step.key), step.action) == ("Deployment n/web", Action.CREATE)


def test_a_vdu_that_no_manifest_describes_is_refused() -> None:
    with pytest.raises(PlanError, match=r"VDU3: no manifest .* describes its workload nowhere"):
        healed(live(), ("VDU3", "x"))


# --- scale --------------------------------------------------------------------------------------


def scaled(now: dict[ObjectKey, Json], **numbers: int) -> Plan:
    return scale_plan(packages(), now, numbers, "n", None)


def test_a_workload_gets_its_number_of_pods_and_keeps_what_others_changed() -> None:
    (step,) = object_steps(scaled(live(), VDU1=5))
    assert isinstance(step, ScaleStep)
    now = {**step.old, "spec": {**step.old["spec"], "paused": False}}
    assert step.with_change(now)["spec"] == {**now["spec"], "replicas": 5}
    assert step.without_change(step.with_change(now)) == now
    assert step.is_untouched(now)
    assert not step.is_untouched({**now, "spec": {**now["spec"], "replicas": 3}})
    assert step_from_dict(step_to_dict(step)) == step


def test_a_workload_with_the_number_already_is_left_alone() -> None:
    assert scaled(live(), VDU1=2).is_empty


@pytest.mark.parametrize(
    ("numbers", "gone", "message"),
    [
        ({"VDU2": 2}, (), "Pod n/solo: expected a workload with a number of pods"),
        ({"VDU4": 2}, (), "Job n/job: expected a workload with a number of pods"),
        ({"VDU3": 2}, (), "VDU3: is scaled, but no manifest"),
        ({"VDU1": 3}, ("web",), "Deployment n/web: is not in the cluster"),
    ],
)
def test_what_cannot_be_scaled_is_refused(
    numbers: dict[str, int], gone: tuple[str, ...], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        scaled(live(*gone), **numbers)
