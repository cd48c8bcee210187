"""Proof 3: ``VnfLcmDriverV2`` runs the scripts of the sample CSARs, and rolls back with them."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.package.build import bundle, write_metadata
from tests.tacker import programs
from tests.tacker.conftest import Build, Kubectl, guide_request
from tests.tacker.lab import Lab
from tests.tacker.operator import kubernetes_vim

OLD, NEW = "97018ca2-bf29-4715-9e2b-6e432dd1f414", "58bcc1c6-1400-46ec-b7fb-e508bf7e00e9"
IMPATIENT = "[container_update]\ntimeout = 20\ngrace_period = 1\ndrain_seconds = 1\n"


@pytest.fixture
def unpacked(build: Build, tmp_path: Path) -> dict[str, Path]:
    """Return the folder of each package as Tacker unpacks it, by VNFD id."""
    folders = {OLD: tmp_path / "before", NEW: tmp_path / "after"}
    packages = build("v2")
    for folder in folders.values():
        with zipfile.ZipFile(packages[folder.name]) as package:
            package.extractall(folder)
    return folders


def host(
    lab: Lab,
    cluster: EmbeddedCluster,
    folders: dict[str, Path],
    *,
    host_fails: bool = False,
    then: str = "",
    repaired: dict[str, Path] | None = None,
    metadata: dict[str, Any] | None = None,
    change: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Instantiate, modify or change, and optionally retry or roll back; return Tacker's state after
    each."""
    instantiate = guide_request("v2", "instance_kubernetes.json")
    instantiate["vimConnectionInfo"] = kubernetes_vim(cluster)
    modify = guide_request("v2", "sample_param_file.json")
    inputs = {
        "packages": {vnfd_id: str(folder) for vnfd_id, folder in folders.items()},
        "vnfdId": OLD,
        "instantiate": instantiate,
        "modify": modify if metadata is None else {**modify, "metadata": metadata},
        "change": change,
        "host_fails": host_fails,
        "then": then,
        "repaired": {vnfd_id: str(folder) for vnfd_id, folder in (repaired or {}).items()},
    }
    options = folders[OLD].parent / "options.conf"
    options.write_text(IMPATIENT)
    completed = programs.run_script(
        lab,
        "modify_v2.py",
        [],
        folders[OLD].parent,
        {"CONTAINER_UPDATE_CONFIG": str(options)},
        json.dumps(inputs).encode(),
    )
    assert completed.returncode == 0, completed.stderr.decode()[-3000:]
    steps = dict(json.loads(completed.stdout.splitlines()[-1]))
    assert steps["instantiate"]["error"] == ""
    return steps


def recorded(step: dict[str, Any]) -> list[str]:
    """Return the pods in Tacker's records."""
    info = step["instance"]["instantiatedVnfInfo"]
    assert [each["id"] for each in info["vnfcResourceInfo"]] == [
        each["vnfcResourceInfoId"] for each in info["vnfcInfo"]
    ]
    return sorted(each["id"] for each in info["vnfcResourceInfo"])


def images(step: dict[str, Any]) -> dict[str, str]:
    """Return the image of each VDU's recorded workload."""
    images_by_vdu = {}
    for vdu, workload in step["instance"]["instantiatedVnfInfo"]["metadata"]["vdu_reses"].items():
        spec = workload["spec"].get("template", workload)["spec"]
        images_by_vdu[vdu] = spec["containers"][0]["image"]
    return images_by_vdu


def live_images(kubectl: Kubectl) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in kubectl.pods().values())


def test_tacker_runs_the_scripts_and_records_the_updated_instance(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    steps = host(lab, cluster, unpacked)
    assert steps["modify"]["error"] == ""
    assert steps["modify"]["instance"]["vnfdId"] == NEW
    assert recorded(steps["modify"]) == sorted(kubectl.pods())
    assert sorted(images(steps["modify"]).values()) == live_images(kubectl)
    assert set(images(steps["instantiate"]).values()) == {"nginx"}
    assert images(steps["modify"])["VDU3"] == "tomcat"
    files = steps["modify"]["instance"]["instantiatedVnfInfo"]["metadata"]
    assert "Files/kubernetes/configmap_2.yaml" in files["lcm-kubernetes-def-files"]
    assert "Files/kubernetes/configmap_1.yaml" not in files["lcm-kubernetes-def-files"]


def break_image(package: Path) -> None:
    """Give the package's Deployment an image that no registry has."""
    file = package / "Files" / "kubernetes" / "deployment.yaml"
    file.write_text(file.read_text().replace("image: cirros", "image: missing"))
    assert "missing" in file.read_text()
    write_metadata(package)


def test_after_a_failed_update_a_rollback_has_nothing_to_do(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    break_image(unpacked[NEW])
    steps = host(lab, cluster, unpacked, then="rollback")
    assert "ImagePullBackOff" in steps["modify"]["error"]
    assert "Traceback" not in steps["modify"]["error"]
    assert steps["modify"]["kept"]["container_update"]["state"] == "undone"
    assert steps["rollback"]["error"] == ""
    assert steps["rollback"]["kept"]["container_update"] == {"state": "rolled back"}
    assert set(live_images(kubectl)) == {"nginx"}
    assert kubectl.data("ConfigMap", "cm-data") == {"cmKey1.txt": "configmap data\nfoo\nbar"}


def test_a_rollback_restores_what_was_updated_before_the_host_failed(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    steps = host(lab, cluster, unpacked, host_fails=True, then="rollback")
    assert "the host failed" in steps["modify"]["error"]
    assert steps["modify"]["kept"]["container_update"]["state"] == "updated"
    assert steps["rollback"]["error"] == ""
    assert set(live_images(kubectl)) == {"nginx"}
    assert kubectl.data("ConfigMap", "cm-data") == {"cmKey1.txt": "configmap data\nfoo\nbar"}
    for pod in kubectl.pods().values():
        assert pod["status"]["phase"] == "Running"


def test_a_retry_with_the_package_repaired_completes(
    lab: Lab,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    unpacked: dict[str, Path],
    tmp_path: Path,
) -> None:
    repaired = Path(shutil.copytree(unpacked[NEW], tmp_path / "repaired"))
    break_image(unpacked[NEW])
    steps = host(lab, cluster, unpacked, then="process", repaired={NEW: repaired})
    assert "ImagePullBackOff" in steps["modify"]["error"]
    assert steps["process"]["error"] == ""
    assert recorded(steps["process"]) == sorted(kubectl.pods())
    assert sorted(images(steps["process"]).values()) == live_images(kubectl)
    assert "cirros" in live_images(kubectl)


def test_a_bundle_works_like_the_script_with_the_installed_package(
    lab: Lab, cluster: EmbeddedCluster, kubectl: Kubectl, unpacked: dict[str, Path]
) -> None:
    bundle(unpacked[OLD] / "Scripts" / "container_update_mgmt_v2.py")
    steps = host(lab, cluster, unpacked)
    assert steps["modify"]["error"] == ""
    assert recorded(steps["modify"]) == sorted(kubectl.pods())
