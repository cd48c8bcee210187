# SPDX-License-Identifier: Apache-2.0
"""What every step has that writes one object of a cluster."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, Plan, Step
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.registry import is_workload, kind_of


@dataclass(frozen=True)
class ObjectStep(Step):
    """A step that creates, changes or deletes one object.

    The questions about a live object are about its state at that time: ``is_applied`` before the
    step is repeated, ``is_untouched`` before it is written, ``is_own`` and ``is_restored`` before
    it is restored.
    """

    before: Json | None = field(repr=False)
    """The live object that the plan was made from; None where there is none."""

    @property
    def starts_pods(self) -> bool:
        """See Step."""
        starts_none = self.is_removal or self.action is Action.HAND_OVER
        return is_workload(self.key) and not starts_none

    @property
    def old(self) -> Json:
        """The live object that the plan was made from, of a step that creates none."""
        assert self.before is not None, "what was created is deleted, not restored"
        return self.before

    @abstractmethod
    def with_change(self, live: Json) -> Json:
        """Return the live object as the step wants it, with the resourceVersion that was read."""

    @abstractmethod
    def without_change(self, live: Json) -> Json:
        """Return the live object with everything that the step writes as it was before."""

    @abstractmethod
    def is_same(self, one: Json, other: Json) -> bool:
        """Tell whether two states of the object agree in everything that the step writes."""

    @property
    def is_of_new_object(self) -> bool:
        """Its object is there only when an earlier step of the plan has created it."""
        return self.before is not None and "uid" not in self.before["metadata"]

    def is_applied(self, live: Json) -> bool:
        """Tell whether the live object, or a pod of it, is as the step wants it."""
        return self.is_same(self.with_change(live), live)

    def is_restored(self, live: Json) -> bool:
        """Tell whether the live object is as it was before the step."""
        return self.is_same(self.without_change(live), live)

    def is_untouched(self, live: Json) -> bool:
        """Tell whether no other client has changed what the step changes since the plan."""
        uid = live["metadata"]["uid"]
        same_object = self.old["metadata"].get("uid", uid) == uid
        return same_object and self.is_same(self.old, live)

    def loss(self, written: Json, live: Json) -> str:
        """Return what another client took away of what the step wrote, '' where nothing.

        Only what the server stored of the step counts: admission may have changed some of it.

        :param written: the object as the server stored it.
        """
        if self.is_applied(written) and not self.is_applied(live):
            return "was changed by another client after it was written"
        return end_of(written, live)

    def loss_of_restored(self, written: Json, live: Json) -> str:
        """Return, as :meth:`loss`, what another client took away of what an undo wrote."""
        if self.is_restored(written) and not self.is_restored(live):
            return "was changed by another client after it was put back"
        return end_of(written, live)

    def is_own(self, live: Json) -> bool:
        """Tell whether what the step wrote is there to be restored."""
        return self.is_applied(live)

    def has_traces(self, live: Json) -> bool:
        """Tell whether anything that the step writes is in the live object."""
        return self.is_own(live)


def end_of(written: Json, live: Json) -> str:
    """Return how another client undid the write: the object is gone, or has no pods any more."""
    if live["metadata"]["uid"] != written["metadata"]["uid"]:
        return "was deleted and created again by another client"
    if is_deleting(live):
        return "is being deleted by another client"
    kind = kind_of(ObjectKey.of(live))
    stopped = kind.why_stopped(written, live) if kind is not None else ""
    return f"was stopped by another client: {stopped}" if stopped else ""


def object_steps(plan: Plan) -> tuple[ObjectStep, ...]:
    """Return the steps of a plan that write objects: all of them, in a plan for a cluster."""
    return tuple(step for step in plan.steps if isinstance(step, ObjectStep))
