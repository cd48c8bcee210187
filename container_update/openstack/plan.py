# SPDX-License-Identifier: Apache-2.0
"""The plan of an operation on a VNF's stacks: its steps in order, with reasons. Pure.

:mod:`container_update.openstack.execution` carries it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from container_update.model.errors import PackageError
from container_update.model.objects import ObjectKey
from container_update.model.operation import StepProgress
from container_update.model.plan import Action, Plan, Reason, Step
from container_update.model.scripts import NEW, OLD, ScriptStep, VduChange
from container_update.openstack.templates import desired, groups
from container_update.openstack.vnfcs import VnfcServer
from container_update.package import hot
from container_update.package.hot import Place, StackBody

BLUE_GREEN, ROLLING = "Blue-Green", "RollingUpdate"
INSTANTIATE, HEAL, SCALE, TERMINATE = "instantiate", "heal", "scale", "terminate"
"""Kinds of plans: the upgrade types, and what the service does besides."""

# --- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StackStep(Step):
    """Create, update or delete a stack, with the values that its undo needs."""

    stack: str
    """The stack's reference; for a creation the new stack's name."""
    before: StackBody | None = field(default=None, repr=False)
    after: StackBody | None = field(default=None, repr=False)
    member: VnfcServer | None = None
    """The VNFC that it is about; None: the stack as a whole."""
    updated: str | None = None
    """The stack's ``updated_time`` when this was planned."""
    replaced: tuple[tuple[str, str, str], ...] = ()
    """What Heat is to replace: stack, name and physical id of each resource. Nothing brings it
    back."""

    @classmethod
    def of(  # noqa: PLR0913, PLR0917
        cls,
        action: Action,
        stack: str,
        before: StackBody | None = None,
        after: StackBody | None = None,
        member: VnfcServer | None = None,
        reasons: Iterable[str] = (),
        updated: str | None = None,
    ) -> StackStep:
        """Return the step; its key is the VNFC's, or else the stack's."""
        why = tuple(Reason(text) for text in reasons)
        key = _key(stack, member)
        return cls(key, action, stack, before, after, member, updated, reasons=why)

    def __str__(self) -> str:
        because = f": {'; '.join(map(str, self.reasons))}" if self.reasons else ""
        return f"{self.key}: {self.action.value}{because}"


AnyStep = StackStep | ScriptStep


def _server_key(member: VnfcServer) -> ObjectKey:
    """Return the key of a VNFC's server in a plan."""
    return ObjectKey("openstack", "Server", "", str(member))


def _key(stack: str, member: VnfcServer | None) -> ObjectKey:
    if member is not None:
        return _server_key(member)
    return ObjectKey("openstack", "Stack", "", stack.partition("/")[0])


# --- the plan -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StackPlan(Plan):
    """A plan for the stacks of a VNF; its ``kind`` is one of those above."""

    steps: tuple[AnyStep, ...]
    """In the order in which they are done, one after the other."""
    stack: str = field(kw_only=True)
    """The reference of the stack that the VNF is now."""
    members: tuple[VnfcServer, ...] = field(default=(), kw_only=True)
    """Every VNFC of the target VDUs before the change."""
    places: Mapping[str, Place] = field(default_factory=dict, kw_only=True)
    """Target VDU to where its server is defined in the new templates."""
    timeout_mins: int | None = field(default=None, kw_only=True)
    """The stack's own time limit for each action, in minutes; None: Heat's default."""
    tags: tuple[str, ...] = field(default=(), kw_only=True)
    """The stack's tags, the operator's among them."""

    @property
    def stack_steps(self) -> list[StackStep]:
        """The steps that are no scripts."""
        return [step for step in self.steps if isinstance(step, StackStep)]

    @property
    def no_way_back(self) -> str:
        """Why it cannot be undone once it has come to what nothing brings back."""
        gone = next((step.key for step in self.steps if step.action is Action.DELETE), None)
        if gone is None:
            return "a heal of servers cannot be undone: the old servers are deleted"
        if self.kind == BLUE_GREEN:
            return (
                f"{gone}, the old VNF's, is being deleted or gone: this change cannot be undone "
                "any more. To get the old package back, finish this change, then change the VNF "
                "to the old package"
            )
        return f"{gone} is being deleted or gone: what has begun so can only be finished"

    @property
    def can_be_left(self) -> bool:
        """Whether it may end half done: every server works as its stack says, old or new."""
        return self.kind == HEAL and all(step.action is Action.UPDATE for step in self.steps)

    @property
    def part_done(self) -> str:
        """What there is where it fails after that, as a sentence."""
        if self.kind == BLUE_GREEN:
            return "The new VNF is in force, but a part of the old one is left: fix the cause"
        return "A part of it is done, which cannot be undone: fix the cause"

    def sent_of(self, step: StackStep) -> tuple[str, ...] | None:
        """Return what of a stack is sent to it, as Tacker sends it: to heal and to scale change the
        template's values at most; None: everything."""
        if self.kind not in (HEAL, SCALE) or step.before is None or step.after is None:
            return None
        old, new = step.before.as_request(), step.after.as_request()
        return tuple(name for name in ("parameters", "template") if old[name] != new[name])

    @property
    def new_stack(self) -> str:
        """The stack that the VNF is after the change: the same one, unless one is created."""
        created = (step.stack for step in self.stack_steps if step.action is Action.CREATE)
        return next(created, self.stack)

    def last_steps(self, *, back: bool) -> list[StackStep]:
        """Return the step of each stack that decides about it in the end."""
        last: dict[str, StackStep] = {}
        for step in self.steps[::-1] if back else self.steps:
            if isinstance(step, StackStep):
                last.pop(step.stack, None)  # in the order of the last steps, not of the first
                last[step.stack] = step
        return list(last.values())

    def with_ids(self, ids: Mapping[str, str | None]) -> StackPlan:
        """Return the plan with the ids of top resources where its other stacks refer to them: a
        resource that the change itself has created had none when this was planned."""

        def with_known_ids(step: StackStep, body: StackBody | None) -> StackBody | None:
            if body is None or step.stack == self.stack:
                return body
            template = body.template
            if self.is_of_group(step):
                template = hot.with_ids(template, ids)
            parameters = hot.with_ids(body.parameters, ids)
            return replace(body, template=template, parameters=parameters)

        steps = (
            replace(
                step,
                before=with_known_ids(step, step.before),
                after=with_known_ids(step, step.after),
            )
            if isinstance(step, StackStep)
            else step
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))

    def is_of_group(self, step: StackStep) -> bool:
        """Return whether a step's stack is a scaling group's own, with a resource per member."""
        if step.member is None:
            return step.stack != self.stack
        place = self.places.get(step.member.vdu_id)
        return place is not None and place.grouped and place.file is None

    def changes_no_resource(self, step: StackStep) -> bool:
        """Return whether a step only updates what the whole stack says of its members, which are
        what they shall be already."""
        if step.member is not None or step.stack != self.stack or not (step.before and step.after):
            return False
        heads = {place.head for place in self.places.values()}
        old, new = (
            {name: body for name, body in side.template["resources"].items() if name not in heads}
            for side in (step.before, step.after)
        )
        return old == new

    def undo_order(self) -> list[int]:
        """Return the numbers of the steps in the order in which they are undone.

        The last one first, but each VNFC's own stack before its group's, and that before the
        whole: as they were changed, since what contains another stack puts it back to what it has
        stored of it.
        """

        def level(step: AnyStep) -> int:
            if isinstance(step, ScriptStep) or step.member:
                return 0
            return 2 if step.stack == self.stack else 1

        numbers = reversed(range(len(self.steps)))
        if any(step.before is None for step in self.stack_steps):
            return list(numbers)  # Blue-Green: nothing contains anything
        return sorted(numbers, key=lambda number: level(self.steps[number]))

    def overview(self, states: Sequence[StepProgress] = ()) -> str:
        """Return its steps as a status shows them, each with how far it is, where that is known."""
        lines = [f"{self.kind} of stack {self.stack.partition('/')[0]}:"]
        for number, step in enumerate(self.steps):
            state = f"{states[number].state}: " if states else ""
            lines.append(f"  {number + 1}. {state}{step}")
        lines += [f"  unchanged: {key}" for key in self.unchanged]
        return "\n".join(lines)


@dataclass(frozen=True)
class Live:
    """The VNF's stack as it is, as far as a plan needs it."""

    reference: str
    body: StackBody
    members: tuple[VnfcServer, ...]
    """Of the target VDUs, in the order in which they are to change."""
    ids: Mapping[str, str | None] = field(default_factory=dict)
    """The top resources to their physical ids."""
    nested: Mapping[str, StackBody] = field(default_factory=dict)
    """Each member's and each group's stack that is not the top one to its body."""
    updated: Mapping[str, str | None] = field(default_factory=dict)
    """Each of these stacks, and the top one, to its ``updated_time``."""
    timeout_mins: int | None = None
    tags: tuple[str, ...] = ()
    instance_id: str | None = None

    def update(
        self, stack: str, before: StackBody, after: StackBody, reasons: Iterable[str]
    ) -> StackStep:
        """Return the step of a stack as a whole."""
        updated = self.updated.get(stack)
        return StackStep.of(Action.UPDATE, stack, before, after, None, reasons, updated)

    def plan(
        self,
        kind: str,
        places: Mapping[str, Place],
        steps: tuple[AnyStep, ...] = (),
        unchanged: Iterable[VnfcServer] = (),
    ) -> StackPlan:
        """Return a plan for this stack; without steps it has nothing to do."""
        return StackPlan(
            namespace="",
            instance_id=self.instance_id,
            steps=steps,
            unchanged=tuple(map(_server_key, unchanged)),
            kind=kind,
            stack=self.reference,
            members=self.members,
            places=places,
            timeout_mins=self.timeout_mins,
            tags=self.tags,
        )


def blue_green(
    live: Live,
    new: StackBody,
    places: Mapping[str, Place],
    new_name: str,
    scripts: Mapping[str, str],
) -> StackPlan:
    """Plan a new stack beside the old one, the scripts of both, and the deletion of the old one."""
    old_name = live.reference.partition("/")[0]
    vdus = {NEW: list(places), OLD: list(dict.fromkeys(each.vdu_id for each in live.members))}
    reason = f"it takes the place of {old_name}"
    steps: tuple[AnyStep, ...] = (
        StackStep.of(Action.CREATE, new_name, after=new, reasons=[reason]),
        *(
            ScriptStep.of(role, scripts[role], VduChange(vdu_id, live.reference, new_name))
            for role in (NEW, OLD)
            if role in scripts
            for vdu_id in vdus[role]
        ),
        StackStep.of(
            Action.DELETE,
            live.reference,
            before=live.body,
            reasons=["from here on there is no way back"],
        ),
    )
    return live.plan(BLUE_GREEN, places, steps)


def rolling(
    live: Live,
    new: StackBody,
    places: Mapping[str, Place],
    source: str,
    scripts: Mapping[str, str],
) -> StackPlan:
    """Plan the update of one VNFC after the other, each with its script, then of what contains
    them, which changes no server any more: their groups, then the whole stack.

    :raises PackageError: the new templates cannot be taken over VNFC by VNFC.
    """
    steps: list[AnyStep] = []
    unchanged: list[VnfcServer] = []
    added = desired.added_resources(live.body, new, places)
    base = desired.overlay(live.body, new, added, source) if added else live.body
    bodies = {live.reference: base, **live.nested}
    if added:
        reason = f"{', '.join(sorted(added))}: new, and needed before the servers change"
        steps.append(live.update(live.reference, live.body, base, [reason]))
    settled: dict[str, StackBody] = {}
    for member in live.members:
        place, before = places[member.vdu_id], bodies[member.stack]
        after = _after(live, new, member, places, before, source, added)
        if member.group is not None:
            group = settled.get(member.group, live.nested[member.group])
            settled[member.group] = _settle(group, new, member, place, after)
        if _is_as_it_shall_be(live, member, before, after):
            unchanged.append(member)
            continue
        bodies[member.stack] = after  # from which the next VNFC of the same stack begins
        updated = live.updated.get(member.stack)
        steps.append(_member_step(member, before, after, place, updated))
        if NEW in scripts:
            steps.append(member_script(NEW, scripts[NEW], live.reference, member))
    for stack, after in settled.items():
        if not groups.is_settled(bodies[stack], after):
            steps.append(live.update(stack, bodies[stack], after, [SETTLES_GROUP]))
    before, whole = bodies[live.reference], _whole(base, new, places, source)
    if not desired.is_same(before, whole):
        reasons = [SETTLES_STACK, *_beside(before, whole, places)]
        steps.append(live.update(live.reference, before, whole, reasons))
    return live.plan(ROLLING, places, tuple(steps), tuple(unchanged))


def member_script(
    role: str, path: str, stack: str, member: VnfcServer, *, back: bool = False
) -> ScriptStep:
    """Return the step that runs a script for one VNFC of a stack.

    :param back: the change is being undone: the traffic goes back to the old VNFC.
    """
    details = {"back": True} if back else {}
    return ScriptStep.of(
        role, path, VduChange(member.vdu_id, stack, stack, details, resource_id=member.server_id)
    )


def _is_as_it_shall_be(live: Live, member: VnfcServer, before: StackBody, after: StackBody) -> bool:
    if member.deviation:
        return False
    if member.stack == live.reference:  # the rest of the template is a step of its own
        return desired.has_same_resources(before, after)
    return desired.is_same(before, after)


SETTLES_GROUP = "the group stores the definitions of its members, and would restore the old ones"
SETTLES_STACK = "the stack takes over the definitions of its members, which do not change"


def _beside(before: StackBody, whole: StackBody, places: Mapping[str, Place]) -> Iterator[str]:
    """Yield what becomes of resources beside those that contain the servers of the targets."""
    old, new = (hot.bind(side.template["resources"], side) for side in (before, whole))
    both = (old.keys() & new.keys()) - {place.head for place in places.values()}
    for what, names in (
        ("new", new.keys() - old.keys()),
        ("changed", {name for name in both if old[name] != new[name]}),
        ("removed, with all that is in it", old.keys() - new.keys()),
    ):
        if names:
            yield f"{', '.join(sorted(names))}: {what}"


def _member_step(
    member: VnfcServer, before: StackBody, after: StackBody, place: Place, updated: str | None
) -> StackStep:
    name = place.server or member.resource
    if desired.has_same_resources(before, after):
        deviation = f"the server has {member.deviation}, though its stack says otherwise"
        return StackStep.of(
            Action.UPDATE, member.stack, before, after, member, [deviation], updated
        )
    changes, replacement = desired.server_changes(before, after, name)
    action = Action.RECREATE if replacement is desired.Replacement.REPLACED else Action.UPDATE
    reasons = [*changes, replacement.value]
    return StackStep.of(action, member.stack, before, after, member, reasons, updated)


def _settle(
    group: StackBody, new: StackBody, member: VnfcServer, place: Place, after: StackBody
) -> StackBody:
    """Return a group's own stack that says of a VNFC what its own stack is after the change."""
    outer = hot.outer_definition(new, place)
    stored = group.template["resources"][member.name].get("properties") or {}
    names = outer.get("properties") or {}
    values = {name: after.parameters.get(name, stored.get(name, groups.MASKED)) for name in names}
    definition = {**outer, "properties": values}
    return groups.settle(group, [member.name], definition, new.files)


def _after(  # noqa: PLR0913, PLR0917
    live: Live,
    new: StackBody,
    member: VnfcServer,
    places: Mapping[str, Place],
    now: StackBody,
    source: str,
    added: Collection[str],
) -> StackBody:
    """Return a VNFC's stack as the new package says it, after the steps before this one."""
    place = places[member.vdu_id]
    if member.stack == live.reference:
        return desired.overlay(now, new, {place.head}, source)
    if place.file is None:
        return _grouped_server(live, new, member, place, now, added)
    whole = desired.nested_body(place, new, live.body, now, live.ids, added)
    beside = {str(other.server) for other, _ in hot.servers(new) if other.file == place.file}
    if beside == {place.server}:
        return whole
    left = beside - {str(target.server) for target in places.values() if target.file == place.file}
    if not desired.has_same_resources(desired.overlay(now, whole, left, source), now):
        raise PackageError(
            f"{place.file} of {source} also changes {', '.join(sorted(left))}, which are not to "
            "change: list their VDUs in vdu_params, or give each server a file of its own"
        )
    return desired.overlay(now, whole, {str(place.server)}, source)


def _grouped_server(  # noqa: PLR0913, PLR0917
    live: Live,
    new: StackBody,
    member: VnfcServer,
    place: Place,
    now: StackBody,
    added: Collection[str],
) -> StackBody:
    """Return the stack of a group whose members are plain servers: it has a resource for each."""
    definition = hot.with_ids(hot.bind(hot.outer_definition(new, place), new), live.ids)
    if not desired.is_known(definition, added):
        raise PackageError(
            f"resource {place.head}: its members come from other resources of the template and "
            "cannot be updated one by one: put the server into a nested template"
        )
    resources = {**now.template["resources"], member.resource: definition}
    return replace(now, template={**now.template, "resources": resources})


def _whole(old: StackBody, new: StackBody, places: Mapping[str, Place], source: str) -> StackBody:
    """Return the new stack, or the old one with the targets where others do not change."""
    heads = {place.head for place in places.values()}
    if {place.head for place, _ in hot.servers(new)} <= heads:
        return new
    return desired.overlay(old, new, heads, source)
