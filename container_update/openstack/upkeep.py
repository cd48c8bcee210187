# SPDX-License-Identifier: Apache-2.0
"""Heal and scale a VNF's stack, whose package stays.

Servers are marked unhealthy, and the next update of the stack replaces them; a scaling group gets
another size. Both are one PATCH of the top stack, as Tacker sends it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from container_update.model.errors import NextStep, PlanError
from container_update.model.options import Options
from container_update.model.plan import Action
from container_update.openstack import live, vnfcs
from container_update.openstack.client import Heat, heat_minutes, reference, state_sentence
from container_update.openstack.plan import HEAL, SCALE, Live, StackPlan, StackStep
from container_update.openstack.stack_instance import StackGoal
from container_update.openstack.templates import groups
from container_update.package import hot
from container_update.package.hot import Place


@dataclass(frozen=True)
class _StackUpkeep(StackGoal):
    stack: str
    """The VNF's stack, in whatever state."""
    vdus: Mapping[str, str]
    """VDU id to its name."""
    options: Options
    request_id: str
    """Two tries of one request have the same."""

    def digest(self) -> str:
        """See Goal."""
        return f"{type(self).__name__} {self.request_id}"

    def plan(self, service: Heat) -> StackPlan:
        """See Goal."""
        stack = service.stack(self.stack)
        if stack is None:
            raise PlanError(f"there is no stack {self.stack}: another client deleted it")
        if str(stack["stack_status"]).endswith("_IN_PROGRESS"):
            raise PlanError(f"{state_sentence(stack)}: wait until this has ended",
                            next_step=NextStep.RETRY)  # fmt: skip
        top, updated = reference(stack), stack.get("updated_time")
        body = live.body_of(service, top)
        places = hot.places_in(body, self.vdus)
        members = vnfcs.members(service.resources(top, live.DEPTH), top, places)
        # what is sent stays the stack's limit
        limit = heat_minutes(self.options.timeout)
        tags = tuple(stack.get("tags") or ())
        state = Live(top, body, members, updated={top: updated}, timeout_mins=limit, tags=tags)
        return self.plan_for(state, places)

    @abstractmethod
    def plan_for(self, state: Live, places: Mapping[str, Place]) -> StackPlan:
        """Return the plan for a live stack."""


@dataclass(frozen=True)
class StackHeal(_StackUpkeep):
    """Other servers in place of some."""

    server_ids: Iterable[str]
    """Those that are gone already are left out: an earlier try replaced them."""
    with_storage: bool
    """Their volumes are replaced too."""

    def plan_for(self, state: Live, places: Mapping[str, Place]) -> StackPlan:  # noqa: ARG002
        """See Goal."""
        asked, replaced, reasons = set(self.server_ids), [], []
        for server in state.members:
            if server.server_id in asked:
                replaced.append((server.stack, server.resource, server.server_id))
                volumes = server.volumes if self.with_storage else {}
                replaced += [(server.stack, name, id_) for name, id_ in volumes.items()]
                reasons.append(f"{server} is replaced")
        step = state.update(state.reference, state.body, state.body, reasons)
        return state.plan(HEAL, {}, (replace(step, replaced=tuple(replaced)),))


@dataclass(frozen=True)
class Renew(_StackUpkeep):
    """The same stack anew, with other servers and volumes, as Tacker heals all of a VNF."""

    def plan_for(self, state: Live, places: Mapping[str, Place]) -> StackPlan:  # noqa: ARG002
        """See Goal."""
        name = state.reference.partition("/")[0]
        hidden = sorted(state.body.hidden)
        if hidden:
            raise PlanError(
                f"stack {state.reference}: Heat does not tell the values of its hidden parameters "
                f"({', '.join(hidden)}), so that it cannot be created anew: heal it without "
                "additionalParams.all, or terminate and instantiate it"
            )
        old, new = "from here on there is no way back", "it gets what it had"
        steps = (
            StackStep.of(Action.DELETE, state.reference, state.body, reasons=[old]),
            StackStep.of(Action.CREATE, name, after=state.body, reasons=[new]),
        )
        return state.plan(HEAL, {}, steps)


@dataclass(frozen=True)
class StackScale(_StackUpkeep):
    """Other sizes for some scaling groups."""

    numbers: Mapping[str, int]
    """VDU id to the number of its servers."""

    def plan_for(self, state: Live, places: Mapping[str, Place]) -> StackPlan:
        """See Goal."""
        now = {vdu: [m for m in state.members if m.vdu_id == vdu] for vdu in self.numbers}
        numbers = {vdu: n for vdu, n in self.numbers.items() if n != len(now[vdu])}
        if not numbers:
            return state.plan(SCALE, {})
        after = groups.resize(state.body, places, numbers)
        reasons = [f"{vdu}: {len(now[vdu])} -> {number}" for vdu, number in numbers.items()]
        step = state.update(state.reference, state.body, after, reasons)
        return state.plan(SCALE, {vdu: places[vdu] for vdu in numbers}, (step,))
