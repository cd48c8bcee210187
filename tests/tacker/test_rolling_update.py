"""Tacker 16's own RollingUpdate, with the script at its start and its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.package.build import write_metadata
from tests.tacker.conftest import Kubectl, guide_request
from tests.tacker.lab import Lab
from tests.tacker.test_modify_v2 import NEW, host, images, recorded, unpacked

__all__ = ["unpacked"]

HOOK = "          change_current_package_{}:\n            implementation: mgmt-container-update\n"
VDUS = {f"VDU{number}" for number in range(1, 9)}


def unhook(packages: dict[str, Path]) -> None:
    """Take the two operations out of the VNFDs."""
    for package in packages.values():
        file = package / "Definitions" / "df_simple.yaml"
        text = file.read_text()
        for point in ("start", "end"):
            assert HOOK.format(point) in text
            text = text.replace(HOOK.format(point), "")
        file.write_text(text)
        write_metadata(package)


def rolling(vdu: str = "VDU1", file: str = "Files/kubernetes/deployment.yaml") -> dict[str, Any]:
    params = {
        "upgrade_type": "RollingUpdate",
        "lcm-kubernetes-def-files": [file],
        "vdu_params": [{"vdu_id": vdu}],
    }
    return {"vnfdId": NEW, "additionalParams": params}


def test_without_the_script_tacker_forgets_the_vdus_that_did_not_change(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    unhook(unpacked)
    steps = host(lab, cluster, unpacked, change=rolling())
    assert steps["change"]["error"] == ""
    assert len(recorded(steps["change"])) < len(kubectl.pods())


def test_with_it_no_vdu_and_no_file_of_the_new_package_drops_out_of_the_records(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    steps = host(lab, cluster, unpacked, change=rolling())
    assert steps["change"]["error"] == ""
    assert steps["change"]["instance"]["vnfdId"] == NEW
    assert recorded(steps["change"]) == sorted(kubectl.pods())
    by_vdu = images(steps["change"])
    assert by_vdu.keys() == VDUS
    assert by_vdu["VDU1"] != images(steps["instantiate"])["VDU1"]
    before = guide_request("v2", "instance_kubernetes.json")["additionalParams"]
    files = steps["change"]["instance"]["instantiatedVnfInfo"]["metadata"]
    kept = {path for path in before["lcm-kubernetes-def-files"] if (unpacked[NEW] / path).exists()}
    assert set(files["lcm-kubernetes-def-files"]) == kept


def test_a_request_that_cannot_be_carried_out_is_refused_before_anything_is_written(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    steps = host(lab, cluster, unpacked, change=rolling(vdu="VDU99"))
    assert "VDU99" in steps["change"]["error"]
    assert "vdu_params" in steps["change"]["error"]
    assert "Traceback" not in steps["change"]["error"]
    pods = sorted(kubectl.pods())
    assert pods == recorded(steps["instantiate"])
