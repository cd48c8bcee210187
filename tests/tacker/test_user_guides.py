# SPDX-License-Identifier: Apache-2.0
"""Proof 4: both user guides' procedures, with the real client, server and conductor."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker.conftest import SAMPLES, Build, Kubectl, guide_request
from tests.tacker.operator import Operator, verb
from tests.tacker.services import Tacker


@dataclass(frozen=True)
class Guide:
    """What a guide's tables show."""

    api: str
    new_pods: dict[str, str]
    """VDU to the workload whose pods are new afterwards."""
    same_pods: tuple[str, ...]
    """The Pods that are restarted in place."""
    untouched: tuple[str, ...]
    """The workloads of the second group."""
    untouched_config: str
    """The last part of the names of its ConfigMap and Secret."""

    @property
    def readme(self) -> str:
        """The sample whose README describes the procedure."""
        return {"v1": "02-tacker-v1", "v2": "03-tacker-v2"}[self.api]


GUIDES = [
    Guide(
        "v1",
        {"VDU1": "deployment1", "VDU3": "daemonset", "VDU4": "replicaset"},
        ("env-test1", "volume-test1"),
        ("deployment2", "env-test2", "volume-test2"),
        "data2",
    ),
    Guide(
        "v2",
        {"VDU1": "vdu1-update", "VDU2": "vdu2-update", "VDU5": "daemonset-vdu5"},
        ("env-test", "volume-test"),
        ("deployment2-vdu6", "env-test2", "volume-test2"),
        "data3",
    ),
]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.api)
def test_the_guides_procedure_does_what_the_guide_shows(
    guide: Guide,
    tacker: Tacker,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    build: Build,
    tmp_path: Path,
) -> None:
    operator, packages = Operator(tacker, guide.api), build(guide.api)
    old, new = (upload(operator, packages[side]) for side in SIDES)
    request = guide_request(guide.api, "instance_kubernetes.json")
    request["vimConnectionInfo"] = vim_connection(operator, cluster, tmp_path)
    instance_id = create(operator, old)
    instantiate(operator, instance_id, request, tmp_path)
    before, recorded_before = kubectl.pods(), resources(operator.show(instance_id))

    update(operator, instance_id, new)

    after, instance = kubectl.pods(), operator.show(instance_id)
    operator.openstack("vnflcm", "show", instance_id)
    recorded = resources(instance)
    assert instance["vnfdId"] == new
    assert sorted(recorded.values()) == sorted(after), "the records name the live pods"
    for name in guide.same_pods:
        assert uid(before[name]) == uid(after[name])
        assert restarts(after[name]) == 1
    for workload in guide.new_pods.values():
        assert not set(pods_of(workload, before)) & set(pods_of(workload, after))
        assert len(pods_of(workload, after)) == 1
    for workload in guide.untouched:
        (name,) = pods_of(workload, before)
        assert (uid(before[name]), restarts(after[name])) == (uid(after[name]), 0)
    if guide.api == "v2":
        entries = instance["instantiatedVnfInfo"]["vnfcInfo"]
        assert {entry["vnfcResourceInfoId"] for entry in entries} == recorded.keys()
    else:
        assert recorded.keys() == recorded_before.keys(), "a VNFC keeps its id"
    assert kubectl.data("ConfigMap", "cm-data") == {"cmKey1.txt": "configmap2 data2\nfoo2\nbar2"}
    old_text = {"cmKey1.txt": "configmap data\nfoo\nbar"}
    assert kubectl.data("ConfigMap", f"cm-{guide.untouched_config}") == old_text

    terminate_and_delete(operator, instance_id)
    assert kubectl.pods() == {}
    assert kubectl.names("ConfigMap") <= {"kube-root-ca.crt"}
    assert set(operator.typed) == documented(guide.readme)


SIDES = ("before", "after")


def documented(sample: str) -> set[str]:
    """Return the client's commands to the service in a sample's README; others go to a cloud."""
    text = (SAMPLES / sample / "README.rst").read_text()
    return {verb(command) for command in re.findall(r"\$ openstack (?!--os-cloud)(.*)", text)}


def upload(operator: Operator, package: Path) -> str:
    """Create a package, upload it and return the VNFD's id, as the guides do."""
    created = json.loads(operator.openstack_v1("vnf", "package", "create", "-f", "json"))
    operator.openstack_v1("vnf", "package", "upload", "--path", str(package), created["ID"])
    operator.onboarded(created["ID"])
    output = operator.openstack_v1("vnf", "package", "show", created["ID"], "-f", "json")
    return str(json.loads(output)["VNFD ID"])


def create(operator: Operator, vnfd_id: str) -> str:
    created = json.loads(operator.openstack("vnflcm", "create", vnfd_id, "-f", "json"))
    assert created["Instantiation State"] == "NOT_INSTANTIATED"
    return str(created["ID"])


def vim_connection(operator: Operator, cluster: EmbeddedCluster, folder: Path) -> Any:
    """In v1 a VIM is registered before; in v2 the request describes it."""
    if operator.api == "v2":
        return operator.vim_connection(cluster)
    vim = {
        "auth_url": cluster.url,
        "bearer_token": cluster.token,
        "ssl_ca_cert": cluster.ca_text,
        "project_name": "default",
        "type": "kubernetes",
    }
    file = folder / "vim.yaml"
    file.write_text(yaml.safe_dump(vim))
    default = ["--is-default"] if operator.has_no_vim() else []
    command = ["vim", "register", "--config-file", str(file), *default, f"vim-{cluster.port}"]
    registered = json.loads(operator.openstack(*command, "-f", "json"))
    return [{"id": "vim", "vimId": registered["id"], "vimType": "kubernetes"}]


def instantiate(
    operator: Operator, instance_id: str, request: dict[str, Any], folder: Path
) -> None:
    file = folder / "instance_kubernetes.json"
    file.write_text(json.dumps(request))
    accepted = operator.openstack("vnflcm", "instantiate", instance_id, str(file))
    assert "has been accepted" in accepted
    assert operator.settled(instance_id, "INSTANTIATE")["operationState"] == "COMPLETED"


def update(operator: Operator, instance_id: str, new_vnfd_id: str) -> None:
    request = guide_request(operator.api, "sample_param_file.json")
    assert request["vnfdId"] == new_vnfd_id
    file = SAMPLES / "01-user-guide" / operator.api / "sample_param_file.json"
    accepted = operator.openstack("vnflcm", "update", instance_id, "--I", str(file))
    assert accepted.strip() == f"Update vnf:{instance_id}"
    occurrence = operator.settled(instance_id, "MODIFY_INFO")
    assert occurrence["operationState"] == "COMPLETED", occurrence


def terminate_and_delete(operator: Operator, instance_id: str) -> None:
    operator.openstack("vnflcm", "terminate", instance_id)
    assert operator.settled(instance_id, "TERMINATE")["operationState"] == "COMPLETED"
    deleted = operator.openstack("vnflcm", "delete", instance_id)
    assert "deleted successfully" in deleted


def resources(instance: dict[str, Any]) -> dict[str, str]:
    """Return the name of each VNFC's pod, by VNFC id."""
    recorded = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return {each["id"]: each["computeResource"]["resourceId"] for each in recorded}


def pods_of(workload: str, pods: dict[str, Any]) -> list[str]:
    pattern = rf"{workload}(-[0-9a-z]+)?(-[0-9a-z]{{5}})?"
    return [name for name in pods if re.fullmatch(pattern, name)]


def uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def restarts(pod: dict[str, Any]) -> int:
    return sum(status["restartCount"] for status in pod["status"]["containerStatuses"])
