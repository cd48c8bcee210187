# SPDX-License-Identifier: Apache-2.0
"""What became of the stacks while a change of them is under way, mostly by another client.

Heat has no conditional requests: what is compared here may change before the next request arrives,
but not minutes before.
"""

from __future__ import annotations

from collections.abc import Callable

from container_update.openstack import live, vnfcs
from container_update.openstack.client import Heat
from container_update.openstack.plan import SCALE, AnyStep, StackPlan, StackStep
from container_update.openstack.templates import groups
from container_update.package import hot
from container_update.package.hot import StackBody

TagOf = Callable[[StackBody | None], str]


def describe_other_changes(service: Heat, plan: StackPlan, number: int, tag_of: TagOf) -> str:
    """Return what another client changed of the stacks that a step and those after it rely on;
    empty where none did."""
    steps = plan.stack_steps
    step = plan.steps[number]
    assert isinstance(step, StackStep), "a script changes no stack"
    containing = [each.stack for each in reversed(steps) if each.member is None]
    # the whole stack says best what happened
    for stack in dict.fromkeys((*containing, step.stack)):
        earlier = [s for s in plan.steps[:number] if isinstance(s, StackStep) and s.stack == stack]
        later = [s for s in plan.steps[number:] if isinstance(s, StackStep) and s.stack == stack]
        if not later:
            continue
        current = service.stack(stack)
        if current is None:
            return f"stack {stack} is gone: another client deleted it"
        tags = current.get("tags") or ()
        expected = earlier[-1].after if earlier else later[0].before
        is_known = (
            tag_of(expected) in tags
            if earlier
            else (current.get("updated_time") == later[0].updated)
        )
        if is_known or tag_of(later[0].after) in tags:
            continue
        body = live.body_for(service, plan, later[0])
        if body not in (expected, later[0].after):
            return (
                f"stack {current['stack_name']} was changed by another client since this change "
                f"was planned ({_difference(expected, body)}): repeat the change"
            )
    return ""


def _difference(expected: StackBody | None, found: StackBody) -> str:
    """Return what differs, by name: values may be secret."""
    assert expected is not None
    values, now = map(hot.effective_parameters, (expected, found))
    names = sorted(name for name in values | now if values.get(name) != now.get(name))
    if names:
        return f"parameters {', '.join(names)}"
    resources, others = expected.template["resources"], found.template["resources"]
    changed = sorted(n for n in resources | others if resources.get(n) != others.get(n))
    return f"resources {', '.join(changed)}" if changed else "its template, files or environment"


def is_gone(service: Heat, plan: StackPlan, step: StackStep) -> bool:
    """Return whether another client has removed what a step changes, as scaling in does: the stack
    of a VNFC or a group, or a group's member that is a plain server."""
    if step.stack != plan.stack and service.stack(step.stack) is None:
        return True
    if step.member is None or not plan.is_of_group(step):
        return False
    return service.resource(step.stack, step.member.resource) is None


def removed_resources(service: Heat, step: AnyStep) -> list[str]:
    """Return the resources that a step takes out of a stack and that have gone, or were to go, when
    it failed: an undo makes other ones."""
    if not isinstance(step, StackStep) or step.before is None or step.after is None:
        return []
    names = step.before.template["resources"].keys() - step.after.template["resources"].keys()
    stay = {
        str(resource["resource_name"])
        for resource in (service.resources(step.stack) if names else ())
        if not str(resource.get("resource_status")).startswith("DELETE_")
    }
    return sorted(names - stay)


def restorable(service: Heat, plan: StackPlan, step: StackStep) -> StackBody:
    """Return what an undo gives a stack back: as it was, with the number of members that its
    scaling groups have now."""
    assert step.before is not None
    if plan.kind == SCALE and step.after is not None:
        return _with_sizes_before(step.before, step.after, live.body_for(service, plan, step), plan)
    if step.stack == plan.stack:
        definitions = step.before.template["resources"]
        heads = [name for name, body in definitions.items() if body.get("type") == hot.GROUP]
        return groups.with_sizes_of(step.before, live.body_for(service, plan, step), heads)
    if plan.is_of_group(step):
        return groups.with_members_of(step.before, live.body_for(service, plan, step))
    return step.before


def _with_sizes_before(
    before: StackBody, after: StackBody, now: StackBody, plan: StackPlan
) -> StackBody:
    """Return a scaled stack with the sizes from before; another client's size stays."""
    heads = [place.head for place in plan.places.values()]

    def is_of_others(head: str) -> bool:
        known = [str(groups.size_of(body, head)) for body in (before, after)]
        return str(groups.size_of(now, head)) not in known

    body = groups.with_sizes_of(after, before, heads)
    return groups.with_sizes_of(body, now, filter(is_of_others, heads))


def surplus(service: Heat, plan: StackPlan, body: StackBody) -> list[tuple[str, str, str]]:
    """Return the newest members of the plan's groups that have no place in a stack any more: its
    stack, name and physical id. Heat removes an unhealthy one first, else the oldest."""
    resources = service.resources(plan.stack, live.DEPTH)
    servers = vnfcs.members(resources, plan.stack, plan.places)
    members = []
    for vdu_id, place in plan.places.items():
        size = groups.size_of(body, place.head)
        of_vdu = [server.name for server in servers if server.vdu_id == vdu_id]
        names = of_vdu[int(size) :] if isinstance(size, int | str) else []
        for resource in resources:
            stack = vnfcs.stack_of(resource)
            if resource["resource_name"] in names and stack and stack != plan.stack:
                members.append((stack, resource["resource_name"], resource["physical_resource_id"]))
    return members
