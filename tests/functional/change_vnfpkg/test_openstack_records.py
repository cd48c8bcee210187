"""The attributes that the specification lists for OpenStack, in the VNFM's record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openstack", reason="the extra openstack is not installed")

from container_update.change_vnfpkg.change import change_vnfpkg
from container_update.change_vnfpkg.openstack import OpenStackSite
from container_update.change_vnfpkg.request import ChangeRequest
from container_update.change_vnfpkg.strategy import Order
from container_update.config import Options
from container_update.emulator.openstack import EmbeddedOpenStack
from container_update.heat import connect
from tests.functional.stacks.vnf import NEW_VNFD, Site, Vnf

Ids = dict[str, list[str]]
HANDLES = {
    "compute": ("vnfcResourceInfo", "computeResource", "OS::Nova::Server"),
    "network": ("vnfVirtualLinkResourceInfo", "networkResource", "OS::Neutron::Port"),
    "storage": ("virtualStorageResourceInfo", "storageResource", "OS::Cinder::Volume"),
}


@pytest.fixture
def vnf(tmp_path: Path) -> Iterator[Vnf]:
    with (
        EmbeddedOpenStack() as cloud,
        connect(auth=cloud.auth()) as heat,
    ):
        cloud.troubles.seconds = 0.001
        yield Vnf(heat, tmp_path, Site(), Options(timeout=30))


def record(vnf: Vnf) -> dict[str, Any]:
    """The VnfInstance as a VNFM has it."""
    info: dict[str, Any] = {"instance_id": vnf.page()["id"]}
    for name, handle, kind in HANDLES.values():
        info[name] = [
            {"id": f"id-of-{id_}", "vduId": "VDU1", handle: {"resourceId": id_}}
            for id_ in sorted(vnf.ids(kind))
        ]
    return {"id": vnf.instance_id, "vnfdId": "vnfd-old", "instantiatedVnfInfo": info}


def resource_ids(instance: dict[str, Any], what: str) -> set[str]:
    name, handle, _ = HANDLES[what]
    entries = instance["instantiatedVnfInfo"][name]
    return {entry[handle]["resourceId"] for entry in entries}


# Upgrade type, old shape, new shape, and which of the resources' ids are other ones then.
LISTS = [
    ("Blue-Green", "group with volume", "group with volume", {"compute", "network", "storage"}),
    ("Blue-Green", "server", "server", {"compute", "network"}),
    ("RollingUpdate", "group", "group", set()),
    ("RollingUpdate", "group", "group with volume", {"compute"}),
    ("RollingUpdate", "group with volume", "group", {"compute"}),
    ("RollingUpdate", "group with volume", "group with volume", {"compute", "storage"}),
]


@pytest.mark.parametrize(("upgrade_type", "old", "new", "changed"), LISTS)
def test_the_attributes_of_the_specifications_lists_follow_the_resources(
    vnf: Vnf, upgrade_type: str, old: str, new: str, changed: set[str]
) -> None:
    vnf.instantiate(old)
    before = record(vnf)
    body = {
        "vnfdId": NEW_VNFD,
        "additionalParams": {"upgrade_type": upgrade_type, "vdu_params": [{"vdu_id": "VDU1"}]},
    }
    order = Order(
        ChangeRequest.of(body),
        vnf.old,
        vnf.package(new, "image-2"),
        vnf.instance_id,
        vnf.options,
        instance=before,
    )
    site = OpenStackSite(vnf.heat, vnf.page()["stack_name"])
    after = change_vnfpkg(order, site).records.applied(before)
    assert after["vnfdId"] == NEW_VNFD
    assert after["instantiatedVnfInfo"]["instance_id"] == vnf.page()["id"]
    same_stack = (
        after["instantiatedVnfInfo"]["instance_id"]
        == (before["instantiatedVnfInfo"]["instance_id"])
    )
    assert same_stack is (upgrade_type == "RollingUpdate")
    for what, (name, _, kind) in HANDLES.items():
        kept_entries = what == "storage" and not vnf.ids(kind)  # the volume itself is gone
        if not kept_entries and len(before["instantiatedVnfInfo"][name]) == len(vnf.ids(kind)):
            assert resource_ids(after, what) == vnf.ids(kind), what
        ids = [{entry["id"] for entry in held["instantiatedVnfInfo"][name]}
               for held in (before, after)]  # fmt: skip
        assert ids[0] == ids[1], f"{name}: entries keep their own ids"
        assert (resource_ids(after, what) != resource_ids(before, what)) is (what in changed), what
