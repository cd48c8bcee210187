"""The kinds of step of a plan for a stack; :mod:`container_update.stacks.execute` does them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from container_update.model.objects import ObjectKey
from container_update.model.plan import Action, Reason, Stage, Step
from container_update.package.hot import Body
from container_update.stacks.vnfcs import VnfcServer


@dataclass(frozen=True)
class StackStep(Step):
    """Create, update or delete a stack, with what is needed to undo it."""

    stack: str
    """The stack's reference; for a creation the new stack's name."""
    before: Body | None = field(default=None, repr=False)
    after: Body | None = field(default=None, repr=False)
    member: VnfcServer | None = None
    """The VNFC that it is about; None: the stack as a whole."""

    @classmethod
    def of(  # noqa: PLR0913, PLR0917
        cls,
        action: Action,
        stack: str,
        before: Body | None = None,
        after: Body | None = None,
        member: VnfcServer | None = None,
        reasons: Iterable[str] = (),
    ) -> StackStep:
        """Return the step; its key is the VNFC's, or else the stack's."""
        why = tuple(Reason(text) for text in reasons)
        return cls(_key(stack, member), action, stack, before, after, member, reasons=why)

    @property
    def stage(self) -> Stage:
        """By what is done."""
        return Stage.REMOVE if self.action is Action.DELETE else Stage.OBJECTS

    def __str__(self) -> str:
        because = f": {'; '.join(map(str, self.reasons))}" if self.reasons else ""
        return f"{self.key}: {self.action.value}{because}"


@dataclass(frozen=True)
class ScriptStep(Step):
    """Run a coordination script of the request, where it has one."""

    stack: str
    """The reference of the stack that the script is about."""
    role: str
    """``new`` or ``old``: which of the request's two scripts."""
    member: VnfcServer | None = None
    """The VNFC that it is about; None: the stack as a whole."""
    back: bool = False
    """The change is being undone: traffic goes back to the old VNF. Never so in a plan."""

    @classmethod
    def of(
        cls, role: str, stack: str, member: VnfcServer | None = None, *, back: bool = False
    ) -> ScriptStep:
        """Return the step; its key is the VNFC's, or else the stack's."""
        return cls(_key(stack, member), Action.COORDINATE, stack, role, member, back)

    @property
    def stage(self) -> Stage:
        """Among the steps for the stacks."""
        return Stage.OBJECTS

    def __str__(self) -> str:
        return f"{self.key}: {self.action.value} the {self.role} VNF"


AnyStep = StackStep | ScriptStep

Coordinator = Callable[[ScriptStep], object]
"""Runs a coordination script of the request, where it has one; ContainerUpdateError: it failed."""


def server_key(member: VnfcServer) -> ObjectKey:
    """Return the key of a VNFC's server in a plan."""
    return ObjectKey("openstack", "Server", "", str(member))


def _key(stack: str, member: VnfcServer | None) -> ObjectKey:
    if member is not None:
        return server_key(member)
    return ObjectKey("openstack", "Stack", "", stack.partition("/")[0])
