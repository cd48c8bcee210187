# SPDX-License-Identifier: Apache-2.0
"""The live tree of an instance: what runs in its VIM, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options, connect
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.heat import ResourceFault
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import ObjectKey
from tests.internals.service import EXTENSION, Service, Settings, resources_of
from tests.tacker.conftest import Kubectl
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.clouds import BLUE_GREEN, ROLLING, Cloud, Sample, instantiated
from tests.vnfm.waiting import until

Json = dict[str, Any]
NEW_IMAGE = "registry.example/web:2.0"


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=20, grace_period=1, drain_seconds=0)


def resources(client: Client, path: str) -> Json:
    tree: Json = client.call("GET", f"{path}/resources")
    return tree


def workloads(tree: Json) -> dict[str, Json]:
    """Return each workload by what it is."""
    return {each["object"]: each for vdu in tree["vdus"] for each in vdu["workloads"]}


def test_every_workload_of_a_vdu_is_there_with_its_pods(
    client: Client, vnf: str, kubectl: Kubectl
) -> None:
    tree = resources(client, vnf)
    assert (tree["vimType"], tree["namespace"]) == ("kubernetes", "default")
    assert [vdu["vduId"] for vdu in tree["vdus"]] == ["VDU1", "VDU2"]
    pods = {
        vnfc["name"]: vnfc for workload in workloads(tree).values() for vnfc in workload["vnfcs"]
    }
    assert set(pods) == set(kubectl.pods())
    (worker,) = tree["vdus"][1]["workloads"]
    assert worker["object"] == "StatefulSet default/worker"
    assert worker["state"] == "ok"
    assert worker["images"] == ["registry.example/worker:1.0"]
    assert worker["desired"] == worker["ready"] == len(worker["vnfcs"]) > 0
    pod = worker["vnfcs"][0]
    started = kubectl.pods()[pod["name"]]["status"]["startTime"]
    assert pod == {
        "name": "worker-0",
        "state": "Running",
        "tone": "good",
        "problem": "",
        "restarts": 0,
        "images": ["registry.example/worker:1.0"],
        "started": started,
    }


def test_a_workload_that_was_deleted_by_hand_is_missing_until_an_operation_changes_it(
    client: Client, cluster: EmbeddedCluster, vnf: str, tmp_path: Path
) -> None:
    before = workloads(resources(client, vnf))["StatefulSet default/worker"]
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as kubernetes:
        kubernetes.delete(ObjectKey("apps", "StatefulSet", "default", "worker"))
    tree = resources(client, vnf)
    assert [vdu["vduId"] for vdu in tree["vdus"]] == ["VDU1", "VDU2"]
    (worker,) = tree["vdus"][1]["workloads"]
    gone = {"state": "missing", "desired": 2, "ready": 0, "readyOld": 0, "vnfcs": []}
    assert worker == {**before, **gone}
    gate = Gate()
    creation = Fault(gate, method="POST", path="*/statefulsets")
    cluster.middlewares.append(Faults(creation))
    operation = client.begin("POST", f"{vnf}/heal", {"additionalParams": {"all": True}})
    with gate.held():
        assert "StatefulSet default/worker" not in workloads(resources(client, vnf))
    assert client.settled(operation)["operationState"] == "COMPLETED"
    assert workloads(resources(client, vnf))["StatefulSet default/worker"]["state"] == "ok"


def test_what_belongs_to_no_vdu_comes_last(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    package, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api), vdus={})
    client.onboard(package)
    path = client.create(vnfd_id)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    (vdu,) = resources(client, path)["vdus"]
    assert vdu["vduId"] == ""
    assert [each["object"] for each in vdu["workloads"]] == ["Deployment default/front"]


def test_an_instance_sees_only_its_own(
    client: Client, cluster: EmbeddedCluster, vnf: str, tmp_path: Path
) -> None:
    """Both are in the same namespace."""
    file = "Files/kubernetes/other.yaml"
    other = scalable.WORKLOAD.format(kind="Deployment", name="other")
    manifests = {file: other.replace("  serviceName: other\n", "")}
    package, vnfd_id = vnfs.package(
        tmp_path, "1.0", vnfs.ours(client.api), manifests, {"VDU1": "other"}
    )
    client.onboard(package)
    path = client.create(vnfd_id)
    request = vnfs.instantiation(client.vims(cluster), def_files=[file])
    client.do("POST", f"{path}/instantiate", request)
    assert workloads(resources(client, path)).keys() == {"Deployment default/other"}
    assert workloads(resources(client, vnf)).keys() == {
        "Deployment default/front",
        "StatefulSet default/worker",
    }


def test_an_instance_that_is_not_instantiated_has_nothing(client: Client, created: str) -> None:
    assert resources(client, created)["vdus"] == []
    root = created.rpartition("/")[0]
    client.call("GET", f"{root}/00000000-0000-4000-8000-000000000000/resources", status=404)


def test_during_an_update_old_and_new_pods_are_there_and_trouble_is_told_at_once(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    cluster.behaviour.bad_images.append(NEW_IMAGE)
    gate = Gate()
    undo = Fault(gate, method="PUT", path="*/deployments/front", nth=2)
    cluster.middlewares.append(Faults(undo))
    operation = client.begin("PATCH", path, vnfs.modification(new))
    with gate.held():
        front = workloads(resources(client, path))["Deployment default/front"]
    assert front["state"] == "bad"
    assert front["images"] == [NEW_IMAGE]
    assert (front["ready"], front["readyOld"]) == (0, front["desired"]), "the old pods serve on"
    old = [vnfc for vnfc in front["vnfcs"] if vnfc["images"] != [NEW_IMAGE]]
    assert {vnfc["state"] for vnfc in old if vnfc["tone"] == "good"} == {"Running"}
    (bad, *_) = (vnfc for vnfc in front["vnfcs"] if vnfc["tone"] == "bad")
    assert bad["state"] in ("ErrImagePull", "ImagePullBackOff")
    assert NEW_IMAGE in bad["problem"]
    assert client.settled(operation)["operationState"] == "FAILED_TEMP"


def test_both_sides_of_a_blue_green_change_belong_to_the_vdu(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    path, new = vnfs.launched(client, cluster, tmp_path)
    gate = Gate()
    deletion = Fault(gate, method="DELETE", path="*/deployments/*")
    cluster.middlewares.append(Faults(deletion))
    request = {"vnfdId": new, "additionalParams": {"upgrade_type": "Blue-Green"}}
    operation = client.begin("POST", f"{path}/change_vnfpkg", request)
    with gate.held():
        (vdu,) = resources(client, path)["vdus"]
        assert vdu["vduId"] == "VDU1"
        images = sorted(image for each in vdu["workloads"] for image in each["images"])
        assert images == ["registry.example/web:1.0", NEW_IMAGE]
        assert {each["ready"] for each in vdu["workloads"]} == {2}
    assert client.settled(operation)["operationState"] == "COMPLETED"
    (front,) = workloads(resources(client, path)).values()
    assert front["images"] == [NEW_IMAGE]


def test_a_look_takes_one_request_for_each_kind(
    client: Client, cluster: EmbeddedCluster, vnf: str
) -> None:
    for _ in range(2):
        cluster.clear_requests()
        resources(client, vnf)
        listed = sorted(record.path.rpartition("/")[2] for record in cluster.requests)
        assert listed == ["deployments", "pods", "replicasets", "statefulsets"]


def test_a_vim_that_refuses_or_is_away_is_named(
    client: Client, cluster: EmbeddedCluster, vnf: str
) -> None:
    refusing = Faults(Fault(answer(403), path="*/pods", times=1))
    cluster.middlewares.append(refusing)
    refused = client.call("GET", f"{vnf}/resources", status=502)
    assert "Pods in namespace default" in refused["detail"]
    resources(client, vnf)
    cluster.stop()
    away = client.call("GET", f"{vnf}/resources", status=502)
    assert away["title"] == "Bad Gateway"
    assert f"cannot reach {cluster.url}" in away["detail"]


def test_the_tree_is_there_without_http(
    cluster: EmbeddedCluster, options: Options, tmp_path: Path
) -> None:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), options)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        path = client.create(client.onboard(scalable.package(tmp_path)))
        request = scalable.instantiation(client.vims(cluster))
        client.do("POST", f"{path}/instantiate", request)
        by_id = resources_of(service.context, path.rpartition("/")[2])
        assert by_id == resources(client, path)


def test_what_the_standard_does_not_have_is_marked(http: TestClient) -> None:
    paths = http.get("/openapi.json").json()["paths"]
    marked = {
        path.partition("/batches")[1] or path.rpartition("/")[2]
        for path, operations in paths.items()
        for operation in operations.values()
        if EXTENSION in operation["tags"]
    }
    assert marked == {"plan", "progress", "resources", "promote", "abort", "/batches"}


# --- OpenStack ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [BLUE_GREEN, ROLLING])
def test_servers_are_there_with_what_nova_and_heat_say(
    name: str, cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    vnf = instantiated(client, Sample(name, cloud, tmp_path, scripts=False), cloud.vims())
    tree = resources(client, vnf.path)
    assert (tree["vimType"], tree["namespace"]) == ("openstack", None)
    assert tree["stack"] == f"vnf-{vnf.id}"
    (vdu,) = tree["vdus"]
    assert vdu["vduId"] == "VDU1"
    (group,) = vdu["workloads"]
    assert group["object"] == f"Group {tree['stack']}/VDU1_group"
    assert (group["state"], group["desired"], group["ready"]) == ("ok", 2, 2)
    assert group["images"] == ["front-1.0"]
    for server in group["vnfcs"]:
        assert (server["state"], server["tone"], server["problem"]) == ("ACTIVE", "good", "")
        assert server["images"] == ["front-1.0"]
        assert server["started"]


def test_a_server_that_nova_refuses_is_bad_with_heats_reason(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    vnf = instantiated(client, Sample(ROLLING, cloud, tmp_path, scripts=False), cloud.vims())
    quota = "Quota exceeded for cores (HTTP 403)"
    refused = ResourceFault(
        where=lambda properties: properties.get("image") == "front-2.0", reason=quota, ruins=True
    )
    cloud.stack.faults.resources.append(refused)
    vnf.change("FAILED_TEMP")
    (group,) = workloads(resources(client, vnf.path)).values()
    assert (group["state"], group["desired"], group["ready"]) == ("bad", 2, 1)
    (bad,) = (server for server in group["vnfcs"] if server["tone"] == "bad")
    assert bad["state"] == "UPDATE_FAILED"
    assert quota in bad["problem"]
    assert not [secret for secret in cloud.secrets if secret in str(group)]


def test_both_stacks_of_a_blue_green_change_are_there(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    vnf = instantiated(client, Sample(BLUE_GREEN, cloud, tmp_path, scripts=False), cloud.vims())
    stuck = ResourceFault(
        where=lambda properties: properties.get("image") == "front-2.0", stuck=True, times=1
    )
    cloud.stack.faults.resources.append(stuck)
    operation = vnf.begin_change()
    until(lambda: stuck.seen, "the new stack is being created")
    tree = resources(client, vnf.path)
    assert tree["stack"] == f"vnf-{vnf.id}", "the recorded one"
    assert sorted(each["state"] for each in workloads(tree).values()) == ["changing", "ok"]

    def ended() -> bool:
        cloud.stack.release()  # again and again: it may be stuck a little after it is seen
        return str(client.call("GET", operation)["operationState"]) == "COMPLETED"

    until(ended, "the change ends")
    (group,) = workloads(resources(client, vnf.path)).values()
    assert (group["state"], group["images"]) == ("ok", ["front-2.0"])


def test_a_cloud_that_is_away_is_named(cloud: Cloud, http: TestClient, tmp_path: Path) -> None:
    client = Client(http, "v2")
    vnf = instantiated(client, Sample(ROLLING, cloud, tmp_path, scripts=False), cloud.vims())
    cloud.stack.stop()
    away = client.call("GET", f"{vnf.path}/resources", status=502)
    assert not [secret for secret in cloud.secrets if secret in str(away)]
