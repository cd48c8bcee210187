# SPDX-License-Identifier: Apache-2.0
"""Which changes of properties a resource type takes in place, and which replace the resource.

Source: Heat's resource type reference, which says for every property whether it can be updated
without replacement. A type that no table names takes every change in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from container_update.emulator.json_type import Json

if TYPE_CHECKING:
    from container_update.emulator.heat.stacks import StackResource

SERVER, PORT, VOLUME = "OS::Nova::Server", "OS::Neutron::Port", "OS::Cinder::Volume"
FLOATING_IP = "OS::Neutron::FloatingIP"
ATTACHMENT = "OS::Cinder::VolumeAttachment"
GROUP, TEST = "OS::Heat::AutoScalingGroup", "OS::Heat::TestResource"

_NOVA = frozenset(
    f"OS::Nova::{name}"
    for name in ("Flavor", "HostAggregate", "Keypair", "Quota", "Server", "ServerGroup")
)
WITHOUT_CHECK = frozenset({PORT, ATTACHMENT})
"""The types of which Heat's action ``check`` says that it is not supported."""

_SERVER_UPDATES = frozenset(
    {
        "admin_pass", "deployment_swift_data", "flavor", "flavor_update_policy", "image",
        "image_update_policy", "metadata", "name", "networks", "software_config_transport", "tags",
        "user_data", "user_data_update_policy",
    }
)  # fmt: skip
"""A server's properties that can be updated; a change of any other replaces the server."""

_REPLACING: Mapping[str, frozenset[str]] = {
    PORT: frozenset({"network", "network_id"}),
    VOLUME: frozenset({"availability_zone", "image", "snapshot_id", "source_volid"}),
    "OS::Nova::ServerGroup": frozenset({"name", "policies"}),
}

_POLICIES = {
    "image": ("image_update_policy", "REBUILD"),
    "flavor": ("flavor_update_policy", "RESIZE"),
    "user_data": ("user_data_update_policy", "REPLACE"),
}
"""A server's property to the property with its update policy, and that one's default."""

_addresses = itertools.count(10)


def is_known(kind: str) -> bool:
    """Return whether there is such a type. Only Nova's are checked."""
    return not kind.startswith("OS::Nova::") or kind in _NOVA


def is_replaced(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether a change of these properties can only be made with another resource."""
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if kind != SERVER:
        return bool(changed & _REPLACING.get(kind, frozenset()))
    return bool(changed - _SERVER_UPDATES)


def policy_replaces(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether a server is replaced because a policy of its own says so."""
    return any(
        new.get(policy, default) == "REPLACE"
        for name, (policy, default) in _POLICIES.items()
        if old.get(name) != new.get(name)
    )


def first_facts(kind: str, properties: Mapping[str, Any]) -> Json:
    """Return what the service knows of a resource that it has just created."""
    if kind == PORT:
        asked = properties.get("fixed_ips") or [{}]
        fixed = [{"ip_address": _address("10.10"), **entry} for entry in asked]
        return {"fixed_ips": fixed, "status": "ACTIVE"}
    if kind == FLOATING_IP:
        address = properties.get("floating_ip_address") or _address("172.24")
        return {"floating_ip_address": address, "status": "ACTIVE"}
    if kind == SERVER:
        image, flavor = properties.get("image"), properties.get("flavor")
        name = properties.get("name", "")
        return {"status": "ACTIVE", "name": name, "image": image, "flavor": flavor, "actions": []}
    return {"status": "available"} if kind == VOLUME else {"status": "there"}


def physical_id(kind: str, label: str, new_id: str, properties: Mapping[str, Any]) -> str:
    """Return the id that a new resource gets."""
    if kind == ATTACHMENT:
        return str(properties.get("volume_id"))
    return label if kind == TEST else new_id


def shown_attributes(resource: StackResource) -> Json:
    """Return the attributes that Heat shows of a resource: what its service knows of it."""
    facts = {"id": resource.physical_id, **resource.facts}
    if resource.kind == GROUP:  # Heat shows none of a group's, though get_attr finds them
        return dict.fromkeys(("outputs", "current_size", "refs", "refs_map", "outputs_list"))
    if resource.kind == SERVER and resource.facts:
        del facts["actions"]
        image = facts["image"]
        facts["image"] = {"id": image} if image else ""  # empty where it boots from a volume
        disk = facts.pop("disk", None)
        facts["flavor"] = {"original_name": facts["flavor"]} | ({"disk": disk} if disk else {})
        facts["metadata"] = dict(resource.properties.get("metadata") or {})
    return facts


def _address(network: str) -> str:
    """Return the next address of a network that is given by its first two bytes."""
    number = next(_addresses)
    return f"{network}.{number // 250}.{number % 250 + 1}"
