# SPDX-License-Identifier: Apache-2.0
"""The scaling groups of a stack: their sizes, and what they store of their members. Pure.

A group is a stack of its own, whose template has a resource for each member, with type and
properties. Heat changes a group's members in batches, and gives all members that are not in a batch
what this template says of them: a member that was updated by itself would be put back.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from container_update.model.errors import PlanError
from container_update.model.objects import Json
from container_update.package import hot
from container_update.package.hot import Place, StackBody

_SIZE = "desired_capacity"
MASKED = "******"
"""What stands for the value of a hidden parameter, as in Heat's own answers."""


def with_size(body: StackBody, head: str, size: int) -> StackBody:
    """Return a stack whose scaling group has another size.

    It is written where the template has it: in a parameter, in a value inside of a parameter
    (``get_param: [nfv, VDU, VDU1, desired_capacity]``), or in the template itself.
    """
    path = hot.parameter_path((body.template["resources"][head].get("properties") or {}).get(_SIZE))
    if path is not None:
        parameters = hot.parse_json(body.template, body.parameters)
        return replace(body, parameters=hot.set_at(parameters, path, size))
    template = copy.deepcopy(body.template)
    template["resources"][head]["properties"][_SIZE] = size
    return replace(body, template=template)


def size_of(body: StackBody, head: str) -> object:
    """Return the size that a stack defines for its scaling group; None where it has no group."""
    definition = body.template["resources"].get(head) or {}
    if definition.get("type") != hot.GROUP:
        return None
    value = (definition.get("properties") or {}).get(_SIZE)
    return hot.bind(value, body)


def with_sizes_of(body: StackBody, live: StackBody, heads: Iterable[str]) -> StackBody:
    """Return a stack whose scaling groups have the sizes that they have in another one."""
    for head in heads:
        size = size_of(live, head)
        if isinstance(size, int | str) and size_of(body, head) not in (None, size):
            body = with_size(body, head, int(size))
    return body


def resize(body: StackBody, places: Mapping[str, Place], numbers: Mapping[str, int]) -> StackBody:
    """Return a stack whose scaling groups have other sizes; PlanError: a VDU has no group."""
    for vdu_id, number in numbers.items():
        body = with_size(body, grouped_place(places, vdu_id).head, number)
    return body


def grouped_place(places: Mapping[str, Place], vdu_id: str) -> Place:
    """Return the place of a VDU's server in a scaling group; PlanError where it is in none."""
    place = places.get(vdu_id)
    if place is None or not place.grouped:
        raise PlanError(
            f"{vdu_id}: expected its server in a resource of type {hot.GROUP}, which can be "
            "scaled, found none in the stack's template: put it into one, or correct the VNFD's "
            "scaling policies"
        )
    return place


# --- a group's own stack ------------------------------------------------------------------------


def mask(group: StackBody, files: Mapping[str, str]) -> StackBody:
    """Return a group's own stack without the values that nested templates hide."""
    resources = {
        name: _masked_member(definition, files)
        for name, definition in group.template["resources"].items()
    }
    return replace(group, template={**group.template, "resources": resources})


def _masked_member(definition: Json, files: Mapping[str, str]) -> Json:
    kind = str(definition.get("type"))
    if kind not in files:
        return definition
    nested = StackBody(hot.parse(files[kind], kind), files=files)
    properties = {
        name: MASKED if name in nested.hidden else value
        for name, value in (definition.get("properties") or {}).items()
    }
    return {**definition, "properties": properties}


def unmask(group: StackBody, live: Mapping[str, Any]) -> StackBody:
    """Return a group's own stack with the hidden values that its live template has."""
    resources = {}
    for name, definition in group.template["resources"].items():
        stored = (live["resources"].get(name) or {}).get("properties") or {}
        properties = {
            key: stored.get(key, value) if value == MASKED else value
            for key, value in (definition.get("properties") or {}).items()
        }
        resources[name] = {**definition, "properties": properties}
    return replace(group, template={**group.template, "resources": resources})


def settle(
    group: StackBody, members: Collection[str], definition: Json, files: Mapping[str, str]
) -> StackBody:
    """Return a group's own stack that says of some members what another definition says.

    :param definition: type and properties, without functions.
    """
    definition = _masked_member(definition, files)
    resources = {
        name: {**stored, **definition} if name in members else stored
        for name, stored in group.template["resources"].items()
    }
    return replace(group, template={**group.template, "resources": resources}, files=files)


def with_members_of(group: StackBody, live: StackBody) -> StackBody:
    """Return a group's own stack with the members that it has now: a new one is like the others."""
    stored = group.template["resources"]
    like = next(iter(stored.values()), None)
    resources = {
        name: stored.get(name, like or now) for name, now in live.template["resources"].items()
    }
    # the outputs name the members
    return replace(group, template={**live.template, "resources": resources})


def is_settled(group: StackBody, after: StackBody) -> bool:
    """Return whether a group's own stack says of its members what another body says of them."""
    return _members_in(group) == _members_in(after)


def _members_in(group: StackBody) -> dict[str, tuple[object, Json]]:
    # as text: Heat returns a number as it was given, as a number or as text
    return {
        name: (
            definition.get("type"),
            {key: str(value) for key, value in (definition.get("properties") or {}).items()},
        )
        for name, definition in group.template["resources"].items()
    }
