# SPDX-License-Identifier: Apache-2.0
"""Modify requests that concern the package which the VNF runs from already, and what is stored."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options, connect, freeze
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import ObjectKey
from tests.internals.service import v2
from tests.tacker.conftest import Kubectl
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.test_api import broken

SETTINGS = "Files/kubernetes/settings.yaml"


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, grace_period=1, drain_seconds=0)


def instantiated(client: Client, cluster: EmbeddedCluster, folder: Path) -> str:
    """Return the path of an instance of the small VNF, version 1.0."""
    package, vnfd_id = vnfs.package(folder, "1.0", vnfs.ours(client.api))
    client.onboard(package)
    path = client.create(vnfd_id)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    return path


def recorded_pods(client: Client, path: str) -> set[str]:
    info = client.call("GET", path)["instantiatedVnfInfo"]
    return {entry["computeResource"]["resourceId"] for entry in info["vnfcResourceInfo"]}


def refresh(*paths: str) -> dict[str, Any]:
    return {"metadata": {"configmap_secret_paths": list(paths)}}


def test_listed_configuration_becomes_again_what_the_present_package_says(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path = instantiated(client, cluster, tmp_path)
    before = set(kubectl.pods())
    change_by_hand(cluster, tmp_path)

    client.do("PATCH", path, refresh(SETTINGS))

    assert kubectl.data("ConfigMap", "settings") == {"level": "1.0"}
    assert not before & set(kubectl.pods()), "whoever uses the changed key is restarted"
    assert recorded_pods(client, path) == set(kubectl.pods())


def test_a_text_block_at_the_end_of_a_file_is_read_as_by_tacker(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """What the user guides show of ``cm-data`` and ``secret-data`` has no line break at its end."""

    def package(version: str) -> str:
        config = vnfs.CONFIG.partition("\ndata:")[0] + f"\ndata:\n  level: |\n    a\n    {version}"
        deployment = vnfs.DEPLOYMENT.format(version="1.0")
        files = dict(zip(vnfs.DEF_FILES, (config.format(), deployment), strict=True))
        path, vnfd_id = vnfs.package(tmp_path, version, vnfs.ours(client.api), files)
        client.onboard(path)
        return vnfd_id

    path = client.create(package("1.0"))
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    assert kubectl.data("ConfigMap", "settings") == {"level": "a\n1.0"}
    client.do("PATCH", path, vnfs.modification(package("2.0")))
    assert kubectl.data("ConfigMap", "settings") == {"level": "a\n2.0"}


def test_a_listed_file_that_the_present_package_has_not_is_named_and_rolled_back(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path = instantiated(client, cluster, tmp_path)
    change_by_hand(cluster, tmp_path)
    before = client.call("GET", path)

    operation = client.do("PATCH", path, refresh("Files/no-such.yaml"), "FAILED_TEMP")
    assert "Files/no-such.yaml" in operation["error"]["detail"]
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")

    assert kubectl.data("ConfigMap", "settings") == {"level": "by hand"}, "nothing was touched"
    assert client.call("GET", path) == before


def test_a_vnf_stays_in_the_namespace_that_it_was_instantiated_in(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path = instantiated(client, cluster, tmp_path)
    for namespace in ("other", None, "", ["default"]):
        problem = client.call("PATCH", path, {"metadata": {"namespace": namespace}}, 422)
        assert problem["detail"] == (
            "metadata.namespace: expected default, in which the VNF was instantiated: leave it "
            "out; to move the VNF, terminate it and instantiate it in the other namespace"
        )
    client.do("PATCH", path, {"metadata": {"namespace": "default", "a": "b"}})
    assert len(kubectl.pods()) == 2

    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})

    assert not kubectl.pods()
    client.do("PATCH", path, {"metadata": {"namespace": "other"}})
    assert client.call("GET", path)["metadata"]["namespace"] == "other"


def test_properties_are_set_of_vnfcs_that_the_vnf_has(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    path = instantiated(client, cluster, tmp_path)
    first, second = client.call("GET", path)["instantiatedVnfInfo"]["vnfcInfo"]
    changes = [
        {"id": vnfc_id, "vnfcConfigurableProperties": {"colour": "green"}}
        for vnfc_id in (first["id"], "another")
    ]
    refused = client.call("PATCH", path, {"vnfcInfoModifications": changes}, 422)
    assert refused["detail"] == (
        "vnfcInfoModifications.1.id: expected an id of the instance's vnfcInfo "
        f"({first['id']}, {second['id']}), found another"
    )

    changed = client.do("PATCH", path, {"vnfcInfoModifications": changes[:1]})["changedInfo"]

    assert changed == {"vnfcInfoModifications": changes[:1]}
    properties = {"vnfcConfigurableProperties": {"colour": "green"}}
    info = client.call("GET", path)["instantiatedVnfInfo"]["vnfcInfo"]
    assert info == [{**first, **properties}, second]


def test_another_namespace_in_a_file_that_stays_is_told_and_does_not_take_effect(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path, _ = vnfs.launched(client, cluster, tmp_path)
    config = vnfs.CONFIG.format(version="3.0").replace("{name: settings}", MOVED)
    texts = (config, vnfs.DEPLOYMENT.format(version="1.0"))
    manifests = dict(zip(vnfs.DEF_FILES, texts, strict=True))
    package, vnfd_id = vnfs.package(tmp_path, "3.0", vnfs.ours(client.api), manifests)
    client.onboard(package)

    operation = client.do("PATCH", path, {"vnfdId": vnfd_id})

    told = client.call("GET", f"{operation['_links']['self']['href']}/progress")
    assert "metadata.namespace" in str(told), told
    assert kubectl.data("ConfigMap", "settings") == {"level": "3.0"}


def test_our_own_driver_runs_in_this_process_in_both_apis(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    monkeypatch.setattr(v2, "Process", None)
    client.do("PATCH", path, vnfs.modification(new))


@pytest.mark.parametrize("paths", [5, [[]]])
def test_a_list_of_files_that_is_none_is_named_and_rolled_back(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path, paths: object
) -> None:
    path = instantiated(client, cluster, tmp_path)
    request = {"metadata": {"configmap_secret_paths": paths}}
    operation = client.do("PATCH", path, request, "FAILED_TEMP")
    assert "configmap_secret_paths" in operation["error"]["detail"]
    assert "expected " in operation["error"]["detail"]
    assert "defect" not in operation["error"]["detail"]
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")


def test_the_list_of_files_is_stored_as_by_tacker(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """Tacker 16 takes it out of what it stores in its v1 API, and stores it in v2."""
    path = instantiated(client, cluster, tmp_path)
    request = refresh(SETTINGS)
    request["metadata"]["a"] = "b"

    client.do("PATCH", path, request)

    metadata = client.call("GET", path)["metadata"]
    assert {"a": "b"}.items() <= metadata.items()
    assert ("configmap_secret_paths" in metadata) is (client.api == "v2")


def test_at_its_end_a_modification_needs_the_drivers_file_in_the_new_package(
    http: TestClient, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """By then the record names the new package, and Tacker 16 looks into that one."""
    client = Client(http, "v1")
    path = instantiated(client, cluster, tmp_path)
    other = vnfs.Driver(vnfs.OURS, vnfs.ours("v1").file, b"# an older copy")
    package, vnfd_id = vnfs.package(tmp_path, "2.0", other)
    client.onboard(package)
    before = set(kubectl.pods())

    operation = client.do("PATCH", path, vnfs.modification(vnfd_id), "FAILED_TEMP")

    assert "is not the file of the driver mgmt-container-update" in operation["error"]["detail"]
    assert set(kubectl.pods()) == before


def change_by_hand(cluster: EmbeddedCluster, folder: Path) -> None:
    with connect(str(cluster.write_kubeconfig(folder / "by-hand"))) as operator:
        live = operator.get(ObjectKey("", "ConfigMap", "default", "settings"))
        assert live is not None
        operator.replace({**live, "data": {"level": "by hand"}})


def test_what_does_not_take_effect_is_a_remark_of_the_operation(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = instantiated(client, cluster, tmp_path)
    env = "        env:\n        - {{name: COLOUR, value: a-secret-blue}}\n"
    deployment = vnfs.DEPLOYMENT.replace("        env:\n", env)
    package, vnfd_id = vnfs.package(tmp_path, "2.0", vnfs.ours(client.api), deployment=deployment)
    client.onboard(package)
    caplog.set_level("INFO", "container_update")

    operation = client.do("PATCH", path, vnfs.modification(vnfd_id))

    progress = client.call("GET", f"{operation['_links']['self']['href']}/progress")
    assert {step["state"] for step in progress["steps"]} == {"done"}
    (remark,) = (each for each in progress["remarks"] if each["kind"] == "not applied")
    assert remark["object"] == "Deployment default/front"
    assert "COLOUR" in remark["text"] or "env" in remark["text"]
    assert "a-secret-blue" not in str(progress) + caplog.text
    assert f"Deployment default/front: not applied: {remark['text']}" in caplog.text


def with_new_package(client: Client, cluster: EmbeddedCluster, folder: Path) -> tuple[str, str]:
    """Instantiate the old package and onboard the new one; its path, and the new VNFD's id."""
    path = instantiated(client, cluster, folder)
    package, vnfd_id = vnfs.package(folder, "2.0", vnfs.ours(client.api))
    client.onboard(package)
    return path, vnfd_id


MOVED = "{name: settings, namespace: other}"


def change(vnfd_id: str) -> dict[str, Any]:
    """Return a request to change the whole package."""
    return {"vnfdId": vnfd_id, "metadata": {"upgrade_type": "Blue-Green", "colour": "blue"}}


def test_an_upgrade_type_in_the_metadata_changes_the_package(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path, vnfd_id = with_new_package(client, cluster, tmp_path)
    before, old = set(kubectl.pods()), kubectl.get("Deployment", "front", "apps")

    client.do("PATCH", path, change(vnfd_id))

    instance = client.call("GET", path)
    assert instance["vnfdId"] == vnfd_id
    assert instance["metadata"]["colour"] == "blue"
    assert "upgrade_type" not in instance["metadata"]
    assert not before & set(kubectl.pods())
    assert recorded_pods(client, path) == set(kubectl.pods())
    new = kubectl.get("Deployment", "front", "apps")
    assert new["metadata"]["uid"] != old["metadata"]["uid"], "another one took its name"
    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    assert kubectl.names("Deployment", "apps") == set()


def test_a_change_that_fails_leaves_what_ran_and_a_rollback_has_nothing_to_do(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path, vnfd_id = with_new_package(client, cluster, tmp_path)
    broken(cluster, "*/web:2.0")
    before, pods = client.call("GET", path), set(kubectl.pods())

    operation = client.do("PATCH", path, change(vnfd_id), "FAILED_TEMP")
    assert "Deployment default/front" in operation["error"]["detail"]
    assert (client.call("GET", path), set(kubectl.pods())) == (before, pods)
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert (client.call("GET", path), set(kubectl.pods())) == (before, pods)


def test_a_frozen_instance_is_not_modified_and_the_error_says_who_until_when_and_why(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    instance_id = path.rpartition("/")[2]
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as admin:
        frozen = freeze(admin, instance_id=instance_id, until=until, why="the night of the final")
    before, level = set(kubectl.pods()), kubectl.data("ConfigMap", "settings")
    operation = client.do("PATCH", path, vnfs.modification(new), "FAILED_TEMP")
    for part in (frozen.who, f"until {until:%Y-%m-%d %H:%M:%S} UTC", frozen.why):
        assert part in operation["error"]["detail"]
    assert (set(kubectl.pods()), kubectl.data("ConfigMap", "settings")) == (before, level)
