# SPDX-License-Identifier: Apache-2.0
"""The specification's sample requests on its own manifests and templates, over REST.

Source: "Support ChangeCurrentVNFPackage for VNF software modification": the sample files for
Kubernetes and HEAT, the sample of a request body, and the lists of attributes to be updated.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.change_vnfpkg import specification
from tests.functional.change_vnfpkg.kubernetes import VDU, VNFD
from tests.functional.stacks import templates
from tests.internals.core import build
from tests.tacker.conftest import Kubectl
from tests.vnfm.client import Client
from tests.vnfm.clouds import Cloud

Json = dict[str, Any]
BLUE_GREEN, ROLLING = "Blue-Green", "rolling update"
UPGRADE_TYPES = pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])

OLD_VNFD, NEW_VNFD = (
    "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177",
    "093c38b5-a731-4593-a578-d12e42596b3e",  # the sample's
)


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=30, undo_timeout=30, drain_seconds=0)


@pytest.fixture
def client(http: TestClient) -> Client:
    """A client of v2, which alone has a change of the package."""
    return Client(http, "v2")


def zipped(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write a package and return its zip."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    build.write_metadata(folder)
    return Path(shutil.make_archive(str(folder), "zip", folder))


# --- Kubernetes ---------------------------------------------------------------------------------


def cnf(folder: Path, version: str, vnfd_id: str) -> Path:
    """The package of a version for Kubernetes."""
    vdu = VDU.format(vdu="VDU1", name=specification.NAME)
    bodies = specification.files(version)
    return zipped(
        folder / version,
        {
            "Definitions/sample.vnfd.yaml": VNFD.format(vnfd_id=vnfd_id, vdus=vdu),
            **{f"Files/{path}": yaml.safe_dump(body) for path, body in bodies.items()},
            **specification.SCRIPTS,
        },
    )


@UPGRADE_TYPES
def test_the_sample_request_changes_a_cnf_as_the_specification_says(
    upgrade_type: str, client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    old, new = (
        client.onboard(cnf(tmp_path, version, vnfd_id))
        for version, vnfd_id in (("original", OLD_VNFD), ("new", NEW_VNFD))
    )
    path = client.create(old)
    files = [f"Files/{name}" for name in specification.files("original")]
    request = {
        "flavourId": "default",
        "additionalParams": {"lcm-kubernetes-def-files": files},
        "vimConnectionInfo": client.vims(cluster),
    }
    client.do("POST", f"{path}/instantiate", request)
    before = client.call("GET", path)["instantiatedVnfInfo"]
    uids = {name: uid(kubectl, name) for name in ("Service app-svc-name", f"ConfigMap {CONFIG}")}
    assert kubectl.names("Deployment", "apps") == {specification.NAME}

    change = specification.request(upgrade_type, new)
    client.do("POST", f"{path}/change_vnfpkg", change)

    record = client.call("GET", path)
    after = record["instantiatedVnfInfo"]
    assert record["vnfdId"] == new
    assert {name: uid(kubectl, name) for name in uids} == uids, "what was not listed stays"
    assert resources(after).keys() == kubectl.pods().keys()
    assert not resources(after).keys() & resources(before).keys()
    ids = [set(resources(info).values()) for info in (before, after)]
    assert (ids[0] == ids[1]) is (upgrade_type == BLUE_GREEN)
    assert sorted(after["metadata"]["lcm-kubernetes-def-files"]) == sorted(files)
    assert kubectl.names("Deployment", "apps") == {specification.NAME}
    assert after["metadata"]["vdu_reses"]["VDU1"]["metadata"]["name"] == specification.NAME
    selector = kubectl.get("Service", specification.SERVICE)["spec"]["selector"]
    assert selector["version"] == "new-version"

    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    for kind, group in (("Deployment", "apps"), ("Service", ""), ("ConfigMap", ""), ("Pod", "")):
        assert kubectl.names(kind, group) <= {"kubernetes", "kube-root-ca.crt"}, kind


CONFIG = "nginx-app-original"


def uid(kubectl: Kubectl, name: str) -> str:
    """The UID of an object, by its kind and name."""
    return str(kubectl.get(*name.split())["metadata"]["uid"])


def resources(info: Json) -> dict[str, str]:
    """The resource of each VNFC, and the VNFC's id."""
    return {each["computeResource"]["resourceId"]: each["id"] for each in info["vnfcResourceInfo"]}


# --- OpenStack ----------------------------------------------------------------------------------

PARAMETERS = {name: {"get_param": name} for name in ("image_id", "flavor_name", "ext_network_id")}
STRINGS: Json = {name: {"type": "string"} for name in PARAMETERS}
TOP = {
    "heat_template_version": "2013-05-23",
    "description": "Sample template for Upgrade.",
    "parameters": {**STRINGS, "num_of_instances": {"type": "number"}},
    "resources": {
        "group1": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1,
                "max_size": 4,
                "desired_capacity": {"get_param": "num_of_instances"},
                "resource": {"type": "nested_server.yaml", "properties": PARAMETERS},
            },
        }
    },
}
NESTED = {
    "heat_template_version": "2013-05-23",
    "description": "Sample template for scaling.",
    "parameters": STRINGS,
    "resources": {
        "cp": {
            "type": "OS::Neutron::Port",
            "properties": {"network": {"get_param": "ext_network_id"}},
        },
        "group1": {
            "type": "OS::Nova::Server",
            "properties": {
                "name": "sample_server",
                "image": {"get_param": "image_id"},
                "flavor": {"get_param": "flavor_name"},
                "networks": [{"port": {"get_resource": "cp"}}],
            },
        },
    },
}


def vnf(folder: Path, image: str, vnfd_id: str) -> Path:
    """The package of an image for OpenStack."""
    flavour = templates.vnfd(image, "m1.small").replace("name: VDU1,", "name: sample_server,")
    files = {
        "BaseHOT/simple/top.yaml": yaml.safe_dump(TOP),
        "BaseHOT/simple/nested/nested_server.yaml": yaml.safe_dump(NESTED),
    }
    texts = templates.package(vnfd_id, flavour, files)
    return zipped(folder / image, {**texts, **specification.SCRIPTS})


@UPGRADE_TYPES
def test_the_sample_request_changes_a_stack_as_the_specification_says(
    upgrade_type: str, client: Client, cloud: Cloud, tmp_path: Path
) -> None:
    old, new = (
        client.onboard(vnf(tmp_path, image, vnfd_id))
        for image, vnfd_id in (("image-old", OLD_VNFD), ("image-new", NEW_VNFD))
    )
    path = client.create(old)
    params = {"num_of_instances": 2, "ext_network_id": "net0"}
    request = {"flavourId": "simple", "additionalParams": params}
    client.do("POST", f"{path}/instantiate", {**request, "vimConnectionInfo": cloud.vims()})
    before = client.call("GET", path)["instantiatedVnfInfo"]
    assert len(resources(before)) == 2

    client.do("POST", f"{path}/change_vnfpkg", specification.request(upgrade_type, new))

    record = client.call("GET", path)
    after, in_place = record["instantiatedVnfInfo"], upgrade_type == ROLLING
    assert record["vnfdId"] == new
    running = cloud.running(after["instance_id"])
    assert {image for image, _ in running.values()} == {"image-new"}
    assert resources(after).keys() == running.keys()
    assert set(resources(after).values()) == set(resources(before).values()), "VNFCs keep their ids"
    assert (resources(after) == resources(before)) is in_place, "from image to image it is rebuilt"
    assert (after["instance_id"] == before["instance_id"]) is in_place
    ports = [
        {each["networkResource"]["resourceId"] for each in info["vnfVirtualLinkResourceInfo"]}
        for info in (before, after)
    ]
    assert ports[0]
    assert (ports[0] == ports[1]) is in_place

    client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    assert cloud.stacks() == {}
