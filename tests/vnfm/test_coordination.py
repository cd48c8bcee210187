# SPDX-License-Identifier: Apache-2.0
"""What coordination scripts find in the service: the real operation and the instance."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import build
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.clouds import BLUE_GREEN, ROLLING, Cloud, Sample, instantiated
from tests.vnfm.conftest import SAMPLES

Json = dict[str, Any]
TELLS = """
import json, pickle, sys
vnfc = pickle.load(sys.stdin.buffer)
inst, request = vnfc["inst"], vnfc["LcmCoordRequest"]
(vim,) = inst["vimConnectionInfo"].values()
print(json.dumps({
    "operation": request["vnfLcmOpOccId"],
    "links": request["_links"],
    "instance": [inst["id"], inst["vnfdId"], inst["instantiationState"], vim["vimType"]],
    "vnfc": vnfc["vnfc_info_id"],
    "has_address": bool(vnfc["ssh_ip"]),
}))
"""


@pytest.fixture
def options() -> Options:
    return Options(timeout=30, drain_seconds=0, grace_period=1)


@pytest.fixture
def client(http: TestClient) -> Client:
    return Client(http, "v2")


def check(client: Client, before: Json, operation: str) -> None:
    """Check what every run of the script found."""
    occurrence = client.settled(operation)
    assert occurrence["operationState"] == "COMPLETED", occurrence.get("error")
    steps = client.call("GET", f"{operation}/progress")["steps"]
    runs = [json.loads(step["message"]) for step in steps if step["action"] == "run"]
    assert runs
    vnfc_ids = {entry["id"] for entry in before["instantiatedVnfInfo"]["vnfcInfo"]}
    (vim_type,) = (vim["vimType"] for vim in before["vimConnectionInfo"].values())
    for told in runs:
        assert told["operation"] == occurrence["id"]
        own = {"vnfLcmOpOcc": occurrence["_links"]["self"], "vnfInstance": before["_links"]["self"]}
        assert told["links"] == own
        assert told["instance"] == [before["id"], before["vnfdId"], "INSTANTIATED", vim_type]
        assert told["vnfc"] in vnfc_ids
        assert told["has_address"]


def test_a_script_finds_operation_and_instance_on_openstack(
    client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    sample = Sample(ROLLING, cloud, tmp_path)
    sample.zipped("after")
    with_script(tmp_path / ROLLING / "after", "check_vnfc.py")
    vnf = instantiated(client, sample, cloud.vims())
    check(client, vnf.shown(), vnf.begin_change())


def test_a_script_finds_operation_and_instance_on_kubernetes(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    name = "04-blue-green"
    shutil.copytree(SAMPLES / name, tmp_path / name)
    with_script(tmp_path / name / "after", "update_service.py")
    old, _ = (
        client.onboard(
            Path(shutil.make_archive(str(tmp_path / side), "zip", tmp_path / name / side))
        )
        for side in ("before", "after")
    )
    path = client.create(old)
    request = json.loads((tmp_path / name / "request.json").read_text())
    params = {
        key: value for key, value in request["additionalParams"].items() if "-class" not in key
    }
    instantiation = {**vnfs.instantiation(client.vims(cluster)), "flavourId": "default"}
    del instantiation["additionalParams"]["lcm-kubernetes-def-files"]
    client.do("POST", f"{path}/instantiate", instantiation)
    before = client.call("GET", path)
    body = {**request, "additionalParams": params}
    check(client, before, client.begin("POST", f"{path}/change_vnfpkg", body))


def scripted(folder: Path, api: str, version: str, scripts: Mapping[str, str]) -> tuple[Path, str]:
    """Return a package of the small VNF with scripts, and its VNFD's id."""
    texts = (vnfs.CONFIG.format(version=version), vnfs.DEPLOYMENT.format(version=version))
    files = {**dict(zip(vnfs.DEF_FILES, texts, strict=True)), **scripts}
    return vnfs.package(folder, version, vnfs.ours(api), files)


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_each_script_is_run_from_the_package_of_its_vnf(
    http: TestClient, api: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """v1 and v2 modify, which our driver does in a process of its own; v2 changes the package."""
    client, told = Client(http, api), tmp_path / "told"
    scripts = {
        which: {f"Scripts/{which}.py": f"open({str(told)!r}, 'a').write('{which} ')"}
        for which in ("old", "new")
    }
    old, _ = scripted(tmp_path, api, "1.0", scripts["old"])
    new, vnfd_id = scripted(tmp_path, api, "2.0", scripts["new"])
    params = {
        "upgrade_type": "Blue-Green",
        "lcm-operation-coordinate-old-vnf": "Scripts/old.py",
        "lcm-operation-coordinate-new-vnf": "Scripts/new.py",
    }
    before = client.onboard(old)
    client.onboard(new)
    requests = [("PATCH", "", {"vnfdId": vnfd_id, "metadata": params})]
    if api == "v2":
        change = {"vnfdId": vnfd_id, "additionalParams": params}
        requests.append(("POST", "/change_vnfpkg", change))
    for method, resource, body in requests:
        path = client.create(before)
        client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
        client.do(method, f"{path}{resource}", body)
        assert told.read_text() == "new old "
        told.unlink()
        client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})


def test_each_script_is_run_from_the_package_of_its_vnf_on_openstack(
    client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    sample, told = Sample(BLUE_GREEN, cloud, tmp_path), tmp_path / "told"
    params = sample.change()["additionalParams"]
    for side, which in (("before", "old"), ("after", "new")):
        sample.zipped(side)
        package = tmp_path / BLUE_GREEN / side
        shutil.rmtree(package / "Scripts", ignore_errors=True)
        script = package / "Scripts" / f"{which}.py"
        script.parent.mkdir()
        script.write_text(f"open({str(told)!r}, 'a').write('{which} ')")
        shutil.rmtree(package / "TOSCA-Metadata")
        build.write_metadata(package)
    vnf = instantiated(client, sample, cloud.vims())
    kept = {name: value for name, value in params.items() if "coordinate" not in name}
    scripts = {f"lcm-operation-coordinate-{w}-vnf": f"Scripts/{w}.py" for w in ("new", "old")}
    body = {**sample.change(), "additionalParams": {**kept, **scripts}}
    client.do("POST", f"{vnf.path}/change_vnfpkg", body)
    assert told.read_text() == "new old "


def with_script(package: Path, name: str) -> None:
    """Put the script in the place of a package's own one."""
    (package / "Scripts" / name).write_text(TELLS)
    shutil.rmtree(package / "TOSCA-Metadata")
    build.write_metadata(package)
