"""Tacker's own packages and requests for OpenStack, with the standard user data."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update.model.options import Options
from tests.tacker.lab import Lab, find
from tests.vnfm.client import Client
from tests.vnfm.clouds import Cloud

Json = dict[str, Any]
SAMPLES = "tests/functional/sol_v2_common"
GENERATED_ID = "b1bb0ce7-ebca-4fa7-95ed-4840d7000000"
"""The VNFD id in the samples; Tacker's generator puts another one in its place."""
REQUESTS = """
import json
from tacker.tests.functional.sol_v2_common import paramgen
networks = {"net0": "n0", "net1": "n1", "net_mgmt": "nm"}
subnets = {"subnet0": "s0", "subnet1": "s1"}
instantiate = paramgen.sample3_instantiate(networks, subnets, "http://127.0.0.1/identity/v3")
print(json.dumps([instantiate, paramgen.sample4_change_vnfpkg("NEW", networks, subnets)]))
"""


@pytest.fixture
def lab() -> Lab:
    """Tacker's samples."""
    found = find()
    if not found.is_fetched:
        pytest.skip(f"no Tacker in {found.folder}: python tests/tacker/lab.py fetches it")
    return found


@pytest.fixture
def options() -> Options:
    return Options(timeout=30)


@pytest.fixture
def client(http: TestClient) -> Client:
    return Client(http, "v2")


def package(lab: Lab, name: str, folder: Path) -> Path:
    """Build a sample's package as Tacker's generator does."""
    samples, target = lab.samples / SAMPLES, folder / name
    shutil.copytree(samples / name / "contents", target)
    shutil.copytree(samples / "common/Definitions", target / "Definitions", dirs_exist_ok=True)
    vnfd_id = str(uuid.uuid4())
    for file in (target / "Definitions").glob("*.yaml"):
        file.write_text(file.read_text().replace(GENERATED_ID, vnfd_id))
    return Path(shutil.make_archive(str(target), "zip", target))


def requests(lab: Lab) -> tuple[Json, Json]:
    """Return Tacker's requests to instantiate the old package and to change to the new one."""
    python = [str(lab.python), "-c", REQUESTS]
    output = subprocess.run(python, capture_output=True, text=True, check=True).stdout
    instantiate, change = json.loads(output.splitlines()[-1])
    return instantiate, change


def test_tackers_package_is_instantiated_and_changed_by_tackers_requests(
    lab: Lab, client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    old, new = (
        client.onboard(package(lab, name, tmp_path))
        for name in ("userdata_standard", "userdata_standard_change_vnfpkg")
    )
    instantiate, change = requests(lab)
    change["vnfdId"] = new
    path = client.create(old)
    instantiate["vimConnectionInfo"] = cloud.vims()
    refused = client.call("POST", f"{path}/instantiate", instantiate, 422)
    assert "extManagedVirtualLinks" in refused["detail"]
    del instantiate["extManagedVirtualLinks"]
    client.do("POST", f"{path}/instantiate", instantiate)
    vdus = {e["vduId"] for e in client.call("GET", path)["instantiatedVnfInfo"]["vnfcInfo"]}
    assert vdus == {"VDU1", "VDU2"}

    for links in ("extVirtualLinks", "extManagedVirtualLinks"):
        assert links in client.call("POST", f"{path}/change_vnfpkg", change, 422)["detail"]
        del change[links]
    for name in list(change["additionalParams"]):
        if "coordinate" in name:  # these scripts import Tacker itself
            del change["additionalParams"][name]
    client.do("POST", f"{path}/change_vnfpkg", change)
    assert client.call("GET", path)["vnfdId"] == new
    assert set(cloud.stacks().values()) == {"UPDATE_COMPLETE"}
