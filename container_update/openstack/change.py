# SPDX-License-Identifier: Apache-2.0
"""A change of the package on OpenStack, around :mod:`container_update.openstack`.

Source: the specification's "process for OpenStack VIM". Lease, journal, waiting and undo are those
of stacks. The scripts are steps of the plan: VNFC by VNFC in a rolling update, the new VNF, then
the old one in Blue-Green.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from container_update.engine.goals import upgrade_types
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.goals.change_package import coordination_of
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.request_schema import (
    COORDINATE_NEW,
    COORDINATE_OLD,
    EXTERNAL_LB,
)
from container_update.engine.read_packages import check_packages
from container_update.engine.run import operate
from container_update.engine.scripts.coordination import Coordination
from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.outcome import Outcome, Progress, StepResult
from container_update.model.scripts import NEW, ScriptReport, ScriptStep
from container_update.openstack import live
from container_update.openstack import vnfm_records as stack_records
from container_update.openstack.client import Heat, reference
from container_update.openstack.execution.execution import StackExecution
from container_update.openstack.plan import Live, StackPlan
from container_update.openstack.planner import Planner, StackPackages, StackRequest, read_packages
from container_update.openstack.record import StackRecord
from container_update.openstack.stack_instance import StackGoal, StackInstance, instance_id_of
from container_update.openstack.templates.links import EXTERNAL, MANAGED, StackLinks
from container_update.openstack.vnfcs import VnfcServer
from container_update.package import csar
from container_update.package.csar import identities_of
from container_update.records.vnf_records import Records

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenStackTarget:
    """A VNF in a stack of an OpenStack project."""

    service: Heat
    stack: str
    """The VNF's stack, by name or by ``name/id``."""
    flavour_id: str | None = None
    """The deployment flavour; None where the package has but one."""
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a script needs to reach the VIM."""
    vim_type: str = "openstack"

    def change(self, job: ChangeJob, planner: Planner, scripts: Coordination) -> StackChange:
        """Return the change of a job, as a strategy plans it."""
        return StackChange(job, self, planner, scripts)


class StackChange(StackGoal):
    """The change of one job, as a strategy plans it."""

    def __init__(
        self, job: ChangeJob, target: OpenStackTarget, planner: Planner, scripts: Coordination
    ) -> None:
        self.job, self.target = job, target
        self._planner, self._scripts = planner, scripts
        self._plan: StackPlan | None = None
        """What was planned, or what an earlier run had planned."""
        self._live: Live | None = None
        """The stack after the change, once it is finished."""

    def _instance(self, cancel: CancelToken, progress: Progress) -> StackInstance:
        return StackInstance(
            self.target.service,
            self._instance_id,
            self.job.options,
            self._run_script,
            cancel,
            progress,
            leave_failed=self.job.leave_failed,
            stack=self.target.stack,
            scripts=self._scripts.paths,
        )

    @cached_property
    def _instance_id(self) -> str | None:
        return self.job.instance_id or instance_id_of(self.target.service, self.target.stack)

    @cached_property
    def packages(self) -> StackPackages:
        """Both packages, read when they are first needed."""
        job, request, target = self.job, self.job.request, self.target
        with (
            csar.open_package(job.new, options=job.options) as new,
            csar.open_package(job.old, options=job.options) as old,
        ):
            check_packages(request, new, old)
            request.check_vdus(new.vdus(target.flavour_id), target.vim_type)
            identities = identities_of(old, new)
            wanted = StackRequest(
                job.old,
                job.new,
                target.stack,
                request.upgrade_type,
                tuple(vdu.vdu_id for vdu in request.vdu_params),
                self._instance_id,
                target.flavour_id,
                StackLinks.of(request.body, job.instance.get("instantiatedVnfInfo")),
                _nfv(request.body),
                self._scripts.paths,
            )
            return replace(read_packages(wanted, old, new), identities=identities())

    # --- plan and run ---------------------------------------------------------------------------

    def run(self, cancel: CancelToken, progress: Progress) -> Outcome:
        """Recover what an earlier run left, plan, and carry the plan out."""
        return self._with_vnfcs(operate(self, self._instance(cancel, progress)))

    def recover(self, progress: Progress, *, back: bool) -> Outcome | None:
        """Finish what an earlier run left, whatever its goal, or undo it; None where there was
        nothing.

        :raises UpdateFailedError: it could not be finished and was undone.
        :raises UndoIncompleteError: it could not be undone.
        :raises NoWayBackError: the old stack is being deleted: the change can only be finished.
        """
        if not back:
            self.digest()  # a missing package is noticed first
        outcome = self._instance(self._scripts.cancel, progress).recover(
            back=back, go_on=self.carry_out
        )
        return outcome and self._with_vnfcs(outcome)

    def preview(self) -> StackPlan:
        """Return the plan; write nothing."""
        return self.plan(self.target.service)

    def _with_vnfcs(self, outcome: Outcome) -> Outcome:
        """Return an outcome with every VNFC after the change."""
        return replace(outcome, vnfcs=stack_records.vnfcs(self._live_members) if self._live else ())

    # --- what a goal says -----------------------------------------------------------------------

    def digest(self) -> str:
        """See Goal."""
        return self.packages.goal

    def plan(self, service: Heat) -> StackPlan:
        """See Goal."""
        plan = self._planner(self.packages, service)
        self._plan = replace(plan, packages=self.packages.identities)
        return self._plan

    def context(self) -> Json:
        """See Goal."""
        job, body = self.job, self.job.request.body
        request = _without_inputs(body)
        return {
            "old": job.old,
            "new": job.new,
            "flavourId": self.target.flavour_id,
            "request": request,
            "isComplete": request == body,
        }

    def carry_out(self, execution: StackExecution) -> tuple[StepResult, ...]:
        """See Goal."""
        results = super().carry_out(execution)
        self._plan = execution.record.plan
        self._live = live.after(self.target.service, self._plan)
        return results

    # --- scripts --------------------------------------------------------------------------------

    def _run_script(self, step: ScriptStep, execution: StackExecution) -> ScriptReport | None:
        """Run a script of the plan, or of its undo, for the VNFCs that it is about.

        :raises CoordinationError: it failed, or was stopped.
        """
        self._scripts.operation = execution.record.operation
        vnfcs = [self._vnfc_details(each, step.role) for each in self._members(step, execution)]
        if not vnfcs:
            return None
        # the addresses were read meanwhile: another host may have taken over
        execution.journal.confirm()
        vdu = replace(
            step.vdu,
            details={"back": False, **step.vdu.details, "vnfcs": vnfcs},
            ssh_ips={step.role: ip} if (ip := vnfcs[0]["ssh_ip"]) else {},
        )
        report = self._scripts.run(replace(step, vdu=vdu))
        if report is not None and report.status != 0:
            raise errors.CoordinationError(f"it was stopped {self._scripts.cancel.reason}")
        return report

    def _members(self, step: ScriptStep, execution: StackExecution) -> Sequence[VnfcServer]:
        """Return the VNFCs that a script is about; none where its stack was never created."""
        plan, vdu = execution.record.plan, step.vdu
        if vdu.resource_id:
            return [each for each in plan.members if each.server_id == vdu.resource_id]
        stack = self.target.service.stack(_stack_of(step))
        if stack is None:
            return ()
        members = plan.members
        if reference(stack) != plan.stack:
            body = live.body_of(self.target.service, reference(stack))
            members = live.read(self.target.service, stack, body, plan.places).members
        return [member for member in members if member.vdu_id == vdu.vdu_id]

    def _vnfc_details(self, member: VnfcServer, role: str) -> Json:
        return {
            "name": member.name,
            "server_id": member.server_id,
            "addresses": {port: self._addresses(member.stack, port) for port in member.ports},
            "ssh_ip": self._ssh_ip(member, role),
        }

    def _ssh_ip(self, member: VnfcServer, role: str) -> str | None:
        """Return the address of the connection point that the request names, as Tacker finds it;
        None where it has none, which only the script can judge."""
        request = self.job.request
        cp_name = request.vnfc_param(member.vdu_id, role).get("cp_name")
        if cp_name is None or role not in request.scripts:
            return None
        addresses = self._addresses(member.stack, cp_name)
        if not addresses:
            LOG.warning(
                "%s: its connection point %s has no address, so that the script of the %s VNF gets "
                "no ssh_ip: its stack has the ports %s; check cp_name in vdu_params",
                *(member, cp_name, role, ", ".join(member.ports) or "(none)"),
            )
        return next(iter(addresses), None)

    def _addresses(self, stack: str, name: str) -> list[str]:
        """Return the address of a floating IP, or the fixed ones of a port."""
        resource = self.target.service.resource(stack, name) or {}
        attributes = resource.get("attributes") or {}
        if floating := attributes.get("floating_ip_address"):
            return [str(floating)]
        return [str(address["ip_address"]) for address in attributes.get("fixed_ips") or ()]

    # --- what became of it ----------------------------------------------------------------------

    def records(self) -> Records:
        """Return the attributes that the specification lists for this way of changing."""
        before = self._plan.members if self._plan else ()
        after = self._live.members if self._live else before
        stack_id = self._live.reference.rpartition("/")[2] if self._live else None
        return stack_records.records(
            self.packages.vnfd_id, before, after, self._live_members, stack_id
        )

    @cached_property
    def _live_members(self) -> Sequence[VnfcServer]:
        """The live VNFCs of every VDU, target or not, after the change."""
        name = self._live.reference if self._live else self.target.stack
        stack = live.find(self.target.service, name)
        return live.members_of(self.target.service, stack, self.packages.all_vdus)


def _stack_of(step: ScriptStep) -> str:
    """Return the stack of the VNF that a script is about."""
    return step.vdu.new_resource if step.role == NEW else step.vdu.old_resource


def _nfv(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a request gives for the parameter ``nfv`` of Heat templates."""
    given = (body.get("additionalParams") or {}).get("nfv")
    return given if isinstance(given, Mapping) else {}


def _without_inputs(body: Mapping[str, Any]) -> Json:
    """Return a request without what only its scripts use, which may be passwords."""
    params = body["additionalParams"]
    scripts = (COORDINATE_NEW, COORDINATE_OLD)
    names = ("upgrade_type", *scripts, *(f"{name}-class" for name in scripts))
    kept = {name: params[name] for name in names if name in params}
    if EXTERNAL_LB in params and not params[EXTERNAL_LB]:
        kept[EXTERNAL_LB] = params[EXTERNAL_LB]  # there is none
    if "vdu_params" in params:
        given = params["vdu_params"]
        vdus = [given] if isinstance(given, Mapping) else given
        kept["vdu_params"] = vdus and [{"vdu_id": vdu["vdu_id"]} for vdu in vdus]
    links = {name: body[name] for name in (EXTERNAL, MANAGED) if name in body}
    return {"vnfdId": body["vnfdId"], "additionalParams": kept, **links}


# --- what was interrupted -----------------------------------------------------------------------


def recover_change(
    job: ChangeJob,
    target: OpenStackTarget,
    scripts: Coordination,
    progress: Progress = lambda _: None,
    *,
    back: bool,
) -> Outcome | None:
    """Finish or undo what an earlier run of a job left; see :meth:`StackChange.recover`."""
    planner = upgrade_types.find(target.vim_type, job.request.upgrade_type)
    return target.change(job, planner, scripts).recover(progress, back=back)


def recover_stack(
    instance: StackInstance,
    target: OpenStackTarget,
    cancel: CancelToken,
    request: Mapping[str, Any] | None = None,
    *,
    back: bool,
) -> tuple[Outcome | None, Sequence[ScriptReport]]:
    """Finish or undo what was interrupted. The packages of a change have to be where they were.

    :param request: the change's request again, where its scripts need passwords: the journal holds
        none.
    :param back: undo it.
    :returns: what became of it, None where there was nothing; and the runs of its scripts.
    :raises PackageError: a package is not there, or the request is needed; nothing was done.
    :raises UpdateFailedError: it could not be finished and was undone.
    :raises UndoIncompleteError: it could not be undone.
    :raises NoWayBackError: the old stack is being deleted: the change can only be finished.
    """
    record = instance.read()
    if record is None:
        return None, ()
    if not record.context:  # an operation of the service: its steps say all
        return replace(instance, cancel=cancel).recover(back=back), ()
    job, target = _job(instance, record, target, request)
    scripts = coordination_of(job, target, cancel)
    outcome = recover_change(job, target, scripts, instance.progress, back=back)
    return outcome, scripts.reports


def _job(
    instance: StackInstance,
    record: StackRecord,
    target: OpenStackTarget,
    given: Mapping[str, Any] | None,
) -> tuple[ChangeJob, OpenStackTarget]:
    context, given_params = record.context, (given or {}).get("additionalParams") or {}
    # the journal keeps what came from options of the command line, which the request lacks
    kept = context["request"]
    params = {**given_params, **kept["additionalParams"]}
    if "vdu_params" in given_params:
        params["vdu_params"] = given_params["vdu_params"]
    body = {**(given or {}), **kept, "additionalParams": params}
    has_scripts = params.get(COORDINATE_NEW) or params.get(COORDINATE_OLD)
    if has_scripts and given is None and not context["isComplete"]:
        raise errors.PackageError(
            f"operation {record.operation}: expected the request of this change again: its "
            "coordination scripts read more of it than the journal holds (passwords)"
        )
    job = ChangeJob(
        ChangeRequest.of(body, target.vim_type),
        context["old"],
        context["new"],
        instance.instance_id,
        instance.options,
        instance.leave_failed,
    )
    return job, replace(target, flavour_id=context["flavourId"])
