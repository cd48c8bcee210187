"""How Heat's resource types take a change: in place or by another resource of that name.

Source: the "Updates cause replacement" marks of Heat's resource type reference. A type that is not
in the table takes every change in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from container_update.model import Json

SERVER, PORT, VOLUME = "OS::Nova::Server", "OS::Neutron::Port", "OS::Cinder::Volume"
GROUP = "OS::Heat::AutoScalingGroup"

_REPLACING: Mapping[str, frozenset[str]] = {
    SERVER: frozenset(
        {
            "availability_zone", "block_device_mapping", "block_device_mapping_v2", "config_drive",
            "key_name", "reservation_id", "scheduler_hints", "security_groups", "user_data",
        }
    ),
    PORT: frozenset({"network", "network_id"}),
    VOLUME: frozenset({"availability_zone", "image", "snapshot_id", "source_volid"}),
    "OS::Nova::ServerGroup": frozenset({"name", "policies"}),
}  # fmt: skip

_POLICIES = {
    "image": ("image_update_policy", "REBUILD"),
    "flavor": ("flavor_update_policy", "RESIZE"),
}
"""A server's property: the one that says how it changes, and its default."""

_addresses = itertools.count(10)


def is_replaced(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the change of properties needs another resource."""
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if changed & _REPLACING.get(kind, frozenset()):
        return True
    return kind == SERVER and any(
        new.get(policy, default) == "REPLACE"
        for name, (policy, default) in _POLICIES.items()
        if name in changed
    )


def first_facts(kind: str, properties: Mapping[str, Any]) -> Json:
    """What the service knows of a resource that it has just made."""
    if kind == PORT:
        number = next(_addresses)
        address = f"10.10.{number // 250}.{number % 250 + 1}"
        return {"fixed_ips": [{"ip_address": address}], "status": "ACTIVE"}
    if kind == SERVER:
        return {"status": "ACTIVE", "name": properties.get("name", "")}
    if kind == VOLUME:
        return {"status": "available"}
    return {}
