# SPDX-License-Identifier: Apache-2.0
"""Read a VNF's live stack from Heat, as far as a plan needs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from container_update.model.errors import PlanError
from container_update.model.objects import Json
from container_update.openstack.client import Heat, reference
from container_update.openstack.plan import Live, StackPlan, StackStep
from container_update.openstack.software import Software, deviation
from container_update.openstack.templates import groups
from container_update.openstack.vnfcs import VnfcServer, members, stack_of
from container_update.package import hot
from container_update.package.hot import Place, StackBody

SUFFIX = re.compile(r"\.[0-9a-f]{8}$")
"""What a Blue-Green change adds to the stack's name."""
DEPTH = 5
"""How deep nested stacks are listed: a group, its members, and what these nest."""
_KEPT = ("event_sinks", "parameter_defaults", "resource_registry")
"""The parts of an environment that go from one stack to another."""


def stacks_of(service: Heat, name: str) -> list[Json]:
    """Return a VNF's stacks by the name of its first one: more than one during a change."""
    return [s for s in service.stacks() if SUFFIX.sub("", str(s["stack_name"])) == name]


def find(service: Heat, name: str) -> Json:
    """Return the VNF's stack; PlanError: there is none, or it is not complete."""
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


def body_of(service: Heat, stack: str) -> StackBody:
    """Return the body of a stack as Heat has it, without hidden parameters, which Heat masks."""
    environment = service.environment(stack)
    body = StackBody(service.template(stack), files=service.files(stack))
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


def read(service: Heat, stack: Json, body: StackBody, places: Mapping[str, Place]) -> Live:
    """Return the stack with the VNFCs of some VDUs."""
    top = reference(stack)
    resources = service.resources(top, DEPTH)
    servers = members(resources, top, places)
    present = {member.vdu_id for member in servers}
    empty = [vdu_id for vdu_id in places if vdu_id not in present and not places[vdu_id].grouped]
    if empty:
        raise PlanError(f"stack {stack['stack_name']} has no server for {', '.join(empty)}")
    ids = {
        str(resource["resource_name"]): resource["physical_resource_id"]
        for resource in resources
        if (stack_of(resource) or top) == top
    }
    tags = tuple(stack.get("tags") or ())
    return Live(top, body, servers, ids, timeout_mins=stack.get("timeout_mins"), tags=tags)


def read_for_update(
    service: Heat, stack: Json, body: StackBody, places: Mapping[str, Place]
) -> Live:
    """Return the stack with the VNFCs of some VDUs, what each runs on, and every stack that these
    and their groups are in.

    :raises PlanError: one of these stacks or servers is in no state for a change.
    """
    current = read(service, stack, body, places)
    nested, updated = {}, {current.reference: stack.get("updated_time")}
    groups_of = dict.fromkeys(member.group for member in current.members if member.group)
    for name in (*dict.fromkeys(member.stack for member in current.members), *groups_of):
        if name != current.reference:
            updated[name] = find(service, name).get("updated_time")
            read_body = group_body_of if name in groups_of else body_of
            nested[name] = read_body(service, name)
    bodies = {current.reference: body, **nested}
    servers = tuple(_with_software(service, member, bodies) for member in current.members)
    return replace(current, members=servers, nested=nested, updated=updated)


def group_body_of(service: Heat, stack: str) -> StackBody:
    """Return the body of a group's own stack, without hidden values: it has them in its template,
    where Heat does not mask them."""
    body = body_of(service, stack)
    return groups.mask(body, body.files)


def body_for(service: Heat, plan: StackPlan, step: StackStep) -> StackBody:
    """Return the body that a step's stack has now, to be compared with the step's."""
    settles_group = step.member is None and step.stack != plan.stack
    return (group_body_of if settles_group else body_of)(service, step.stack)


def _with_software(
    service: Heat, member: VnfcServer, bodies: Mapping[str, StackBody]
) -> VnfcServer:
    server = service.resource(member.stack, member.resource)
    status = ((server or {}).get("attributes") or {}).get("status", "ACTIVE")
    if status not in ("ACTIVE", "ERROR"):  # Heat waits for it for ever, and an undo replaces it
        raise PlanError(
            f"{member} is {status}: expected it to be ACTIVE before its package is changed: start "
            "or resume it, or wait until the action of Nova on it has ended"
        )
    wrong = deviation(service, server, bodies[member.stack], member.resource)
    return replace(member, software=Software.of(server), deviation=wrong)


def after(service: Heat, plan: StackPlan) -> Live:
    """Return the VNF's stack after a plan was carried out."""
    stack = find(service, plan.new_stack)
    return read(service, stack, body_of(service, reference(stack)), plan.places)


def members_of(service: Heat, stack: Json, vdus: Mapping[str, str]) -> tuple[VnfcServer, ...]:
    """Return the VNFCs of every VDU that has a server in the live stack."""
    body = body_of(service, reference(stack))
    return read(service, stack, body, hot.places_in(body, vdus)).members


def sizes(resources: Sequence[Json], body: StackBody) -> dict[str, int]:
    """Return the number of members of each scaling group, by its name."""
    counts = {}
    parents = Counter((stack_of(resource) or "").rpartition("/")[2] for resource in resources)
    for resource in resources:
        name = resource["resource_name"]
        if (body.template["resources"].get(name) or {}).get("type") == hot.GROUP:
            counts[name] = parents[str(resource["physical_resource_id"])]
    return counts
