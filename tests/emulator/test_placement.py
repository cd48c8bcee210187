# SPDX-License-Identifier: Apache-2.0
"""Where pods run and what they store: claims of StatefulSets, nodes of DaemonSets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.stage import Stage, image, on_stage, on_stage_with, quick, scale, workload
from tests.internals.core import Json

TEMPLATE = {
    "metadata": {"name": "data", "labels": {"tier": "db"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(replicas: int = 2, **spec: Any) -> Json:
    """Return a StatefulSet whose container mounts what its claim template gives."""
    body = workload(
        "statefulsets", "db", replicas, volumeClaimTemplates=[TEMPLATE], **spec
    )  # fmt: skip
    (container,) = body["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/d"}]
    return body


def claims(stage: Stage) -> dict[str, Json]:
    return {claim["metadata"]["name"]: claim for claim in stage.stored("persistentvolumeclaims")}


async def rolled_out(stage: Stage, replicas: int = 2) -> None:
    await stage.until(
        lambda: (
            stage.is_rolled_out("statefulsets", "db")
            and stage.status("statefulsets", "db")["replicas"] == replicas
        )
    )


def test_each_pod_has_a_claim_that_outlives_it() -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        stage.create("statefulsets", stateful_set())
        await rolled_out(stage)
        assert set(claims(stage)) == {"data-db-0", "data-db-1"}
        claim = claims(stage)["data-db-0"]
        assert claim["metadata"]["labels"] == {"app": "db", "tier": "db"}
        assert (claim["status"]["phase"], claim["status"]["capacity"]) == (
            "Bound", {"storage": "1Gi"},
        )  # fmt: skip
        volume = stage.registry.get("persistentvolumes", "", claim["spec"]["volumeName"])
        assert volume is not None
        assert volume["spec"]["claimRef"]["name"] == "data-db-0"
        (first, *_) = stage.get("pods", "db-0")["spec"]["volumes"]
        assert first == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
        uids = {name: claim["metadata"]["uid"] for name, claim in claims(stage).items()}
        stage.change("statefulsets", "db", image("app:2"))
        await rolled_out(stage)
        stage.change("statefulsets", "db", scale(1))
        await rolled_out(stage, 1)
        stage.delete("statefulsets", "db")
        await stage.until(lambda: not stage.stored("pods"))
        assert {name: c["metadata"]["uid"] for name, c in claims(stage).items()} == uids

    scenario()


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("whenScaled", [{"data-db-0"}, {"data-db-0"}]),
        ("whenDeleted", [{"data-db-0", "data-db-1"}, set()]),
        ("whenDeleted whenScaled", [{"data-db-0"}, set()]),
    ],
)
def test_claims_go_where_the_retention_policy_says_so(policy: str, left: list[set[str]]) -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        retention = dict.fromkeys(policy.split(), "Delete")
        stage.create("statefulsets", stateful_set(persistentVolumeClaimRetentionPolicy=retention))
        await rolled_out(stage)
        stage.change("statefulsets", "db", scale(1))
        await stage.until(lambda: set(claims(stage)) == left[0])
        stage.delete("statefulsets", "db")
        await stage.until(lambda: not stage.stored("pods") and set(claims(stage)) == left[1])
        volumes = {c["spec"]["volumeName"] for c in claims(stage).values()}
        await stage.until(
            lambda: (
                {v["metadata"]["name"] for v in stage.registry.list("persistentvolumes")} == volumes
            )
        )

    scenario()


def test_a_deleted_claim_stays_while_a_pod_uses_it() -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        stage.create("statefulsets", stateful_set(1))
        await rolled_out(stage, 1)
        assert (
            "deletionTimestamp" in stage.delete("persistentvolumeclaims", "data-db-0")["metadata"]
        )
        await stage.settle()
        assert set(claims(stage)) == {"data-db-0"}
        stage.change("statefulsets", "db", scale(0))
        await stage.until(lambda: not claims(stage))

    scenario()


def test_a_pod_waits_for_its_claim() -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        body = workload("deployments", "web", 1)
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "mine"}}
        body["spec"]["template"]["spec"]["volumes"] = [volume]
        stage.create("deployments", body)
        missing = 'persistentvolumeclaim "mine" not found'
        await stage.until(lambda: missing in str(stage.stored("events")))
        stage.create("persistentvolumeclaims", {"metadata": {"name": "mine"}, **spec_of()})
        await stage.until(lambda: stage.is_rolled_out("deployments", "web"))

    scenario()


def test_a_claim_without_a_class_waits_for_its_volume() -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        body = {"metadata": {"name": "mine"}, **spec_of(storageClassName="", volumeName="disk")}
        stage.create("persistentvolumeclaims", body)
        await stage.settle()
        assert claims(stage)["mine"]["status"] == {"phase": "Pending"}
        spec = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}
        stage.registry.create("persistentvolumes", "", {"metadata": {"name": "disk"}, "spec": spec})
        await stage.until(lambda: claims(stage)["mine"]["status"]["phase"] == "Bound")
        assert claims(stage)["mine"]["status"]["capacity"] == {"storage": "5Gi"}
        stage.delete("persistentvolumeclaims", "mine")
        await stage.until(lambda: not claims(stage))
        assert stage.registry.get("persistentvolumes", "", "disk")

    scenario()


def spec_of(**more: Any) -> Json:
    spec: Json = TEMPLATE["spec"]  # type: ignore[assignment]
    return {"spec": {**spec, **more}}


# --- nodes ------------------------------------------------------------------------------------


def affinity(key: str, operator: str, *values: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


WHERE = {
    "a selector that all nodes match": ({"nodeSelector": {"kubernetes.io/os": "linux"}}, 2),
    "a selector of one node": ({"nodeSelector": {"kubernetes.io/hostname": "node-2"}}, 1),
    "a selector of none": ({"nodeSelector": {"role": "x"}}, 0),
    "an affinity": ({"affinity": affinity("kubernetes.io/hostname", "NotIn", "node-2")}, 1),
    "an affinity of none": ({"affinity": affinity("role", "Exists")}, 0),
}


@pytest.mark.parametrize(("pod", "nodes"), WHERE.values(), ids=WHERE)
def test_a_daemon_set_has_pods_where_its_template_may_run(pod: Json, nodes: int) -> None:
    @on_stage_with(quick, nodes=2)
    async def scenario(stage: Stage) -> None:
        body = workload("daemonsets", "ds", None)
        body["spec"]["template"]["spec"].update(pod)
        stage.create("daemonsets", body)
        await stage.until(lambda: stage.status("daemonsets", "ds").get("observedGeneration"))
        await stage.until(lambda: stage.status("daemonsets", "ds").get("numberReady") == nodes)
        await stage.settle()
        assert stage.status("daemonsets", "ds")["desiredNumberScheduled"] == nodes
        assert len(stage.stored("pods")) == nodes

    scenario()


@pytest.mark.parametrize(("pod", "nodes"), WHERE.values(), ids=WHERE)
def test_other_pods_run_where_their_template_says_or_wait(pod: Json, nodes: int) -> None:
    @on_stage_with(quick, nodes=2)
    async def scenario(stage: Stage) -> None:
        body = workload("deployments", "web", 4)
        body["spec"]["template"]["spec"].update(pod)
        stage.create("deployments", body)
        if nodes:
            await stage.until(lambda: stage.is_rolled_out("deployments", "web"))
            assert len({pod["spec"]["nodeName"] for pod in stage.stored("pods")}) == nodes
            return
        why = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector"
        await stage.until(lambda: [messages(pod) for pod in stage.stored("pods")] == [[True]] * 4)
        assert all(why in str(pod["status"]["conditions"]) for pod in stage.stored("pods"))
        assert why in str(stage.stored("events"))
        assert {pod["status"]["phase"] for pod in stage.stored("pods")} == {"Pending"}

    def messages(pod: Json) -> list[bool]:
        conditions = pod["status"].get("conditions") or []
        return [each["reason"] == "Unschedulable" for each in conditions]

    scenario()


def test_a_pod_is_bound_when_a_node_gets_the_label_that_it_waits_for() -> None:
    @on_stage_with(quick, nodes=2)
    async def scenario(stage: Stage) -> None:
        body = workload("deployments", "web", 1)
        body["spec"]["template"]["spec"]["nodeSelector"] = {"role": "edge"}
        stage.create("deployments", body)
        await stage.until(lambda: "Unschedulable" in str(stage.stored("pods")))
        node = stage.get("nodes", "node-2", "")
        metadata = {**node["metadata"], "labels": {**node["metadata"]["labels"], "role": "edge"}}
        stage.registry.update("nodes", "", "node-2", {**node, "metadata": metadata})
        await stage.until(lambda: stage.is_rolled_out("deployments", "web"))
        (pod,) = stage.stored("pods")
        assert pod["spec"]["nodeName"] == "node-2"
        assert "Unschedulable" not in str(pod["status"])

    scenario()


def test_a_daemon_set_follows_the_labels_of_the_nodes() -> None:
    @on_stage_with(quick, nodes=2)
    async def scenario(stage: Stage) -> None:
        def label(number: int, value: str) -> None:
            node = stage.get("nodes", f"node-{number}", "")
            metadata = {**node["metadata"], "labels": {**node["metadata"]["labels"], "role": value}}
            stage.registry.update("nodes", "", f"node-{number}", {**node, "metadata": metadata})

        body = workload("daemonsets", "ds", None)
        body["spec"]["template"]["spec"]["nodeSelector"] = {"role": "edge"}
        stage.create("daemonsets", body)
        label(2, "edge")
        await stage.until(lambda: stage.status("daemonsets", "ds").get("numberReady") == 1)
        assert [pod["spec"]["nodeName"] for pod in stage.stored("pods")] == ["node-2"]
        label(2, "core")
        await stage.until(lambda: not stage.stored("pods"))
        assert stage.status("daemonsets", "ds")["desiredNumberScheduled"] == 0

    scenario()
