"""Proof 2: ``VnfLcmDriver.modify_vnf``, called as by the conductor, on Tacker's own objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker.conftest import Build, Kubectl, guide_request, running_cnf
from tests.tacker.operator import Operator
from tests.tacker.services import Tacker


def modify(tacker: Tacker, instance_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Modify in a Tacker process and return the database's content before and after."""
    completed = tacker.script("modify_v1.py", instance_id, json.dumps(request))
    assert completed.returncode == 0, completed.stderr.decode()[-3000:]
    return dict(json.loads(completed.stdout.splitlines()[-1]))


@pytest.fixture
def operator(tacker: Tacker) -> Operator:
    return Operator(tacker, "v1")


def test_afterwards_the_database_has_the_live_pods_and_the_new_def_files(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    instance_id, new = running_cnf(operator, cluster, build)
    kubectl.scale("Deployment", "deployment1", 3)
    request = {**guide_request("v1", "sample_param_file.json"), "vnfdId": new}

    result = modify(operator.tacker, instance_id, request)

    assert (result["error"], result["vnfd_id"]) == ("", new)
    assert [each["pod"] for each in sorted(result["after"], key=pod_name)] == sorted(kubectl.pods())
    old_ids = {each["id"] for each in result["before"]}
    added = [each for each in result["after"] if each["id"] not in old_ids]
    assert [(each["vdu"], each["kind"]) for each in added] == [("VDU1", "Deployment")] * 2
    for each in added:
        assert json.loads(each["metadata"]["Deployment"])["name"] == "deployment1"
    assert old_ids <= {each["id"] for each in result["after"]}, "a VNFC keeps its id"
    before_files = guide_request("v1", "instance_kubernetes.json")["additionalParams"]
    renamed = {
        "Files/kubernetes/configmap_1.yaml": "Files/kubernetes/configmap_2.yaml",
        "Files/kubernetes/secret_1.yaml": "Files/kubernetes/secret_2.yaml",
    }
    expected = [renamed.get(name, name) for name in before_files["lcm-kubernetes-def-files"]]
    assert result["files"] == expected


def test_a_failed_update_leaves_the_records_of_the_pods_that_run(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    instance_id, new = running_cnf(operator, cluster, build)
    before = kubectl.pods()
    request = {**guide_request("v1", "sample_param_file.json"), "vnfdId": new}
    request["metadata"]["configmap_secret_paths"] = ["Files/kubernetes/no_such_file.yaml"]

    result = modify(operator.tacker, instance_id, request)

    assert result["error"].startswith("PackageError: ")
    assert "no_such_file.yaml" in result["error"]
    assert result["after"] == result["before"]
    assert kubectl.pods().keys() == before.keys()


def pod_name(record: dict[str, Any]) -> str:
    return str(record["pod"])
