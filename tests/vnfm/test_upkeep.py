# SPDX-License-Identifier: Apache-2.0
"""Heal and scale over REST."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import KubernetesCluster, ObjectKey
from tests.tacker.conftest import Kubectl
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.conftest import SAMPLES, unrecorded
from tests.vnfm.scalable import recorded

OPTIONS = Options(lease_seconds=3, timeout=20, undo_timeout=20, grace_period=0.5, drain_seconds=0)
Json = dict[str, Any]
FRONT, WORKER = "front", "worker"


@pytest.fixture
def options() -> Options:
    return OPTIONS


# --- heal ---------------------------------------------------------------------------------------


def ids(client: Client, path: str) -> dict[str, str]:
    """Return what the API calls each VNFC, by its pod."""
    info = client.call("GET", path)["instantiatedVnfInfo"]
    pods = {e["id"]: e["computeResource"]["resourceId"] for e in info["vnfcResourceInfo"]}
    if client.api == "v1":
        return {pod: vnfc for vnfc, pod in pods.items()}
    return {pods[vnfc["vnfcResourceInfoId"]]: vnfc["id"] for vnfc in info["vnfcInfo"]}


def uids(kubectl: Kubectl) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in kubectl.pods().items()}


@pytest.mark.parametrize("workload", [FRONT, WORKER])
def test_a_heal_of_a_vnfc_replaces_its_pod_and_no_other(
    workload: str, client: Client, vnf: str, kubectl: Kubectl
) -> None:
    before = uids(kubectl)
    (broken,) = (name for name in before if name.startswith(workload))
    body = {"vnfcInstanceId": [ids(client, vnf)[broken]], "cause": "it does not answer"}
    operation = client.do("POST", f"{vnf}/heal", body)
    after = uids(kubectl)
    assert before[broken] not in after.values()
    assert set(before.values()) - set(after.values()) == {before[broken]}
    assert len(after) == len(before)
    shown = client.call("GET", vnf)
    assert sorted(name for names in recorded(shown).values() for name in names) == sorted(after)
    affected = operation["resourceChanges"]["affectedVnfcs"]
    changed = {entry["computeResource"]["resourceId"] for entry in affected}
    assert set(after) & changed == {name for name in after if name.startswith(workload)}


def test_a_heal_of_the_whole_vnf_brings_everything_to_its_manifests(
    client: Client, vnf: str, kubectl: Kubectl, kubernetes: KubernetesCluster
) -> None:
    before = uids(kubectl)
    kubernetes.delete(ObjectKey("", "Service", "default", "front"))
    kubernetes.delete(ObjectKey("apps", "StatefulSet", "default", "worker"))
    front = kubernetes.get(ObjectKey("apps", "Deployment", "default", "front"))
    assert front is not None
    front["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    kubernetes.replace(front)

    client.do("POST", f"{vnf}/heal", {})

    after = uids(kubectl)
    assert not set(before.values()) & set(after.values())
    assert kubernetes.get(ObjectKey("", "Service", "default", "front")) is not None
    front = kubernetes.get(ObjectKey("apps", "Deployment", "default", "front"))
    assert front is not None
    assert "env" not in front["spec"]["template"]["spec"]["containers"][0]
    assert front["spec"]["replicas"] == 1, "the instantiation level's, not the manifest's"
    shown = client.call("GET", vnf)
    assert sorted(name for names in recorded(shown).values() for name in names) == sorted(after)


def test_a_second_heal_changes_no_object_that_is_as_its_manifest_says(
    client: Client, vnf: str, kubernetes: KubernetesCluster
) -> None:
    client.do("POST", f"{vnf}/heal", {})
    service = kubernetes.get(ObjectKey("", "Service", "default", "front"))
    operation = client.do("POST", f"{vnf}/heal", {"additionalParams": {"all": True}})
    assert kubernetes.get(ObjectKey("", "Service", "default", "front")) == service
    steps = client.call("GET", f"{operation['_links']['self']['href']}/progress")["steps"]
    assert {step["object"].split()[0] for step in steps} == {"Deployment", "StatefulSet"}


@pytest.mark.thorough
def test_after_an_update_a_heal_brings_the_rest_of_the_new_manifests_into_effect(
    client: Client, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    """The v1 user guide, note 4."""
    driver = vnfs.ours(client.api)
    old, _ = vnfs.package(tmp_path, "1.0", driver)
    new_text = vnfs.DEPLOYMENT + '        - {{name: AUDIT, value: "on"}}\n'
    new, new_id = vnfs.package(tmp_path, "2.0", driver, deployment=new_text)
    path = client.create(client.onboard(old))
    client.onboard(new)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    client.do("PATCH", path, vnfs.modification(new_id))
    assert "AUDIT" not in environment(kubernetes)
    client.do("POST", f"{path}/heal", {})
    assert "AUDIT" in environment(kubernetes)


def environment(kubernetes: KubernetesCluster) -> set[str]:
    front = kubernetes.get(ObjectKey("apps", "Deployment", "default", "front"))
    assert front is not None
    (container,) = front["spec"]["template"]["spec"]["containers"]
    return {entry["name"] for entry in container["env"]}


@pytest.mark.thorough
def test_after_a_blue_green_change_a_heal_replaces_its_pods(
    http: TestClient,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    zipped: Callable[[str], Mapping[str, Path]],
) -> None:
    client, sample = Client(http, "v2"), "04-blue-green"
    old, _ = (client.onboard(path) for path in zipped(sample).values())
    path = client.create(old)
    request = vnfs.instantiation(client.vims(cluster))
    files = ("page.yaml", "deployment.yaml", "service.yaml")
    params = {"lcm-kubernetes-def-files": [f"Files/kubernetes/{file}" for file in files]}
    request |= {"flavourId": "default", "additionalParams": params}
    client.do("POST", f"{path}/instantiate", request)
    change = json.loads((SAMPLES / sample / "request.json").read_text())
    client.do("POST", f"{path}/change_vnfpkg", change)
    (one, *_) = before = uids(kubectl)
    client.do("POST", f"{path}/heal", {"vnfcInstanceId": [ids(client, path)[one]]})
    assert set(before) - set(uids(kubectl)) == {one}
    operation = client.do("POST", f"{path}/heal", {})

    after = uids(kubectl)
    assert set(before).isdisjoint(after)
    assert {name.rsplit("-", 2)[0] for name in after} == {"front"}, "the manifest's name"
    assert len(after) == len(before)
    shown = client.call("GET", path)
    assert sorted(name for names in recorded(shown).values() for name in names) == sorted(after)
    steps = client.call("GET", f"{operation['_links']['self']['href']}/progress")["steps"]
    assert [step["object"].split()[0] for step in steps] == ["Deployment"]


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["retry", "rollback"])
@pytest.mark.parametrize("asked", ["one", "all"])
def test_a_heal_that_fails_is_finished_or_rolled_back(
    way: str, asked: str, client: Client, vnf: str, cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    cluster.behaviour.bad_images = ["*"]
    if asked == "all":  # a controller waits for its pods, however long they back off
        cluster.behaviour.backoff_seconds = cluster.behaviour.backoff_limit_seconds = 0.1
    vnfcs = ids(client, vnf)
    broken = next(name for name in vnfcs if name.startswith(FRONT))
    body = {"vnfcInstanceId": [vnfcs[broken]]} if asked == "one" else {}
    operation = client.do("POST", f"{vnf}/heal", body, "FAILED_TEMP")
    assert FRONT in operation["error"]["detail"] or WORKER in operation["error"]["detail"]
    cluster.behaviour.bad_images = []
    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    client.do("POST", f"{operation['_links']['self']['href']}/{way}", state=state)
    shown = client.call("GET", vnf)
    assert sorted(n for names in recorded(shown).values() for n in names) == sorted(kubectl.pods())
    assert len(kubectl.pods()) == 2


# --- scale --------------------------------------------------------------------------------------


def scaling(kind: str, steps: int | None = None) -> Json:
    body: Json = {"type": f"SCALE_{kind}", "aspectId": scalable.ASPECT}
    return body if steps is None else {**body, "numberOfSteps": steps}


def level_of(client: Client, path: str) -> int:
    (status,) = client.call("GET", path)["instantiatedVnfInfo"]["scaleStatus"]
    assert status["aspectId"] == scalable.ASPECT
    return int(status["scaleLevel"])


def test_an_aspect_is_scaled_out_and_in_again(client: Client, vnf: str, kubectl: Kubectl) -> None:
    before = uids(kubectl)
    for body, level, workers in (
        (scaling("OUT", 2), 2, 3),
        (scaling("IN"), 1, 2),
        (scaling("IN", 1), 0, 1),
    ):
        operation = client.do("POST", f"{vnf}/scale", body)
        shown = client.call("GET", vnf)
        assert level_of(client, vnf) == level
        assert len(recorded(shown)["VDU2"]) == workers
        assert sorted(n for pods in recorded(shown).values() for n in pods) == sorted(
            kubectl.pods()
        )
        kinds = {each["changeType"] for each in operation["resourceChanges"]["affectedVnfcs"]}
        assert kinds == {"ADDED" if body["type"] == "SCALE_OUT" else "REMOVED"}
    assert uids(kubectl) == before


LACKING: list[tuple[str, Json, str]] = [
    ("heal", {"vnfcInstanceId": ["nobody"]}, "vnfcInstanceId: expected ids .*, found nobody"),
    ("heal", {"vnfcInstanceId": []}, "vnfcInstanceId"),
    ("heal", {"healScript": "heal.sh"}, "healScript"),
    ("scale", {"type": "SCALE_OUT", "aspectId": "x"}, "aspectId: .* worker_ins.*, found x"),
    ("scale", scaling("OUT", 3), "numberOfSteps: .* 0, expected a level from 0 to 2.* found 3"),
    ("scale", scaling("IN"), "numberOfSteps: .* found -1"),
    ("scale", scaling("OUT", 0), "numberOfSteps"),
    ("scale", {"type": "UP", "aspectId": scalable.ASPECT}, "type"),
]


def test_what_the_vnf_does_not_have_is_refused(client: Client, vnf: str) -> None:
    for verb, body, message in LACKING:
        refused = client.call("POST", f"{vnf}/{verb}", body, 422)
        assert re.search(message, refused["detail"]), (message, refused)


def test_a_workload_without_a_number_of_pods_is_not_scaled_and_the_request_is_refused(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = client.create(client.onboard(scalable.package(tmp_path, "DaemonSet")))
    client.do("POST", f"{path}/instantiate", scalable.instantiation(client.vims(cluster)))
    refused = client.call("POST", f"{path}/scale", scaling("OUT"), 422)
    assert "expected a workload with a number of pods" in refused["detail"]
    assert "found a DaemonSet" in refused["detail"]
    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})


@pytest.mark.parametrize("way", ["retry", "rollback"])
def test_a_scaling_that_fails_is_finished_or_rolled_back(
    way: str, client: Client, vnf: str, cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    cluster.behaviour.bad_images = ["*worker*"]
    cluster.behaviour.backoff_seconds = 0.1
    operation = client.do("POST", f"{vnf}/scale", scaling("OUT", 2), "FAILED_TEMP")
    assert "not ready in time" not in operation["error"]["detail"], "the old pods hide nothing"
    assert level_of(client, vnf) == 0
    cluster.behaviour.bad_images = []
    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    client.do("POST", f"{operation['_links']['self']['href']}/{way}", state=state)
    assert level_of(client, vnf) == {"retry": 2, "rollback": 0}[way]
    workers = [name for name in kubectl.pods() if name.startswith(WORKER)]
    assert len(workers) == {"retry": 3, "rollback": 1}[way]
    assert recorded(client.call("GET", vnf))["VDU2"] == sorted(workers)


@pytest.mark.thorough
@pytest.mark.parametrize(("verb", "body"), [("heal", {}), ("scale", scaling("OUT"))])
def test_what_was_done_and_not_recorded_is_not_done_twice(
    verb: str, body: Json, client: Client, vnf: str, kubectl: Kubectl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with unrecorded(monkeypatch):
        operation = client.do("POST", f"{vnf}/{verb}", body, "FAILED_TEMP")
    done = uids(kubectl)
    client.do("POST", f"{operation['_links']['self']['href']}/retry")
    assert uids(kubectl) == done
    shown = client.call("GET", vnf)
    assert sorted(name for names in recorded(shown).values() for name in names) == sorted(done)
    assert level_of(client, vnf) == (verb == "scale")


def test_a_scaling_that_was_done_and_not_recorded_is_taken_back_by_a_rollback(
    client: Client, vnf: str, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = uids(kubectl)
    with unrecorded(monkeypatch):
        operation = client.do("POST", f"{vnf}/scale", scaling("OUT"), "FAILED_TEMP")
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert (level_of(client, vnf), uids(kubectl)) == (0, before)
