"""Blue-Green inside a real Tacker 16: a modify request whose metadata has an ``upgrade_type``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.package.build import write_metadata
from tests.tacker import test_modify_v1 as v1
from tests.tacker.conftest import Build, Kubectl, guide_request, running_cnf
from tests.tacker.lab import Lab
from tests.tacker.operator import Operator
from tests.tacker.services import Tacker
from tests.tacker.test_modify_v2 import NEW, break_image, host, live_images, recorded, unpacked

__all__ = ["unpacked"]

SCRIPT = "Scripts/coordinate.py"
PASSWORD = "sesame-open"
CHANGE = {
    "upgrade_type": "Blue-Green",
    "lcm-operation-coordinate-new-vnf": SCRIPT,
    "vdu_params": [
        {
            "vdu_id": f"VDU{number}",
            "new_vnfc_param": {"cp_name": "CP1", "username": "admin", "password": PASSWORD},
        }
        for number in range(1, 9)
    ],
    "colour": "of the operator's own",
}


def add_script(package: Path, log: Path) -> None:
    """Add a coordination script, which notes the keys of what it reads, to an unpacked package."""
    code = f"""
import pickle, sys

given = pickle.load(sys.stdin.buffer)
with open({str(log)!r}, "a") as file:
    file.write(" ".join(sorted(map(str, given))) + "\\n")
"""
    (package / SCRIPT).parent.mkdir(exist_ok=True)
    (package / SCRIPT).write_text(code)
    write_metadata(package)


# --- v2 -----------------------------------------------------------------------------------------


def test_v2_changes_the_whole_package_and_keeps_no_parameter(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path], tmp_path: Path
) -> None:
    add_script(unpacked[NEW], tmp_path / "log")
    steps = host(lab, cluster, unpacked, metadata=CHANGE)

    assert steps["modify"]["error"] == ""
    instance = steps["modify"]["instance"]
    assert instance["vnfdId"] == NEW
    assert instance["metadata"] == {"colour": "of the operator's own"}
    assert PASSWORD not in json.dumps(instance)
    assert recorded(steps["modify"]) == sorted(kubectl.pods())
    assert "cirros" in live_images(kubectl)
    names = kubectl.names("Deployment", "apps")
    assert "vdu1-update" not in names, "another Deployment took its place"
    assert (tmp_path / "log").read_text().strip(), "the coordination script ran"
    assert kubectl.names("Secret") == {"secret-data", "secret-data3"}, "no journal is left"


def test_v2_after_a_failed_change_a_rollback_has_nothing_to_do_and_a_retry_completes(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    break_image(unpacked[NEW])
    metadata = {"upgrade_type": "Blue-Green"}
    steps = host(lab, cluster, unpacked, then="rollback", metadata=metadata)
    assert "ImagePullBackOff" in steps["modify"]["error"]
    assert steps["modify"]["kept"]["container_update"]["state"] == "undone"
    assert steps["rollback"]["error"] == ""
    assert steps["rollback"]["kept"]["container_update"] == {"state": "rolled back"}
    assert set(live_images(kubectl)) == {"nginx"}


def test_v2_a_change_that_tacker_did_not_record_can_only_be_finished(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    metadata = {"upgrade_type": "Blue-Green"}
    steps = host(lab, cluster, unpacked, host_fails=True, then="rollback", metadata=metadata)
    assert "the host failed" in steps["modify"]["error"]
    assert "It can only be finished: openstack vnflcm op retry" in steps["rollback"]["error"]
    assert "cirros" in live_images(kubectl)


def test_v2_with_server_and_conductor_and_a_termination_leaves_nothing(
    tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    operator = Operator(tacker, "v2")
    instance_id, new = running_cnf(operator, cluster, build)
    request = {"vnfdId": new, "metadata": {**CHANGE, "lcm-operation-coordinate-new-vnf": None}}

    occurrence = operator.modify(instance_id, request)

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert occurrence["changedInfo"]["metadata"] == {"colour": CHANGE["colour"]}
    instance = operator.show(instance_id)
    assert PASSWORD not in json.dumps(instance)
    entries = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert sorted(entry["id"] for entry in entries) == sorted(kubectl.pods())

    terminate(operator, instance_id)
    assert kubectl.pods() == {}
    assert kubectl.names("Deployment", "apps") == set()


def terminate(operator: Operator, instance_id: str) -> None:
    """Terminate; Tacker's v2 API refuses for a moment after an operation is COMPLETED."""
    path = f"/vnflcm/{operator.api}/vnf_instances/{instance_id}/terminate"
    deadline = time.monotonic() + 30
    while True:
        try:
            operator.call("POST", path, {"terminationType": "FORCEFUL"})
            break
        except AssertionError as refused:
            if "409" not in str(refused) or time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    assert operator.settled(instance_id, "TERMINATE")["operationState"] == "COMPLETED"


# --- v1 -----------------------------------------------------------------------------------------

TEXTS = {
    "upgrade_type": "Blue-Green",
    "colour": CHANGE["colour"],
    "vdu_params": json.dumps([{"vdu_id": f"VDU{number}"} for number in range(1, 9)]),
}
"""Tacker's v1 API stores texts only."""

PLACE = {"namespace": "default", "tenant": "default"}
"""What Tacker's v1 API itself keeps in the metadata."""


@pytest.fixture
def operator(tacker: Tacker) -> Operator:
    return Operator(tacker, "v1")


def v1_change(new: str, **metadata: Any) -> dict[str, Any]:
    request = {**guide_request("v1", "sample_param_file.json"), "vnfdId": new}
    return {**request, "metadata": {"upgrade_type": "Blue-Green", **metadata}}


def test_v1_changes_the_whole_package_and_a_termination_leaves_nothing(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    instance_id, new = running_cnf(operator, cluster, build)

    result = v1.modify(operator.tacker, instance_id, {**v1_change(new), "metadata": TEXTS})

    assert (result["error"], result["vnfd_id"]) == ("", new)
    assert result["metadata"] == {**PLACE, "colour": CHANGE["colour"]}
    assert sorted(each["pod"] for each in result["after"]) == sorted(kubectl.pods())
    assert {each["id"] for each in result["before"]} == {each["id"] for each in result["after"]}
    (deployment,) = (each for each in result["after"] if each["vdu"] == "VDU1")
    name = json.loads(deployment["metadata"]["Deployment"])["name"]
    assert deployment["pod"].startswith(f"{name}-")
    assert name in kubectl.names("Deployment", "apps") - {"deployment1"}

    terminate(operator, instance_id)
    assert kubectl.pods() == {}
    assert kubectl.names("Deployment", "apps") == set()


def test_v1_the_same_request_again_finishes_what_failed(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    """After a failure Tacker has the new VNFD on record and passes its package as the old one."""
    instance_id, new = running_cnf(operator, cluster, build)
    wrong = v1_change(new, vdu_params='[{"vdu_id": "VDU99"}]')

    result = v1.modify(operator.tacker, instance_id, wrong)
    assert "VDU99" in result["error"]
    assert result["vnfd_id"] == new, "as Tacker's v1 API has it"
    assert not {"upgrade_type", "vdu_params"} & result["metadata"].keys()

    result = v1.modify(operator.tacker, instance_id, v1_change(new))
    assert result["error"] == ""
    assert result["metadata"] == PLACE
    assert "cirros" in live_images(kubectl)
    assert sorted(each["pod"] for each in result["after"]) == sorted(kubectl.pods())
