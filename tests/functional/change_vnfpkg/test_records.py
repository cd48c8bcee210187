# SPDX-License-Identifier: Apache-2.0
"""The specification's "attributes in the TackerDB to be updated", for both strategies on OpenStack.

A row says what becomes of an attribute's values; besides, those that name a resource have to name
what is live after the change, and exactly that. The record before is what a VNFM writes of the live
stack. What becomes of a CNF's attributes, ``tests/vnfm/test_records.py`` reads over REST.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from container_update import Options
from tests import attributes
from tests.attributes import (
    COMPUTE,
    GONE,
    METADATA,
    NETWORK,
    NEW,
    SAME,
    STACK,
    STORAGE,
    VNFC_ID,
    VNFC_METADATA,
    VNFD,
    Values,
    became,
)  # fmt: skip
from tests.functional.changed import in_stack
from tests.functional.upgrade_types import BLUE_GREEN, ROLLING
from tests.internals.core import Records, StackChange

OPENSTACK_BLUE_GREEN = {
    VNFD: NEW, COMPUTE: NEW, NETWORK: NEW, STORAGE: NEW, STACK: NEW,
    METADATA: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip
OPENSTACK_ROLLING = {
    VNFD: NEW, COMPUTE: NEW, STORAGE: NEW,
    METADATA: SAME, NETWORK: SAME, STACK: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip

IMAGE, VOLUME = "group", "group with volume"
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


@dataclass
class RecordedVnf:
    """A VNF in a stack of the embedded cloud."""

    vnf: Any
    upgrade_type: str
    shapes: tuple[str, str]

    def live(self) -> Values:
        """Return each attribute that names resources, with the live resources' ids."""
        ids = self.vnf.ids
        return {
            COMPUTE: ids("OS::Nova::Server"),
            NETWORK: ids("OS::Neutron::Port"),
            STORAGE: ids("OS::Cinder::Volume"),
            STACK: {self.vnf.live_stack()["id"]},
        }

    def record(self) -> dict[str, Any]:
        """Return the VnfInstance as a VNFM writes it."""
        from tests.internals.stacks import instantiated_info, live  # noqa: PLC0415

        stack = self.vnf.live_stack()
        members = live.members_of(self.vnf.heat, stack, {"VDU1": "VDU1"})
        info = instantiated_info({}, members, stack["id"])
        metadata = {"kept": "yes"}
        return {"vnfdId": "vnfd-old", "metadata": metadata, "instantiatedVnfInfo": info}

    def change(self) -> Records:
        """Change the package."""
        vnf = self.vnf
        params = {"upgrade_type": self.upgrade_type, "vdu_params": [{"vdu_id": "VDU1"}]}
        request = vnf.change_request(vnf.package(self.shapes[1], "image-2"), params)
        name = vnf.live_stack()["stack_name"]
        return in_stack(StackChange(request, vnf.heat, name, vnf.options)).records


def values(instance: dict[str, Any]) -> Values:
    """Return the values of each attribute of a record."""
    return {**attributes.values(instance), METADATA: {json.dumps(instance["metadata"])}}


def check(recorded_vnf: RecordedVnf, table: dict[str, str]) -> None:
    """Change the package and compare the records with the table."""
    instance = recorded_vnf.record()
    before = values(instance)
    assert {name: before[name] for name in recorded_vnf.live()} == recorded_vnf.live()
    changed = recorded_vnf.change().apply_to(instance)
    after = values(changed)
    assert {name: became(before[name], after[name]) for name in before} == table
    live = recorded_vnf.live()
    assert {name: after[name] for name in live} == live
    info = changed["instantiatedVnfInfo"]
    storages = {entry["id"] for entry in info["virtualStorageResourceInfo"]}
    for vnfc in info["vnfcResourceInfo"]:
        assert set(vnfc["storageResourceIds"]) <= storages


@contextmanager
def recorded_openstack_vnf(
    upgrade_type: str, shapes: tuple[str, str], folder: Path
) -> Iterator[RecordedVnf]:
    """Yield a VNF of the old package."""
    pytest.importorskip("openstack", reason="the extra openstack is not installed")
    from container_update.emulator.heat import EmbeddedOpenStack  # noqa: PLC0415
    from tests.functional.stacks.site import Site  # noqa: PLC0415
    from tests.functional.stacks.vnf import Vnf  # noqa: PLC0415
    from tests.internals.stacks import connect  # noqa: PLC0415

    with EmbeddedOpenStack() as cloud, connect(auth=cloud.auth()) as heat:
        cloud.faults.seconds = 0.001
        vnf = Vnf(heat, folder, Site(), Options(timeout=30))
        vnf.instantiate(shapes[0])
        yield RecordedVnf(vnf, upgrade_type, shapes)


@pytest.mark.parametrize("case", OPENSTACK)
def test_the_attributes_of_a_vnf_in_a_stack_follow_its_resources(case: str, tmp_path: Path) -> None:
    upgrade_type, old, new, table = OPENSTACK[case]
    with recorded_openstack_vnf(upgrade_type, (old, new), tmp_path) as recorded_vnf:
        check(recorded_vnf, table)
