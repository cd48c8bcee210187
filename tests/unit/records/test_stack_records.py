# SPDX-License-Identifier: Apache-2.0
"""The records of a VNF in a Heat stack, without and with an earlier record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from container_update.openstack.vnfcs import VnfcServer
from container_update.openstack.vnfm_records import instantiated_info

Json = dict[str, Any]


def vnfc(name: str, server: str, port: str, **volumes: str) -> VnfcServer:
    """Return a server of VDU1 with its port CP1, in a separate stack."""
    stack = f"vnf-1-{name}/stack-of-{name}"
    return VnfcServer("VDU1", stack, "VDU1", server, name, {"CP1": port}, volumes)


ONE = (vnfc("a", "server-a", "port-a", disk="volume-a"),)
TWO = (*ONE, vnfc("b", "server-b", "port-b", disk="volume-b"))
AFTER: Mapping[str, tuple[tuple[VnfcServer, ...], Json]] = {
    "nothing changed": (
        TWO,
        {"server-a": "0", "server-b": "1", "volume-a": "0", "volume-b": "1"},
    ),
    "a server that was replaced goes on under its id": (
        (TWO[0], vnfc("b", "server-c", "port-b", disk="volume-b")),
        {"server-a": "0", "server-c": "1", "volume-a": "0", "volume-b": "1"},
    ),
    "a volume that was replaced does too": (
        (TWO[0], vnfc("b", "server-b", "port-b", disk="volume-c")),
        {"server-a": "0", "server-b": "1", "volume-a": "0", "volume-c": "1"},
    ),
    "a whole new stack": (
        (vnfc("c", "s-c", "p-c", disk="v-c"), vnfc("d", "s-d", "p-d", disk="v-d")),
        {"s-c": "0", "s-d": "1", "v-c": "0", "v-d": "1"},
    ),
    "a volume of another name is another one": (
        (TWO[0], vnfc("b", "server-b", "port-b", store="volume-c")),
        {"server-a": "0", "server-b": "1", "volume-a": "0", "volume-c": None},
    ),
    "one is gone": (ONE, {"server-a": "0", "volume-a": "0"}),
    "one came": (
        (*TWO, vnfc("c", "server-c", "port-c")),
        {"server-a": "0", "server-b": "1", "server-c": None, "volume-a": "0", "volume-b": "1"},
    ),
}
"""How the stack is, and for each server and volume the entry that it goes on with; None: a new
one."""


def ids(info: Json) -> dict[str, str]:
    """Return the id of each server's and volume's entry, by resource."""
    lists = {"vnfcResourceInfo": "computeResource", "virtualStorageResourceInfo": "storageResource"}
    return {
        entry[handle]["resourceId"]: entry["id"]
        for listed, handle in lists.items()
        for entry in info[listed]
    }


@pytest.mark.parametrize("case", AFTER)
def test_an_entry_keeps_its_id_with_the_replacing_resource_of_its_name(case: str) -> None:
    before = instantiated_info({"flavourId": "simple"}, TWO, "stack-1")
    known = ids(before)
    entries = {
        known[resource]: resource[-1].replace("a", "0").replace("b", "1") for resource in known
    }
    members, expected = AFTER[case]
    after = instantiated_info(before, members, "stack-2")
    assert {name: entries.get(id_) for name, id_ in ids(after).items()} == expected
    assert after["flavourId"] == "simple"
    assert after["instance_id"] == after["metadata"]["stack_id"] == "stack-2"


@pytest.mark.parametrize("case", AFTER)
def test_a_vnfc_names_its_volumes_and_its_stack(case: str) -> None:
    members, _ = AFTER[case]
    info = instantiated_info(instantiated_info({}, TWO, "stack-1"), members, "stack-2")
    storages = info["virtualStorageResourceInfo"]
    volumes = {entry["id"]: entry["storageResource"]["resourceId"] for entry in storages}
    for entry, member in zip(info["vnfcResourceInfo"], members, strict=True):
        named = [volumes[id_] for id_ in entry["storageResourceIds"]]
        assert named == list(member.volumes.values())
        assert entry["metadata"] == {"stack_id": f"stack-of-{member.name}"}
    assert [e["vnfcResourceInfoId"] for e in info["vnfcInfo"]] == [
        e["id"] for e in info["vnfcResourceInfo"]
    ]


def test_connection_points_are_recorded_by_their_ports() -> None:
    info = instantiated_info({}, TWO, "stack-1")
    connection_points = [
        (entry["vnfVirtualLinkDescId"], entry["networkResource"]["resourceId"])
        for entry in info["vnfVirtualLinkResourceInfo"]
    ]
    assert connection_points == [("CP1", "port-a"), ("CP1", "port-b")]
