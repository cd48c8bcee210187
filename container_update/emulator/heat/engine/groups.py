# SPDX-License-Identifier: Apache-2.0
"""Scaling groups: which member gets which definition in the group's own stack. Pure.

The stack stores every member's definition. An update gives the new one to as many members as a
batch has; all others keep what is stored, even if a user updated a member's stack directly.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from container_update.emulator.heat import hot
from container_update.emulator.heat.stacks import Stack, StackResource
from container_update.emulator.json_type import Json

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def random_name() -> str:
    """Return a name as Heat makes them for members and nested stacks."""
    return "".join(secrets.choice(_LETTERS) for _ in range(12))


def first_template(resource: StackResource, properties: Json) -> Json:
    """Return the template with which a group's stack is created."""
    return _template(resource, dict(_definitions([], properties, 0)))


def next_templates(resource: StackResource, group: Stack, properties: Json) -> Iterator[Json]:
    """Yield the templates that the group's stack is updated to, one after the other.

    One for each batch, if the members' definition is not the one that was applied last; and always
    one with the size. Each is made from what the stack stores at that time.
    """
    if properties["resource"] != resource.properties.get("resource"):
        batch = _batch_size(properties)
        for _ in range(math.ceil(len(group.resources) / batch)):
            kept = {**properties, "desired_capacity": len(_stored_members(group))}
            yield _template(resource, dict(_definitions(_stored_members(group), kept, batch)))
    yield _template(resource, dict(_definitions(_stored_members(group), properties, 0)))


def _stored_members(group: Stack) -> list[tuple[str, Json]]:
    """Return the members with their stored definitions, in the order in which Heat removes them.

    The unhealthy ones come first, then the oldest.
    """
    definitions = hot.resources(group.template)
    members = [member for member in group.resources.values() if member.name in definitions]
    members.sort(key=lambda member: (member.status != "FAILED", member.created, member.name))
    return [(member.name, definitions[member.name]) for member in members]


def _definitions(
    stored: list[tuple[str, Json]], properties: Mapping[str, Any], batch: int
) -> Iterator[tuple[str, Json]]:
    """Yield the members of a group of the asked size; *batch* of them get the new definition."""
    new, size = dict(properties["resource"]), _size(properties)
    kept = stored[max(0, len(stored) - size) :]
    for name, definition in kept:
        is_replaced = batch > 0 and definition != new
        batch -= is_replaced
        yield name, new if is_replaced else definition
    for _ in range(size - len(kept)):
        yield random_name(), new


def _size(properties: Mapping[str, Any]) -> int:
    size = properties.get("desired_capacity")
    return int(size if size is not None else properties.get("min_size") or 0)


def _batch_size(properties: Mapping[str, Any]) -> int:
    policy = properties.get("rolling_updates") or {}
    return max(1, int(policy.get("max_batch_size") or 1))


def _template(resource: StackResource, members: Mapping[str, Json]) -> Json:
    """Return the template of a group's stack, with the outputs that the parent's template uses."""
    outputs = {
        f"outputs, {key}": {"value": {name: {"get_attr": [name, key]} for name in members}}
        for key in _used_outputs(resource)
    }
    references = {name: {"get_resource": name} for name in members}
    return {
        "heat_template_version": "2015-04-30",
        "resources": dict(sorted(members.items())),
        "outputs": {**outputs, "refs_map": {"value": references}},
    }


def _used_outputs(resource: StackResource) -> list[str]:
    """Return the members' outputs that the group's parent reads."""
    paths = hot.attributes_used(resource.stack.template, resource.name)
    return sorted({str(path[1]) for path in paths if len(path) > 1 and path[0] == "outputs"})
