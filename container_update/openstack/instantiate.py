# SPDX-License-Identifier: Apache-2.0
"""Create the stack that a package describes, and delete the VNF's stacks again.

For the service and small sites; Tacker instantiates and terminates by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.model.outcome import StepResult
from container_update.model.plan import Action
from container_update.openstack import live
from container_update.openstack.client import Heat, heat_minutes, reference
from container_update.openstack.execution.execution import StackExecution
from container_update.openstack.plan import INSTANTIATE, TERMINATE, StackPlan, StackStep
from container_update.openstack.planner import flavour_of
from container_update.openstack.stack_instance import StackGoal
from container_update.openstack.templates import desired, groups
from container_update.openstack.templates.desired import VnfdSoftware
from container_update.openstack.templates.links import StackLinks
from container_update.package import csar, hot, hot_files
from container_update.package.hot import StackBody


def described_by(  # noqa: PLR0913
    package: str,
    flavour_id: str,
    given: Mapping[str, Any],
    options: Options,
    *,
    links: StackLinks = StackLinks(),  # noqa: B008, frozen
    sizes: Mapping[str, int] = {},
) -> StackBody:
    """Return the stack that a package describes.

    :param sizes: VDU id to the number of its servers, for those in a scaling group; a parameter
        that is given takes precedence.
    :raises PackageError: the package is wrong, or has no such parameters.
    """
    with csar.open_package(package, options=options) as opened:
        return stack_of(opened, flavour_id, given, links=links, sizes=sizes)


def stack_of(
    package: csar.Csar,
    flavour_id: str,
    given: Mapping[str, Any],
    *,
    links: StackLinks = StackLinks(),  # noqa: B008, frozen
    sizes: Mapping[str, int] = {},
) -> StackBody:
    """Return the stack that an opened package describes, as :func:`described_by` does."""
    flavour = flavour_of(package, flavour_id)
    body = links.apply_to(hot_files.base_hot(package, flavour.id))
    places = {
        vdu_id: hot.place_of(body, vdu_id, name, package.source)
        for vdu_id, name in flavour.vdus.items()
    }
    software = VnfdSoftware(flavour.images, flavour.compute_flavours)
    body = desired.initial_stack(body, given, places, software, points=links.points(), sizes=sizes)
    grouped = {vdu: size for vdu, size in sizes.items() if vdu in places and places[vdu].grouped}
    for vdu, size in sizes.items():
        if size > 1 and vdu in places and vdu not in grouped:
            raise PackageError(
                f"instantiationLevelId: expected at most 1 instance of {vdu}, whose server is "
                f"in no scaling group of the top template, found {size}: choose another level, "
                "or put it into an OS::Heat::AutoScalingGroup"
            )
    sized = groups.resize(body, places, grouped)
    asked = {name: value for name, value in body.parameters.items() if name in given}
    return replace(sized, parameters={**sized.parameters, **asked})


def refuse_ungrouped(package: csar.Csar, flavour_id: str | None, vdus: Iterable[str]) -> None:
    """Refuse VDUs whose servers are in no scaling group; PlanError names the first one."""
    flavour = flavour_of(package, flavour_id)
    places = hot.places_in(hot_files.base_hot(package, flavour.id), flavour.vdus)
    for vdu in vdus:
        groups.grouped_place(places, vdu)


@dataclass(frozen=True)
class Instantiate(StackGoal):
    """A stack, instead of one that an earlier try has left without a journal."""

    name: str
    body: StackBody
    options: Options
    request_id: str
    """Two tries of one request have the same."""

    def digest(self) -> str:
        """See Goal."""
        return f"Instantiate {self.request_id}"

    def plan(self, service: Heat) -> StackPlan:
        """See Goal."""
        create = StackStep.of(Action.CREATE, self.name, after=self.body)
        steps = () if self._is_there(service) else (create,)
        limit = heat_minutes(self.options.timeout)
        how: dict[str, Any] = {"kind": INSTANTIATE, "stack": self.name, "timeout_mins": limit}
        return StackPlan("", None, steps, **how)

    def carry_out(self, execution: StackExecution) -> tuple[StepResult, ...]:
        """Put back what the journal holds no values of, hidden parameters; see Goal."""
        plan = execution.record.plan
        steps = tuple(replace(step, after=self.body) for step in plan.stack_steps)
        execution.record = replace(execution.record, plan=replace(plan, steps=steps))
        return super().carry_out(execution)

    def _is_there(self, service: Heat) -> bool:
        stack = service.stack(self.name)
        return (
            stack is not None
            and str(stack["stack_status"]) == "CREATE_COMPLETE"
            and not self.body.hidden  # their values cannot be compared
            and desired.is_same(live.body_of(service, reference(stack)), self.body)
        )


@dataclass(frozen=True)
class Terminate(StackGoal):
    """Nothing: every stack of the VNF is deleted, also what a failed change has left."""

    name: str
    """Of its first stack."""

    ends_vnf = True

    def digest(self) -> str:
        """See Goal."""
        return "Terminate"

    def plan(self, service: Heat) -> StackPlan:
        """See Goal."""
        stacks = sorted(map(reference, live.stacks_of(service, self.name)))
        steps = tuple(StackStep.of(Action.DELETE, stack) for stack in stacks)
        return StackPlan("", None, steps, kind=TERMINATE, stack=self.name)
