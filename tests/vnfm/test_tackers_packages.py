# SPDX-License-Identifier: Apache-2.0
"""Tacker's own packages and requests for OpenStack: what works, and what is refused by its name.

On a real cloud with ``OS_CLOUD``, as tests/functional/stacks, which then has the images, flavors,
networks, subnets and ports that Tacker's own functional tests expect by their names.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("openstack", reason="the extra openstack is not installed")

import openstack.config

from container_update import Options
from container_update.emulator.heat import ResourceFault
from tests.functional.stacks.site import REAL
from tests.internals.stacks import connect
from tests.tacker.lab import Lab, find
from tests.vnfm.client import Client
from tests.vnfm.clouds import Cloud, clouded

Json = dict[str, Any]
SAMPLES = "tests/functional/sol_v2_common"
GENERATED_ID = "b1bb0ce7-ebca-4fa7-95ed-4840d7000000"
"""The VNFD id in the samples; Tacker's generator puts another one in its place."""
REQUESTS = """
import json
from tacker.tests.functional.sol_v2_common import paramgen as of
networks = {name: name for name in ("net0", "net1", "net_mgmt", "ft-net0", "ft-net1")}
families = [f"ft-ipv{version}-subnet{n}" for version in (4, 6) for n in (0, 1)]
subnets = {name: name for name in ("subnet0", "subnet1", *families)}
ports = {name: name for name in ("VDU2_CP1-1", "VDU2_CP1-2")}
keystone = "http://127.0.0.1/identity/v3"
print(json.dumps({
    "max": of.instantiate_vnf_max(networks, subnets, ports, keystone),
    "individual max": of.instantiate_vnf_max(networks, subnets, None, keystone, user_data=True),
    "min": of.instantiate_vnf_min(),
    "simple": of.change_vnfpkg_instantiate(networks, subnets, keystone),
    "volume": of.change_vnfpkg_instantiate(networks, subnets, keystone, flavor_id="volume"),
    "sample3": of.sample3_instantiate(networks, subnets, keystone),
    "sample6": of.sample6_instantiate(networks, subnets, keystone),
    "sample7": of.sample7_instantiate(networks, subnets, keystone),
    "out max": of.scaleout_vnf_max(),
    "in max": of.scalein_vnf_max(),
    "out min": of.scaleout_vnf_min(),
    "in min": of.scalein_vnf_min(),
    "out sample3": of.sample3_scale_out(),
    "out sample6": of.sample6_scale_out(),
    "change": of.change_vnfpkg("NEW"),
    "change with links": of.change_vnfpkg_with_ext_vl("NEW", networks),
    "change to sample4": of.sample4_change_vnfpkg("NEW", networks, subnets),
    "change to sample5": of.sample5_change_vnfpkg("NEW", networks, subnets),
    "change max": of.change_vnf_pkg_individual_vnfc_max("NEW", networks, subnets),
    "change min": of.change_vnf_pkg_individual_vnfc_min("NEW"),
    "modify": of.update_vnf_min_with_parameter("NEW"),
}))
"""
NO_GROUP = "VDU1: expected its server in a resource of type OS::Heat::AutoScalingGroup"
NO_TACKER = "ModuleNotFoundError: No module named "
KEPT = ("vnfdId", "instantiationState")


@dataclass(frozen=True)
class Course:
    """What is done with a package, by the names of Tacker's requests; what is refused, by a part of
    its message."""

    package: str
    instantiate: str
    scale: tuple[str, ...] = ()
    change: str = ""
    new: str = ""
    """The package to change to."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """A request to why it is refused with 422."""


COURSES = (
    Course(
        "basic_lcms_max", "max", ("out max", "in max"),
        refused={"max": "found UserData: user data scripts are not run"},
    ),
    Course(  # each member has a volume type of one name: a real cloud does not scale it
        "scale_ng", "max", () if REAL else ("out max", "in max"),
        refused={"max": "found UserData: user data scripts are not run"},
    ),
    Course("basic_lcms_min", "min", ("out min", "in min"), "modify", "update_vnf"),
    Course("update_vnf", "min", ("out min", "in min")),
    Course(
        "basic_lcms_max_individual_vnfc", "individual max", ("out max",), "change max",
        "change_vnfpkg_max_individual_vnfc", refused={"out max": NO_GROUP},
    ),
    Course("update_vnf_max_individual_vnfc", "individual max"),
    Course(
        "basic_lcms_min_individual_vnfc", "min", ("out min",), "change min",
        "change_vnfpkg_or_update_min_individual_vnfc", refused={"out min": NO_GROUP},
    ),
    Course(
        "test_instantiate_vnf_with_old_image_or_volume", "simple", (), "change with links",
        "test_change_vnf_pkg_with_new_image",
    ),
    Course(
        "test_instantiate_vnf_with_old_image_or_volume", "volume", (), "change",
        "test_change_vnf_pkg_with_new_volume",
    ),
    Course(
        "userdata_standard", "sample3", ("out sample3",), "change to sample5",
        "userdata_standard_change_vnfpkg_nw", refused={"out sample3": NO_GROUP},
    ),
    Course(
        "userdata_standard", "sample3", (), "change to sample4", "userdata_standard_change_vnfpkg",
    ),
    Course(
        "userdata_standard_az_retry", "sample6", ("out sample6",),
        refused={"out sample6": NO_GROUP},
    ),
    Course("userdata_standard_with_non_boot_volume", "sample7"),
)  # fmt: skip


@pytest.fixture
def lab() -> Lab:
    """Tacker's samples."""
    found = find()
    if not found.is_fetched:
        pytest.skip(f"no Tacker in {found.folder}: python tests/tacker/lab.py fetches it")
    return found


@pytest.fixture
def options() -> Options:
    return Options(timeout=300 if REAL else 30)


@pytest.fixture
def cloud(options: Options) -> Iterator[Cloud]:
    if REAL is None:
        with clouded() as running:
            yield running
        return
    auth = openstack.config.OpenStackConfig().get_one(REAL).config["auth"]
    with connect(REAL, options=options) as heat:
        yield Cloud(SimpleNamespace(auth=lambda: auth), None, heat)  # type: ignore[arg-type]


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


def requests(lab: Lab) -> Json:
    """Return Tacker's requests by their names here."""
    python = [str(lab.python), "-c", REQUESTS]
    output = subprocess.run(python, capture_output=True, text=True, check=True).stdout
    made: Json = json.loads(output.splitlines()[-1])
    return made


def without(request: Json, part: str) -> Json:
    """Return a request without those of its additionalParams whose names have a part."""
    params = request.get("additionalParams") or {}
    left = {name: value for name, value in params.items() if part not in name}
    return {**request, "additionalParams": left}


@pytest.mark.parametrize("course", COURSES, ids=lambda each: f"{each.package}-{each.new}")
def test_tackers_package_goes_through_its_life_by_tackers_requests(
    course: Course, lab: Lab, client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    """The coordination scripts are left out: they import Tacker itself."""
    sent, refused = requests(lab), course.refused
    old = client.onboard(package(lab, course.package, tmp_path))
    path = client.create(old)
    body = {**sent[course.instantiate], "vimConnectionInfo": cloud.vims()}
    if course.instantiate in refused:
        answer = client.call("POST", f"{path}/instantiate", body, 422)
        assert refused[course.instantiate] in answer["detail"]
        body = without(body, "user-data")
    client.do("POST", f"{path}/instantiate", body)
    for name in course.scale:
        if name in refused:
            answer = client.call("POST", f"{path}/scale", sent[name], 422)
            assert refused[name] in answer["detail"]
        else:
            client.do("POST", f"{path}/scale", sent[name])
    vnfcs = client.call("GET", path)["instantiatedVnfInfo"]["vnfcInfo"]
    client.do("POST", f"{path}/heal", {"vnfcInstanceId": [vnfcs[0]["id"]]})
    client.do("POST", f"{path}/heal", {"additionalParams": {"all": True}})
    if course.change:
        new = client.onboard(package(lab, course.new, tmp_path))
        asked = json.loads(json.dumps(sent[course.change]).replace('"NEW"', f'"{new}"'))
        if course.change == "modify":
            client.do("PATCH", path, asked)
        else:
            client.do("POST", f"{path}/change_vnfpkg", without(asked, "coordinate"))
        assert client.call("GET", path)["vnfdId"] == new
    assert set(cloud.stacks().values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    if course.new == "userdata_standard_change_vnfpkg":
        return  # its own script for the termination imports Tacker
    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    assert cloud.stacks() == {}


OLD = "test_instantiate_vnf_with_old_image_or_volume"
FAILURES = {
    "a driver that imports Tacker": (
        "server_notification", "min", "", "", f"{NO_TACKER}'tacker'",
    ),
    "a network that does not exist": ("error_network", "min", "", "", "'errornetwork'"),
    "a script that imports Tacker": (
        OLD, "simple", "test_change_vnf_pkg_with_new_image", "change with links",
        f") failed: ended with status 1: {NO_TACKER}",
    ),
    "a flavour that does not exist": (
        OLD, "simple", "test_change_vnf_pkg_with_update_failed", "change", "m1.error",
    ),
}  # fmt: skip
"""Package, request, the package to change to and the request for it; a part of the message."""


def absent(name: str, resource_type: str, named_by: str) -> ResourceFault:
    """Return the fault by which the embedded cloud does not have a network or a flavor."""
    return ResourceFault(
        f"Unable to find {named_by} with name or id {name!r}",
        type=resource_type,
        where=lambda properties: properties.get(named_by) == name,
    )


@pytest.mark.parametrize("case", FAILURES)
def test_what_fails_in_tackers_packages_is_named_and_rolled_back(
    case: str, lab: Lab, client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    old, instantiate, new, change, reason = FAILURES[case]
    if REAL is None:
        cloud.stack.faults.resources = [
            absent("errornetwork", "OS::Neutron::Port", "network"),
            absent("m1.error", "OS::Nova::Server", "flavor"),
        ]
    sent, path = requests(lab), client.create(client.onboard(package(lab, old, tmp_path)))
    body = {**sent[instantiate], "vimConnectionInfo": cloud.vims()}
    if new:
        client.do("POST", f"{path}/instantiate", body)
        before = client.call("GET", path)
        asked = {**sent[change], "vnfdId": client.onboard(package(lab, new, tmp_path))}
        failed = client.do("POST", f"{path}/change_vnfpkg", asked, "FAILED_TEMP")
    else:
        before = client.call("GET", path)
        failed = client.do("POST", f"{path}/instantiate", body, "FAILED_TEMP")
    assert reason in failed["error"]["detail"]
    occurrence = failed["_links"]["self"]["href"]
    if reason.startswith(NO_TACKER):  # the package maps that script to the rollback as well
        again = client.do("POST", f"{occurrence}/rollback", state="FAILED_TEMP")
        assert "instantiate_rollback_start" in again["error"]["detail"]
        client.call("POST", f"{occurrence}/fail")
    else:
        client.do("POST", f"{occurrence}/rollback", state="ROLLED_BACK")
    after = client.call("GET", path)
    assert [after[name] for name in KEPT] == [before[name] for name in KEPT]
    if new:
        client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    assert cloud.stacks() == {}


def test_each_of_tackers_packages_is_here(lab: Lab) -> None:
    there = {each.parent.name for each in (lab.samples / SAMPLES).glob("*/contents")}
    named = {name for each in COURSES for name in (each.package, each.new)}
    named |= {name for old, _, new, *_ in FAILURES.values() for name in (old, new)}
    assert named - {""} == there
