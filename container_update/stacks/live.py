"""What is live: a VNF's stack read from Heat, as far as a plan needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from container_update.model.errors import PlanError
from container_update.model.objects import Json
from container_update.package import hot
from container_update.package.hot import Body, Place
from container_update.stacks.client import StackService, reference
from container_update.stacks.plan import Live, StackPlan
from container_update.stacks.vnfcs import VnfcServer, members, stack_of

DEPTH = 5
"""How deep nested stacks are listed: a group, its members, and what these nest."""
_KEPT = ("parameter_defaults", "resource_registry")
"""The parts of an environment that go from one stack to another."""


def find(service: StackService, name: str) -> Json:
    """Return the VNF's stack, which has to be complete.

    :raises PlanError: there is none, something is done to it, or it failed.
    """
    stack = service.stack(name)
    if stack is None:
        raise PlanError(f"there is no stack {name}: name the VNF's stack by its name or id")
    status = stack["stack_status"]
    if not status.endswith("_COMPLETE"):
        raise PlanError(
            f"stack {name} is {status}: expected it to be complete before its package is changed; "
            f"Heat says: {stack['stack_status_reason']}"
        )
    return stack


def body_of(service: StackService, stack: str) -> Body:
    """All that makes a stack, as Heat has it; hidden parameters, which it masks, are left out."""
    environment = service.environment(stack)
    body = Body(service.template(stack), files=service.files(stack))
    seen = {
        section: {name: value for name, value in values.items() if name not in body.hidden}
        for section in ("parameters", "parameter_defaults")
        if (values := environment.get(section) or {})
    }
    kept = {**environment, **seen}
    return replace(
        body,
        parameters=seen.get("parameters", {}),
        environment={name: kept[name] for name in _KEPT if kept.get(name)},
    )


def read(service: StackService, stack: Json, body: Body, places: Mapping[str, Place]) -> Live:
    """Return the stack with the VNFCs of some VDUs, and the stacks that these are in."""
    top = reference(stack)
    resources = service.resources(top, DEPTH)
    found = members(resources, top, places)
    there = {member.vdu_id for member in found}
    empty = [vdu_id for vdu_id in places if vdu_id not in there and not places[vdu_id].grouped]
    if empty:
        raise PlanError(f"stack {stack['stack_name']} has no server for {', '.join(empty)}")
    inner = dict.fromkeys(member.stack for member in found if member.stack != top)
    ids = {
        str(resource["resource_name"]): resource["physical_resource_id"]
        for resource in resources
        if (stack_of(resource) or top) == top
    }
    return Live(top, body, found, ids, {stack: body_of(service, stack) for stack in inner})


def after(service: StackService, plan: StackPlan) -> Live:
    """Return the VNF's stack as a plan that was carried out has left it."""
    stack = find(service, plan.new_stack)
    return read(service, stack, body_of(service, reference(stack)), plan.places)


def members_of(
    service: StackService, stack: Json, vdus: Mapping[str, str]
) -> tuple[VnfcServer, ...]:
    """Return the VNFCs of every VDU that the live stack has a place for.

    :param vdus: VDU id to its name.
    """
    body = body_of(service, reference(stack))
    places = {
        vdu_id: place
        for vdu_id, name in vdus.items()
        for place in hot.places_named(body, vdu_id, name)
    }
    return read(service, stack, body, places).members


def sizes(resources: Sequence[Json], body: Body) -> dict[str, int]:
    """Scaling group to how many members it has."""
    counts = {}
    for resource in resources:
        name = resource["resource_name"]
        if (body.template["resources"].get(name) or {}).get("type") == hot.GROUP:
            group = str(resource["physical_resource_id"])
            inside = [stack_of(other) for other in resources]
            counts[name] = sum(1 for stack in inside if stack and stack.endswith("/" + group))
    return counts
