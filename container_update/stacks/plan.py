"""What will be done to a VNF's stacks, in order, with reasons. Pure: no call leaves it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from container_update.model.errors import PackageError
from container_update.package import hot
from container_update.package.hot import Body, Place
from container_update.stacks.desired import Fate, is_same, mixed, nested, server_changes
from container_update.stacks.vnfcs import Member


class Action(enum.Enum):
    """What a step does."""

    CREATE = "create stack"
    UPDATE = "update"
    """A stack, whose servers stay what they are or are rebuilt or resized in place."""
    REPLACE = "replace the server"
    """A stack, by which Heat makes a server anew."""
    COORDINATE_NEW = "coordinate the new VNF"
    COORDINATE_OLD = "coordinate the old VNF"
    DELETE = "delete stack"


UPDATES = frozenset({Action.UPDATE, Action.REPLACE})
"""What is done by an update of a stack."""


@dataclass(frozen=True)
class Step:
    """One thing to do, with what is needed to do it, explain it and undo it."""

    action: Action
    stack: str
    """The stack's reference; for a creation the new stack's name."""
    before: Body | None = None
    after: Body | None = None
    member: Member | None = None
    """The VNFC that it is about; None: the stack as a whole."""
    reasons: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is about, for people."""
        return str(self.member) if self.member else f"stack {self.stack_name}"

    @property
    def stack_name(self) -> str:
        """The stack without its id."""
        return self.stack.partition("/")[0]

    def __str__(self) -> str:
        because = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.title}: {self.action.value}{because}"


@dataclass(frozen=True)
class StackPlan:
    """All that will be done."""

    upgrade_type: str
    """``Blue-Green`` or ``RollingUpdate``."""
    stack: str
    """The reference of the stack that the VNF is now."""
    steps: tuple[Step, ...]
    unchanged: tuple[Member, ...] = ()
    """VNFCs of the target VDUs that are as the new package says already."""
    members: tuple[Member, ...] = ()
    """Every VNFC of the target VDUs as it is before."""

    places: Mapping[str, Place] = field(default_factory=dict)
    """Target VDU to where its server stands in the new templates."""

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not self.steps

    def __str__(self) -> str:
        lines = [f"{self.upgrade_type} of stack {self.stack.partition('/')[0]}:"]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        lines += [f"  unchanged: {member}" for member in self.unchanged]
        return "\n".join(lines)


@dataclass(frozen=True)
class Live:
    """The VNF's stack as it is, as far as a plan needs it."""

    reference: str
    body: Body
    members: tuple[Member, ...]
    """Of the target VDUs, in the order in which they are to change."""
    ids: Mapping[str, str | None] = field(default_factory=dict)
    """The top resources to their physical ids."""
    nested: Mapping[str, Body] = field(default_factory=dict)
    """Each member's stack that is not the top one to its body."""


def blue_green(live: Live, new: Body, places: Mapping[str, Place], new_name: str) -> StackPlan:
    """The new stack beside the old one, both coordinated, the old one deleted."""
    old_name = live.reference.partition("/")[0]
    steps = (
        Step(Action.CREATE, new_name, after=new, reasons=(f"takes the place of {old_name}",)),
        Step(Action.COORDINATE_NEW, new_name),
        Step(Action.COORDINATE_OLD, live.reference),
        Step(
            Action.DELETE, live.reference, before=live.body, reasons=("from here on no way back",)
        ),
    )
    return StackPlan("Blue-Green", live.reference, steps, members=live.members, places=places)


def rolling(live: Live, new: Body, places: Mapping[str, Place], source: str) -> StackPlan:
    """One VNFC after the other, coordinated each; then the stack as a whole, so that it says what
    its members are.

    :param places: target VDU to where its server stands in the new templates.
    :param source: the new package, for messages.
    :raises PackageError: the new templates cannot be taken over VNFC by VNFC.
    """
    steps: list[Step] = []
    unchanged: list[Member] = []
    bodies = {live.reference: live.body, **live.nested}
    for member in live.members:
        place, before = places[member.vdu_id], bodies[member.stack]
        after = _after(live, new, member, place, before, source)
        if is_same(before, after):
            unchanged.append(member)
            continue
        bodies[member.stack] = after
        steps += _member_steps(member, before, after, place)
    whole = _whole(live.body, new, places, source)
    if not is_same(bodies[live.reference], whole):
        before = bodies[live.reference]
        reason = "the stack says what its members are; nothing of them changes"
        steps.append(Step(Action.UPDATE, live.reference, before, whole, reasons=(reason,)))
    return StackPlan(
        "RollingUpdate", live.reference, tuple(steps), tuple(unchanged), live.members, places
    )


def _member_steps(member: Member, before: Body, after: Body, place: Place) -> Iterable[Step]:
    name = member.resource if place.server is None else place.server
    reasons, fate = server_changes(before, after, name)
    action = Action.REPLACE if fate is Fate.REPLACED else Action.UPDATE
    yield Step(action, member.stack, before, after, member, (*reasons, fate.value))
    yield Step(Action.COORDINATE_NEW, member.stack, member=member)


def _after(  # noqa: PLR0913, PLR0917
    live: Live, new: Body, member: Member, place: Place, now: Body, source: str
) -> Body:
    """A member's stack, as it is by then, with this member as the new package says it."""
    if member.stack == live.reference:
        return mixed(now, new, {place.head}, source)
    if place.file is None:
        return _grouped_server(new, member, place, now)
    whole = nested(place, new, live.body, now, live.ids)
    beside = {other.server for other, _ in hot.servers(new) if other.file == place.file}
    if beside == {place.server}:
        return whole
    return mixed(now, whole, {str(place.server)}, source)


def _grouped_server(new: Body, member: Member, place: Place, now: Body) -> Body:
    """A group whose members are servers without a template of their own: the group's own stack
    has a resource for each."""
    values = hot.effective_parameters(new)
    definition = hot.bind(hot.outer_definition(new, place), values, set(values))
    if not hot.is_literal(definition):
        raise PackageError(
            f"resource {place.head}: its members come from other resources of the template and "
            "cannot be updated one by one: put the server into a nested template"
        )
    resources = {**now.template["resources"], member.resource: definition}
    return replace(now, template={**now.template, "resources": resources})


def _whole(old: Body, new: Body, places: Mapping[str, Place], source: str) -> Body:
    """The new stack; only the targets' part of it where there are VDUs that are not to change."""
    heads = {place.head for place in places.values()}
    if {place.head for place, _ in hot.servers(new)} <= heads:
        return new
    return mixed(old, new, heads, source)
