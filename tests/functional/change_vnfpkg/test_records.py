"""The specification's "attributes in the TackerDB to be updated", for each of the four strategies.

A row says what becomes of an attribute's values; besides, those that name a resource have to name
what is live after the change, and exactly that.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update.model.options import Options
from container_update.operations.change_package import run_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.install import install
from container_update.operations.strategy import ChangeJob
from container_update.operations.vnf_records import Records
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Arguments, Release
from tests.functional.conftest import REAL, until
from tests.functional.upgrade_types import BLUE_GREEN, ROLLING

# --- the table ------------------------------------------------------------------------------------

NEW, SAME, GONE = "all are other ones", "all stay", "there are none any more"

VNFD = "VnfInstance.vnfdId"
METADATA = "VnfInstance.metadata"
STACK = "VnfInstance.instantiatedVnfInfo.instance_id"
VNFC = "VnfInstance.instantiatedVnfInfo.vnfcResourceInfo"
VNFC_ID, VNFC_METADATA = f"{VNFC}.id", f"{VNFC}.metadata"
COMPUTE = f"{VNFC}.computeResource.resourceId"
NETWORK = "VnfInstance.instantiatedVnfInfo.vnfVirtualLinkResourceInfo.networkResource.resourceId"
STORAGE = "VnfInstance.instantiatedVnfInfo.virtualStorageResourceInfo.storageResource.resourceId"
NAME = "VnfResource.resourceName"

KUBERNETES_BLUE_GREEN = {
    VNFD: NEW, COMPUTE: NEW, NETWORK: NEW, STORAGE: NEW, NAME: NEW,
    METADATA: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip
KUBERNETES_ROLLING = {
    VNFD: NEW, VNFC_ID: NEW, COMPUTE: NEW, VNFC_METADATA: NEW,
    METADATA: SAME, NETWORK: SAME, STORAGE: SAME, NAME: SAME,
}  # fmt: skip
OPENSTACK_BLUE_GREEN = {
    VNFD: NEW, COMPUTE: NEW, NETWORK: NEW, STORAGE: NEW, STACK: NEW,
    METADATA: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip
OPENSTACK_ROLLING = {
    VNFD: NEW, COMPUTE: NEW, STORAGE: NEW,
    METADATA: SAME, NETWORK: SAME, STACK: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip

IMAGE, VOLUME = "group", "group with volume"
KUBERNETES = {
    "Blue-Green": (BLUE_GREEN, False, KUBERNETES_BLUE_GREEN),
    "Blue-Green, def-files in the request": (
        BLUE_GREEN, True, KUBERNETES_BLUE_GREEN | {METADATA: NEW},
    ),
    "rolling": (ROLLING, False, KUBERNETES_ROLLING),
    "rolling, def-files in the request": (
        ROLLING, True, KUBERNETES_ROLLING | {METADATA: NEW},
    ),
}  # fmt: skip
OPENSTACK = {
    "Blue-Green": (BLUE_GREEN, VOLUME, VOLUME, OPENSTACK_BLUE_GREEN),
    "Blue-Green, image to image": (
        BLUE_GREEN, IMAGE, IMAGE, OPENSTACK_BLUE_GREEN | {STORAGE: SAME},
    ),
    "rolling, image to image": (
        ROLLING, IMAGE, IMAGE, OPENSTACK_ROLLING | {COMPUTE: SAME, STORAGE: SAME},
    ),
    "rolling, image to volume": (ROLLING, IMAGE, VOLUME, OPENSTACK_ROLLING),
    "rolling, volume to image": (
        ROLLING, VOLUME, IMAGE, OPENSTACK_ROLLING | {STORAGE: GONE},
    ),
    "rolling, volume to volume": (ROLLING, VOLUME, VOLUME, OPENSTACK_ROLLING),
}  # fmt: skip

Values = dict[str, set[str]]


class RecordedVnf(ABC):
    """A VNF whose records are compared before and after a change."""

    @abstractmethod
    def live(self) -> Values:
        """Return each attribute that names resources, with the live resources' names."""

    @abstractmethod
    def change(self) -> Records:
        """Change the package."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The instance's metadata."""


_HANDLES = {
    COMPUTE: ("vnfcResourceInfo", "computeResource"),
    NETWORK: ("vnfVirtualLinkResourceInfo", "networkResource"),
    STORAGE: ("virtualStorageResourceInfo", "storageResource"),
}


def record(vnf: RecordedVnf) -> dict[str, Any]:
    """Return the VnfInstance as a VNFM has it."""
    live = vnf.live()
    info: dict[str, Any] = {}
    for attribute, (name, handle) in _HANDLES.items():
        info[name] = [
            {"id": f"id-of-{value}", handle: {"resourceId": value}} for value in live[attribute]
        ]
    for vnfc in info["vnfcResourceInfo"]:
        vnfc |= {"vduId": "VDU1", "metadata": {"name": vnfc["computeResource"]["resourceId"]}}
    if STACK in live:
        (info["instance_id"],) = live[STACK]
    return {
        "id": INSTANCE, "vnfdId": "vnfd-v1", "metadata": vnf.metadata,
        "instantiatedVnfInfo": info,
    }  # fmt: skip


def values(instance: dict[str, Any]) -> Values:
    """Return the values of each attribute of a record."""
    info = instance["instantiatedVnfInfo"]
    attribute_values = {VNFD: {instance["vnfdId"]}, METADATA: {json.dumps(instance["metadata"])}}
    for attribute, (name, handle) in _HANDLES.items():
        attribute_values[attribute] = {entry[handle]["resourceId"] for entry in info[name]}
    attribute_values[VNFC_ID] = {entry["id"] for entry in info["vnfcResourceInfo"]}
    attribute_values[VNFC_METADATA] = {
        json.dumps(entry["metadata"], sort_keys=True) for entry in info["vnfcResourceInfo"]
    }
    if "instance_id" in info:
        attribute_values[STACK] = {info["instance_id"]}
    return attribute_values


def became(before: set[str], after: set[str]) -> str:
    """Describe the difference in the table's terms."""
    if before == after:
        return SAME
    if not after:
        return GONE
    return f"some stay: {before & after}" if before & after else NEW


def check(recorded_vnf: RecordedVnf, table: dict[str, str]) -> None:
    """Change the package and compare the records with the table."""
    instance, names = record(recorded_vnf), recorded_vnf.live().get(NAME, set())
    records = recorded_vnf.change()
    before, changed = values(instance), records.applied(instance)
    after = values(changed)
    if names:
        before[NAME] = names
        after[NAME] = {records.resource_names.get(name, name) for name in names}
    assert {name: became(before[name], after[name]) for name in before} == table
    live = recorded_vnf.live()
    assert {name: after[name] for name in live} == live
    storages = {entry["id"] for entry in changed["instantiatedVnfInfo"][_HANDLES[STORAGE][0]]}
    for vnfc in changed["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        assert set(vnfc.get("storageResourceIds") or ()) <= storages


# --- Kubernetes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Renamed(Shape):
    """VDU1 alone; in Blue-Green its Service and its claim are others in each version."""

    renames: bool = True

    def files(self, release: Release) -> dict[str, str]:
        version = release.version if self.renames else "v0"
        deployment = yaml.safe_load(self.deployment("VDU1", release))
        claim = {"claimName": f"data-{version}"}
        deployment["spec"]["template"]["spec"]["volumes"] = [
            {"name": "data", "persistentVolumeClaim": claim}
        ]
        service = yaml.safe_load(self.service_text(release))
        service["metadata"]["name"] = f"web-{version}"
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim["claimName"]},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}},
            },
        }
        bodies = {"web": deployment, "service": service, "claim": volume}
        return {f"{name}.yaml": yaml.safe_dump(body) for name, body in bodies.items()}


@dataclass
class RecordedKubernetesVnf(RecordedVnf):
    """A VNF in a namespace of the cluster."""

    site: KubernetesContractSite
    names_def_files: bool

    def begin(self) -> None:
        """Instantiate the old package."""
        site = self.site
        site.old = site.package(replace(V1, vdus=("VDU1",)))
        install(
            site.old, site.admin, namespace=site.namespace, instance_id=INSTANCE,
            options=site.options,
        )  # fmt: skip
        until(lambda: len(site.pods("VDU1")) == site.shape.replicas)

    def live(self) -> Values:
        def names(group: str, kind: str) -> set[str]:
            return {body["metadata"]["name"] for body in self.site.objects(group, kind)}

        return {
            COMPUTE: self.site.instances("VDU1"),
            NETWORK: names("", "Service"),
            STORAGE: self.claims(),
            NAME: names("apps", "Deployment"),
        }

    def claims(self) -> set[str]:
        """Return the claims that live pods use; others may remain because they hold data."""
        volumes = [volume for pod in self.site.pods("VDU1") for volume in pod["spec"]["volumes"]]
        claims = [volume.get("persistentVolumeClaim") or {} for volume in volumes]
        return {claim["claimName"] for claim in claims if claim}

    @property
    def metadata(self) -> dict[str, Any]:
        return {"lcm-kubernetes-def-files": ["Files/old.yaml"]}

    def change(self) -> Records:
        files = [f"Files/{name}.yaml" for name in ("web", "service", "claim")]
        params = {"lcm-kubernetes-def-files": files} if self.names_def_files else {}
        return self.site.change(replace(V2, vdus=("VDU1",)), Arguments(params)).records


@pytest.mark.parametrize("case", KUBERNETES)
def test_the_attributes_of_a_cnf_follow_its_pods_and_objects(
    case: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    upgrade_type, names_def_files, table = KUBERNETES[case]
    with kubernetes_site(upgrade_type, request, tmp_path) as site:
        assert isinstance(site, KubernetesContractSite)
        blue_green = upgrade_type == BLUE_GREEN
        site.shape = Renamed(versioned_names=blue_green, renames=blue_green)
        recorded_vnf = RecordedKubernetesVnf(site, names_def_files)
        recorded_vnf.begin()
        check(recorded_vnf, table)


# --- OpenStack ------------------------------------------------------------------------------------


@dataclass
class RecordedOpenStackVnf(RecordedVnf):
    """A VNF in a stack of the embedded cloud."""

    vnf: Any
    upgrade_type: str
    shapes: tuple[str, str]

    def live(self) -> Values:
        ids = self.vnf.ids
        return {
            COMPUTE: ids("OS::Nova::Server"),
            NETWORK: ids("OS::Neutron::Port"),
            STORAGE: ids("OS::Cinder::Volume"),
            STACK: {self.vnf.live_stack()["id"]},
        }

    @property
    def metadata(self) -> dict[str, Any]:
        return {"kept": "yes"}

    def change(self) -> Records:
        from container_update.operations.strategies.openstack import OpenStackTarget  # noqa: PLC0415

        vnf = self.vnf
        params = {"upgrade_type": self.upgrade_type, "vdu_params": [{"vdu_id": "VDU1"}]}
        job = ChangeJob(
            ChangeRequest.of({"vnfdId": "vnfd-new", "additionalParams": params}),
            vnf.old,
            vnf.package(self.shapes[1], "image-2"),
            vnf.instance_id,
            vnf.options,
        )
        target = OpenStackTarget(vnf.heat, vnf.live_stack()["stack_name"])
        return run_change(job, target).records


@contextmanager
def recorded_openstack_vnf(
    upgrade_type: str, shapes: tuple[str, str], folder: Path
) -> Iterator[RecordedVnf]:
    """Yield a VNF of the old package."""
    pytest.importorskip("openstack", reason="the extra openstack is not installed")
    from container_update.emulator.heat import EmbeddedOpenStack  # noqa: PLC0415
    from container_update.stacks.client import connect  # noqa: PLC0415
    from tests.functional.stacks.vnf import Site, Vnf  # noqa: PLC0415

    with EmbeddedOpenStack() as cloud, connect(auth=cloud.auth()) as heat:
        cloud.faults.seconds = 0.001
        vnf = Vnf(heat, folder, Site(), Options(timeout=30))
        vnf.instantiate(shapes[0])
        yield RecordedOpenStackVnf(vnf, upgrade_type, shapes)


@pytest.mark.skipif(bool(REAL), reason="needs no cluster")
@pytest.mark.parametrize("case", OPENSTACK)
def test_the_attributes_of_a_vnf_in_a_stack_follow_its_resources(case: str, tmp_path: Path) -> None:
    upgrade_type, old, new, table = OPENSTACK[case]
    with recorded_openstack_vnf(upgrade_type, (old, new), tmp_path) as recorded_vnf:
        check(recorded_vnf, table)
