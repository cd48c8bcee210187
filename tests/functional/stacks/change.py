# SPDX-License-Identifier: Apache-2.0
"""Change the package of a stack's VNF as every host does, with a callable in place of scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from container_update import CancelToken, ChangeRequest, Options, ScriptStep
from tests.internals.core import (
    Changed,
    ChangeJob,
    OpenStackTarget,
    change_package,
    coordination,
    csar,
    upgrade_types,
)
from tests.internals.stacks import (
    Heat,
    StackPackages,
    StackPlan,
    StackRequest,
    StackScript,
    VnfcServer,
    read_packages,
)

NEW_VNFD = "vnfd-new"

Script = Callable[[StackScript], object]


def change(
    request: StackRequest,
    service: Heat,
    options: Options,
    *,
    coordinate: Script = lambda _: None,
    cancel: CancelToken | None = None,
    leave_failed: bool = False,
) -> Changed:
    """Change the package; the callable replaces the request's scripts."""
    body = {
        "vnfdId": NEW_VNFD,
        "additionalParams": {
            "upgrade_type": request.upgrade_type,
            "vdu_params": [{"vdu_id": vdu_id} for vdu_id in request.vdu_ids],
        },
    }
    job = ChangeJob(
        ChangeRequest.of(body),
        request.old,
        request.new,
        request.instance_id,
        options,
        leave_failed,
    )
    target = OpenStackTarget(service, request.stack, request.flavour_id)
    scripts = Scripts(job, {}, cancel or CancelToken(), coordinate=coordinate)
    return change_package.run_change(job, target, cancel, scripts=scripts)


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
    def roles(self) -> frozenset[str]:
        """Both."""
        return frozenset({"new", "old"})

    def run(self, step: ScriptStep) -> None:
        """Call the callable with the script's context; for a whole stack without a VNFC."""
        role, target = step.role, step.vdu
        details: Any = target.details
        stack = target.new_resource if role == "new" else target.old_resource
        member = None
        if target.new_resource == target.old_resource:
            (vnfc,) = details["vnfcs"]
            member = VnfcServer(target.vdu_id, stack, "", vnfc["server_id"], vnfc["name"])
        self.coordinate(StackScript.of(role, stack, member, back=details["back"]))
