"""Which changes of properties a resource type takes in place, and which replace the resource.

Source: Heat's resource type reference, which says for every property whether it can be updated
without replacement. A type that no table names takes every change in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from container_update.emulator.json_type import Json

SERVER, PORT, VOLUME = "OS::Nova::Server", "OS::Neutron::Port", "OS::Cinder::Volume"
FLOATING_IP = "OS::Neutron::FloatingIP"
GROUP = "OS::Heat::AutoScalingGroup"

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


def is_replaced(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether the change of properties replaces the resource."""
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if kind != SERVER:
        return bool(changed & _REPLACING.get(kind, frozenset()))
    return bool(changed - _SERVER_UPDATES) or any(
        new.get(policy, default) == "REPLACE"
        for name, (policy, default) in _POLICIES.items()
        if name in changed
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
        return {"status": "ACTIVE", "name": properties.get("name", "")}
    if kind == VOLUME:
        return {"status": "available"}
    return {}


def _address(network: str) -> str:
    """Return the next address of a network that is given by its first two bytes."""
    number = next(_addresses)
    return f"{network}.{number // 250}.{number % 250 + 1}"
