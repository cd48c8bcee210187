# SPDX-License-Identifier: Apache-2.0
"""Change the package of a stack's VNF as every host does, with a callable in place of scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update import ChangePackageRequest, Options, ScriptStep
from tests.functional.changed import Changed, in_stack
from tests.internals.core import (
    StackChange,
    coordination,
    csar,
    upgrade_types,
)
from tests.internals.stacks import (
    Heat,
    StackPackages,
    StackPlan,
    StackRequest,
    VnfcServer,
    read_packages,
)

NEW_VNFD = "vnfd-new"

PATHS = {"new": "Scripts/new.py", "old": "Scripts/old.py"}
"""The scripts in whose place a callable is called."""


@dataclass(frozen=True)
class Call:
    """A call in place of a script."""

    role: str
    stack: str
    """By name or reference."""
    member: VnfcServer | None
    """The VNFC that it is about; None: all of a VDU."""
    back: bool
    """The traffic goes back to the old VNF."""

    @classmethod
    def of(cls, step: ScriptStep) -> Call:
        """Return the call for a step as it runs."""
        vdu = step.vdu
        stack = vdu.new_resource if step.role == "new" else vdu.old_resource
        # only the server's id: a step that comes from the journal has no more
        id_ = vdu.resource_id
        member = VnfcServer(vdu.vdu_id, stack, "", id_, "") if id_ else None
        return cls(step.role, stack, member, bool(vdu.details.get("back")))


Script = Callable[[Call], object]


def change(
    request: StackRequest,
    service: Heat,
    options: Options,
    *,
    coordinate: Script = lambda _: None,
    **how: Any,
) -> Changed:
    """Change the package; the callable replaces the request's scripts."""
    body = {
        "vnfdId": NEW_VNFD,
        "additionalParams": {
            "upgrade_type": request.upgrade_type,
            "vdu_params": [{"vdu_id": vdu_id} for vdu_id in request.vdu_ids],
        },
    }
    asked = ChangePackageRequest(body, request.old, request.new, instance_id=request.instance_id)
    goal = StackChange(asked, service, request.stack, options, flavour_id=request.flavour_id)
    scripts = Scripts(goal.coordination.about, goal.coordination.packages, options)
    scripts.coordinate = coordinate
    goal.coordination = scripts
    return in_stack(goal, **how)


def plan_change(request: StackRequest, service: Heat) -> StackPlan:
    """Return the plan with everything that only the stack's side knows of it."""
    planner = upgrade_types.find("openstack", request.upgrade_type)
    plan: StackPlan = planner(read(request), service)
    return plan


def read(request: StackRequest) -> StackPackages:
    """Read the packages of a request."""
    with csar.open_package(request.old) as old, csar.open_package(request.new) as new:
        return read_packages(request, old, new)


@dataclass
class Scripts(coordination.Coordination):
    """Coordination by a callable instead of scripts."""

    coordinate: Script = lambda _: None

    @property
    def paths(self) -> Mapping[str, str]:
        """Both."""
        return PATHS

    def run(self, step: ScriptStep) -> None:
        """Call the callable in place of a script."""
        self.coordinate(Call.of(step))
