# SPDX-License-Identifier: Apache-2.0
"""Changes of the package on Kubernetes, beyond what every strategy guarantees."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import (
    CancelToken,
    ClusterError,
    Plan,
    PlanError,
    StepResult,
    UpdateFailedError,
    UpdateInterruptedError,
)
from tests.functional import upgrade_types
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import (
    BAD_IMAGE,
    KubernetesContractSite,
    Shape,
)
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Arguments, ContractSite, Release
from tests.functional.manifests import config_map, workload
from tests.functional.real import REAL

Site = KubernetesContractSite
V3 = Release("v3")
ROLLING = pytest.mark.parametrize("site", [upgrade_types.ROLLING], indirect=True)
BLUE_GREEN = pytest.mark.parametrize("site", [upgrade_types.BLUE_GREEN], indirect=True)

PATH = sys.path

ENV = "env: [{name: SETTING, valueFrom: {configMapKeyRef: {name: cm, key: setting}}}]"


@pytest.fixture(params=upgrade_types.UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A namespace of the cluster to instantiate the VNF in, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        yield contract_site


def manifest(body: Any) -> str:
    """Return a manifest's text."""
    return yaml.safe_dump(body)


def template_of(site: Site, vdu: str = "VDU1") -> Any:
    """Return the pod spec of a VDU's template."""
    (deployment,) = site.deployments(vdu)
    return deployment["spec"]["template"]["spec"]


# --- all of the package takes effect ------------------------------------------------------------


def test_a_pod_template_takes_effect_and_is_restored_after_a_failure(site: Site) -> None:
    site.instantiate(V1)
    before = template_of(site)
    site.shape = Shape(container="{env: [{name: A, value: b}], ports: [{containerPort: 81}]}")
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, broken=("VDU2",)))
    assert template_of(site) == before
    site.change(V2)
    (container,) = template_of(site)["containers"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["ports"][0]["containerPort"] == 81


def test_other_objects_are_created_changed_and_deleted(site: Site) -> None:
    role = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"vnf": "sample"}}},
    }
    site.shape = Shape(more={"sa.yaml": manifest(role), "budget.yaml": manifest(budget)})
    site.instantiate(V1)
    budget["spec"]["minAvailable"] = 0
    site.shape = Shape(more={"budget.yaml": manifest(budget), "cm.yaml": config_map(setting="x")})
    site.change(V2)
    assert site.get("policy", "PodDisruptionBudget", "web")["spec"]["minAvailable"] == 0
    assert site.get("", "ConfigMap", "cm")["data"] == {"setting": "x"}
    accounts = {body["metadata"]["name"] for body in site.objects("", "ServiceAccount")}
    assert "sa" not in accounts


def test_deleted_objects_are_created_again_when_the_change_fails_later(site: Site) -> None:
    """The first removal is done when the second one is refused."""
    site.shape = Shape(more={"a.yaml": config_map("a", x="1"), "b.yaml": config_map("b", x="2")})
    site.instantiate(V1)
    site.shape = Shape()
    cluster = site.cluster
    site.cluster = _Refusing(cluster)  # type: ignore[assignment]
    with pytest.raises(UpdateFailedError, match="ConfigMap"):
        site.change(V2, Arguments(options={"workers": 1}))
    site.cluster = cluster
    assert site.get("", "ConfigMap", "a")["data"] == {"x": "1"}
    assert site.get("", "ConfigMap", "b")["data"] == {"x": "2"}
    assert site.is_at("v1")


class _Refusing:
    """A cluster that refuses to delete one object."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def delete(self, key: Any, **preconditions: str | None) -> None:
        if (key.kind, key.name) == ("ConfigMap", "b"):
            raise ClusterError("delete ConfigMap b: the API server answered 403", status=403)
        self._cluster.delete(key, **preconditions)


def test_an_object_without_this_vnfs_label_is_not_deleted(site: Site) -> None:
    site.shape = Shape(more={"cm.yaml": config_map(setting="x")})
    site.instantiate(V1)
    live = site.get("", "ConfigMap", "cm")
    del live["metadata"]["labels"]["tacker_vnf_instance_id"]
    site.admin.replace(live)
    site.shape = Shape()
    outcome = site.change(V2).outcome
    assert site.get("", "ConfigMap", "cm")["data"] == {"setting": "x"}
    assert any("does not have this VNF's label" in note.text for note in outcome.plan.notes)


def test_a_volume_claim_is_never_deleted(site: Site) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    site.shape = Shape(more={"claim.yaml": manifest(claim)})
    site.instantiate(V1)
    site.shape = Shape()
    outcome = site.change(V2).outcome
    assert site.get("", "PersistentVolumeClaim", "data")
    assert any("no undo could bring back" in note.text for note in outcome.plan.notes)


def test_a_new_object_whose_name_another_owner_uses_is_refused(site: Site) -> None:
    site.instantiate(V1)
    site.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "sa", "namespace": site.namespace},
        }
    )
    other = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}}
    site.shape = Shape(more={"sa.yaml": manifest({**other, "automountServiceAccountToken": False})})
    with pytest.raises(PlanError, match="not this VNF's"):
        site.change(V2)
    assert site.is_at("v1")


def test_the_fields_that_the_cluster_set_on_a_service_stay(site: Site) -> None:
    site.shape = Shape(service="{type: NodePort}")
    site.instantiate(V1)
    before = site.get("", "Service", "web")["spec"]
    site.shape = Shape(service="{type: NodePort, sessionAffinity: ClientIP}")
    site.change(V2)
    after = site.get("", "Service", "web")["spec"]
    assert after["sessionAffinity"] == "ClientIP"
    assert after["clusterIP"] == before["clusterIP"]
    assert after["ports"][0]["nodePort"] == before["ports"][0]["nodePort"]


def test_labels_of_only_the_old_manifest_are_removed_and_those_of_others_stay(site: Site) -> None:
    def cm(labels: str) -> str:
        return config_map(setting="x").replace("{name: cm}", f"{{name: cm, labels: {{{labels}}}}}")

    site.shape = Shape(more={"cm.yaml": cm("a: one, b: two")})
    site.instantiate(V1)
    live = site.get("", "ConfigMap", "cm")
    live["metadata"]["labels"]["theirs"] = "three"
    site.admin.replace(live)
    site.shape = Shape(more={"cm.yaml": cm("b: other")})
    site.change(V2)
    labels = site.get("", "ConfigMap", "cm")["metadata"]["labels"]
    assert labels == {"b": "other", "theirs": "three", "tacker_vnf_instance_id": INSTANCE}


def test_new_configuration_alone_restarts_the_pods_that_read_it(site: Site) -> None:
    site.shape = Shape(container=f"{{{ENV}}}", more={"cm.yaml": config_map(setting="old")})
    site.instantiate(V1)
    before = site.instances("VDU1")
    site.shape = replace(site.shape, more={"cm.yaml": config_map(setting="new")})
    site.change(V1)
    assert not site.instances("VDU1") & before
    assert site.is_at("v1")
    site.runs_from(V1)
    assert site.plan(V1).is_empty


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicaSet", "Pod"])
def test_other_workloads_are_changed_in_place(site: Site, kind: str) -> None:
    site.shape = Shape(more={"x.yaml": workload(kind, "x", replicas=2)})
    site.instantiate(V1)
    more = {"x.yaml": workload(kind, "x", replicas=2, container="env: [{name: A, value: b}]")}
    site.shape = Shape(more=more)
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, broken=("VDU1",)))
    group = "" if kind == "Pod" else "apps"
    spec = site.get(group, kind, "x")["spec"]
    assert "env" not in (spec if kind == "Pod" else spec["template"]["spec"])["containers"][0]
    site.change(V2)
    owned = [pod for pod in site.objects("", "Pod") if pod["metadata"]["name"].startswith("x")]
    live = [pod for pod in owned if not pod["metadata"].get("deletionTimestamp")]
    assert len(live) >= 1
    assert all(pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}] for pod in live)


HELD = "updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}"
BESIDE_THE_TEMPLATE = {
    "a partition that is gone": (HELD, "", ["x-0", "x-1"]),
    "other ordinals": ("", "ordinals: {start: 5}", ["x-5", "x-6"]),
}


@ROLLING
@pytest.mark.parametrize(
    ("first", "last", "names"), BESIDE_THE_TEMPLATE.values(), ids=BESIDE_THE_TEMPLATE
)
def test_pods_that_are_replaced_for_a_field_beside_their_template_are_waited_for(
    site: Site, first: str, last: str, names: list[str]
) -> None:
    def shaped(spec: str, value: str) -> Shape:
        container = f"env: [{{name: A, value: {value}}}]"
        text = workload("StatefulSet", "x", replicas=2, spec=spec, container=container)
        return Shape(more={"x.yaml": text})

    site.shape = shaped(first, "a")
    site.instantiate(V1)
    site.shape = shaped(first, "b")
    site.change(V2)
    site.shape = shaped(last, "b")
    site.change(V2)
    pods = [pod for pod in site.objects("", "Pod") if pod["metadata"]["name"].startswith("x-")]
    assert sorted(pod["metadata"]["name"] for pod in pods) == names
    assert {pod["spec"]["containers"][0]["env"][0]["value"] for pod in pods} == {"b"}
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in pods)


def test_a_change_cancelled_before_its_scripts_ran_is_not_taken_for_done(site: Site) -> None:
    site.instantiate(V1)
    cancel = CancelToken()
    pending: set[Any] = set()

    def observe(event: Any) -> None:
        if isinstance(event, Plan):
            pending.update(step.place for step in event.steps if step.starts_pods)
        elif isinstance(event, StepResult) and event.step.place in pending:
            pending.remove(event.step.place)
            if not pending:
                cancel.request("by a test")

    release = replace(V2, scripts={"Scripts/new.py": "print('coordinated')"})
    arguments = Arguments(
        {"lcm-operation-coordinate-new-vnf": "Scripts/new.py"}, progress=observe, cancel=cancel
    )
    with pytest.raises(UpdateInterruptedError, match="by a test"):
        site.change(release, arguments)
    assert site.is_at("v1")


# --- Blue-Green ---------------------------------------------------------------------------------


@BLUE_GREEN
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(Shape(), id="one name, no label"),
        pytest.param(Shape(labelled=True), id="labels with the version"),
        pytest.param(Shape(versioned_names=True), id="names with the version"),
        pytest.param(Shape(labelled=True, shared=True), id="a Service shared by two Deployments"),
    ],
)
def test_every_way_of_naming_and_labelling_changes_and_rolls_back(site: Site, shape: Shape) -> None:
    site.shape = shape
    site.instantiate(V1)
    spec = site.get("", "Service", "web")["spec"]
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, broken=("VDU1",)))
    assert site.get("", "Service", "web")["spec"] == spec
    assert site.is_at("v1")
    for release in (V2, V3):
        changed = site.change(release)
        site.runs_from(release)
        assert site.is_at(release.version)
        names = {body["metadata"]["name"] for body in site.objects("apps", "Deployment")}
        assert set(changed.records.resource_names.values()) == names


def test_a_service_of_two_deployments_serves_both_again_when_they_have_changed(
    site: Site,
) -> None:
    site.shape = Shape(labelled=site.in_place is False, shared=True)
    site.instantiate(V1)
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, broken=("VDU2",)))
    for release in (V1, V2):
        site.change(release)
        assert site.is_at(release.version)
        served = {pod["metadata"]["name"] for pod in site.endpoints()}
        assert served == site.instances("VDU1") | site.instances("VDU2")


@BLUE_GREEN
def test_a_shared_service_whose_selector_matches_both_releases_is_refused(
    site: Site,
) -> None:
    site.shape = Shape(shared=True)
    site.instantiate(V1)
    with pytest.raises(PlanError, match="give the pod templates"):
        site.change(V2)
    assert site.is_at("v1")


@BLUE_GREEN
def test_a_change_that_would_take_a_service_from_an_unchanged_vdu_is_refused(site: Site) -> None:
    site.shape = Shape(shared=True)
    site.instantiate(V1)
    with pytest.raises(PlanError, match="which does not change"):
        site.change(V2, Arguments({"vdu_params": [{"vdu_id": "VDU1"}]}))
    assert site.is_at("v1")


@BLUE_GREEN
def test_the_old_pods_stay_untouched_until_the_traffic_was_switched(site: Site) -> None:
    site.instantiate(V1)
    before = site.instances("VDU1")
    observations: list[tuple[set[str], set[str]]] = []

    def observe(_: object) -> None:
        observations.append((site.instances("VDU1") & before, site.serving()))

    site.change(V2, Arguments(progress=observe))
    for remaining, serving in observations:
        assert remaining == before or serving == {"v2"}


@BLUE_GREEN
def test_a_traffic_switch_by_a_script_is_recognized_and_reverted_on_failure(site: Site) -> None:
    """In the specification the script updates the Service."""
    site.shape = Shape(labelled=True)
    site.instantiate(V1)
    script = f"""
import pickle, sys
sys.path[:0] = {PATH!r}
from container_update.cluster.client import connect
from container_update.model.objects import ObjectKey
coordination = pickle.load(sys.stdin.buffer)["coordination"]
with connect(coordination["access"]["kubeconfig"]) as cluster:
    for desired in coordination["services"]:
        live = cluster.get(ObjectKey("", "Service", desired["namespace"], desired["name"]))
        live["spec"]["selector"] = desired["selector"]
        cluster.replace(live)
"""
    script_params = {"lcm-operation-coordinate-new-vnf": "Scripts/new.py"}
    failing = {"Scripts/new.py": script + "sys.exit('but not that')"}
    with pytest.raises(UpdateFailedError, match="but not that"):
        site.change(replace(V2, scripts=failing), Arguments(script_params))
    assert site.is_at("v1")
    site.change(replace(V2, scripts={"Scripts/new.py": script}), Arguments(script_params))
    assert site.is_at("v2")


@BLUE_GREEN
def test_a_plan_notes_configuration_that_changes_under_the_old_pods(site: Site) -> None:
    site.shape = Shape(container=f"{{{ENV}}}", more={"cm.yaml": config_map(setting="old")})
    site.instantiate(V1)
    site.shape = replace(site.shape, more={"cm.yaml": config_map(setting="new")})
    notes = site.plan(V2).notes
    assert any("while pods of Deployment" in note.text for note in notes)


# --- rolling update -----------------------------------------------------------------------------


@ROLLING
def test_a_change_of_the_metadata_alone_restarts_nothing(site: Site) -> None:
    site.instantiate(V1)
    before = site.instances("VDU1")
    shape = site.shape
    site.shape = _Annotated()
    outcome = site.change(V1).outcome
    assert [result.step.key.name for result in outcome.results] == ["web"]
    assert site.instances("VDU1") == before
    (deployment,) = site.deployments("VDU1")
    assert deployment["metadata"]["annotations"]["note"] == "new"
    site.shape = shape


class _Annotated(Shape):
    def deployment(self, vdu: str, release: Release) -> str:
        body = yaml.safe_load(super().deployment(vdu, release))
        if vdu == "VDU1":
            body["metadata"]["annotations"] = {"note": "new"}
        return manifest(body)


@ROLLING
def test_a_selector_cannot_change_in_place(site: Site) -> None:
    site.instantiate(V1)
    site.shape = _OtherSelector()
    with pytest.raises(PlanError, match=r"selector cannot change.*Blue-Green"):
        site.change(V2)
    assert site.is_at("v1")


class _OtherSelector(Shape):
    def deployment(self, vdu: str, release: Release) -> str:
        return super().deployment(vdu, release).replace("matchLabels:", "matchLabels:\n      x: y")


@ROLLING
def test_a_plan_notes_a_service_whose_selector_changes_with_the_pods(site: Site) -> None:
    site.shape = Shape(labelled=True)
    site.instantiate(V1)
    assert any("has no such gap" in note.text for note in site.plan(V2).notes)


@ROLLING
def test_a_plan_notes_that_a_job_cannot_change(site: Site) -> None:
    site.shape = Shape(more={"j.yaml": workload("Job", "j")})
    site.instantiate(V1)
    site.shape = Shape(more={"j.yaml": workload("Job", "j", image=BAD_IMAGE)})
    assert any("a Job cannot change" in note.text for note in site.plan(V2).notes)


@ROLLING
@pytest.mark.embedded
@pytest.mark.skipif(bool(REAL), reason="no storage class of the cluster lets a claim grow")
def test_an_undo_leaves_a_claim_as_large_as_it_has_become(site: Site) -> None:
    """A server refuses to shrink one: the undo would never be complete."""

    def shape(size: str) -> Shape:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
        mount = "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
        reader = workload("Deployment", "reader", pod=mount)
        return Shape(more={"pvc.yaml": manifest({**body, "spec": spec}), "r.yaml": reader})

    def size() -> str:
        claim = site.get("", "PersistentVolumeClaim", "data")
        return str(claim["spec"]["resources"]["requests"]["storage"])

    site.shape = shape("1Gi")
    site.instantiate(V1)
    site.shape = shape("1536Mi")
    assert any("leaves it as large as it gets" in note.text for note in site.plan(V2).notes)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        site.change(replace(V2, broken=("VDU1",)))
    assert size() == "1536Mi"
    site.change(V2)
    site.runs_from(V2)
    site.shape = shape("1Gi")
    assert any("it stays as it is" in note.text for note in site.plan(V1).notes)
    site.change(V1)
    assert size() == "1536Mi"
    assert site.is_at("v1")


@ROLLING
def test_a_job_runs_on_with_what_can_change_of_it(site: Site) -> None:
    """Its template and its selector stay; a real server has filled in labels and defaults."""

    def shape(image: str = "nginx:1.27-alpine", **spec: Any) -> Shape:
        body = yaml.safe_load(workload("Job", "j", image=image))
        body["spec"] |= spec
        return Shape(more={"j.yaml": manifest(body)})

    site.shape = shape(ttlSecondsAfterFinished=600, activeDeadlineSeconds=3600)
    site.instantiate(V1)
    before = site.get("batch", "Job", "j")
    site.shape = shape(parallelism=2, ttlSecondsAfterFinished=60)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        site.change(replace(V2, broken=("VDU1",)))
    assert site.get("batch", "Job", "j")["spec"] == before["spec"]
    site.change(V2)
    after = site.get("batch", "Job", "j")
    changed = {"parallelism": 2, "ttlSecondsAfterFinished": 60}
    kept = {**before["spec"], "activeDeadlineSeconds": None, **changed}
    assert {"activeDeadlineSeconds": None, **after["spec"]} == kept
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    for fixed in ({"completions": 3}, {"completionMode": "Indexed", "completions": 1}):
        site.shape = shape(parallelism=3, **fixed)
        plan = site.plan(V3)
        assert any("a Job cannot change" in note.text for note in plan.notes)
        assert "j" not in {step.key.name for step in plan.steps}


@ROLLING
def test_a_changed_service_may_still_select_a_workload_that_the_change_deletes(site: Site) -> None:
    """The deleted workload's pods serve until they are gone: nobody waits for the contrary."""

    def service(port: int) -> str:
        spec = {"selector": {"app": "legacy"}, "ports": [{"port": port}]}
        return manifest(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
        )

    legacy = workload("Deployment", "legacy")
    site.shape = Shape(more={"legacy.yaml": legacy, "s.yaml": service(80)})
    site.instantiate(V1)
    site.shape = Shape(more={"s.yaml": service(81)})
    site.change(V2)
    assert site.get("", "Service", "s")["spec"]["ports"][0]["port"] == 81
    assert "legacy" not in {body["metadata"]["name"] for body in site.objects("apps", "Deployment")}
