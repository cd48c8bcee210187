# SPDX-License-Identifier: Apache-2.0
"""A change of the package on OpenStack, around :mod:`container_update.openstack`.

Source: the specification's "process for OpenStack VIM". Lease, journal, waiting and undo are those
of stacks. The scripts are steps of the plan: VNFC by VNFC in a rolling update, the new VNF, then
the old one in Blue-Green.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from container_update.engine.goals import upgrade_types
from container_update.engine.goals.change_request import ChangeRequest, FromVnfm
from container_update.engine.goals.request_schema import (
    COORDINATE_NEW,
    COORDINATE_OLD,
    EXTERNAL_LB,
)
from container_update.engine.read_packages import check_packages
from container_update.engine.run import operate
from container_update.engine.scripts.coordination import Coordination
from container_update.model import errors
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Outcome, StepResult
from container_update.model.requests import ChangePackageRequest
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
_VIM = "openstack"


class StackChange(StackGoal):
    """A change of the package of a VNF in a stack, as a strategy plans it.

    :param flavour_id: the deployment flavour; None where the package has but one.
    """

    def __init__(  # noqa: PLR0913
        self,
        request: ChangePackageRequest,
        service: Heat,
        stack: str,
        options: Options = Options(),  # noqa: B008
        vnfm: FromVnfm = FromVnfm(),  # noqa: B008
        *,
        flavour_id: str | None = None,
    ) -> None:
        self._given, self._service, self._options, self._vnfm = request, service, options, vnfm
        self.stack, self._flavour_id = stack, flavour_id
        self.change = change = ChangeRequest.of(_with_vnfd_id(request, options), _VIM)
        self._planner: Planner = upgrade_types.find(_VIM, change.upgrade_type)
        self.coordination = Coordination.of(request, change, options, vnfm, {})
        self._plan: StackPlan | None = None
        """What was planned, or what an earlier run had planned."""
        self._live: Live | None = None
        """The stack after the change, once it is finished."""

    @property
    def reports(self) -> Sequence[ScriptReport]:
        """Every run of a coordination script, in order."""
        return tuple(self.coordination.reports)

    def _instance(self, **how: Any) -> StackInstance:
        instance = StackInstance(
            self._service,
            self._instance_id,
            self._options,
            self._run_script,
            stack=self.stack,
            scripts=self.coordination.paths,
            **how,
        )
        self.coordination.cancel = instance.cancel
        return instance

    @cached_property
    def _instance_id(self) -> str | None:
        return self._given.instance_id or instance_id_of(self._service, self.stack)

    @cached_property
    def packages(self) -> StackPackages:
        """Both packages, read when they are first needed."""
        given, change = self._given, self.change
        with (
            csar.open_package(given.new, options=self._options) as new,
            csar.open_package(given.old, options=self._options) as old,
        ):
            check_packages(change, new, old)
            change.check_vdus(new.vdus(self._flavour_id), _VIM)
            identities = identities_of(old, new)
            wanted = StackRequest(
                given.old,
                given.new,
                self.stack,
                change.upgrade_type,
                tuple(vdu.vdu_id for vdu in change.vdu_params),
                self._instance_id,
                self._flavour_id,
                StackLinks.of(change.body, self._vnfm.instance.get("instantiatedVnfInfo")),
                _nfv(change.body),
                self.coordination.paths,
            )
            return replace(read_packages(wanted, old, new), identities=identities())

    # --- plan and run ---------------------------------------------------------------------------

    def run(self, **how: Any) -> Outcome:
        """Recover what an earlier run left, plan, and carry the plan out.

        :param how: ``cancel``, ``progress`` and ``leave_failed``, and the errors, are those of
            :func:`~container_update.engine.run.run`.
        """
        return self._with_vnfcs(operate(self, self._instance(**how)))

    def recover(self, *, back: bool, **how: Any) -> Outcome | None:
        """Finish what an earlier run left, whatever its goal, or undo it; None where there was
        nothing. The errors are those of :class:`~container_update.engine.recovery.Recovery`.

        :param how: see :meth:`run`.
        :raises NoWayBackError: the old stack is being deleted: the change can only be finished.
        """
        if not back:
            self.digest()  # a missing package is noticed first
        outcome = self._instance(**how).recover(back=back, go_on=self.carry_out)
        return outcome and self._with_vnfcs(outcome)

    def preview(self) -> StackPlan:
        """Return the plan; write nothing."""
        return self.plan(self._service)

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
        given, body = self._given, self.change.body
        request = _without_inputs(body)
        return {
            "old": given.old,
            "new": given.new,
            "flavourId": self._flavour_id,
            "request": request,
            "isComplete": request == body,
        }

    def carry_out(self, execution: StackExecution) -> tuple[StepResult, ...]:
        """See Goal."""
        results = super().carry_out(execution)
        self._plan = execution.record.plan
        self._live = live.after(self._service, self._plan)
        return results

    # --- scripts --------------------------------------------------------------------------------

    def _run_script(self, step: ScriptStep, execution: StackExecution) -> ScriptReport | None:
        """Run a script of the plan or its undo; CoordinationError where it failed or stopped."""
        self.coordination.operation = execution.record.operation
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
        report = self.coordination.run(replace(step, vdu=vdu))
        if report is not None and report.status != 0:
            raise errors.CoordinationError(f"it was stopped {self.coordination.cancel.reason}")
        return report

    def _members(self, step: ScriptStep, execution: StackExecution) -> Sequence[VnfcServer]:
        """Return the VNFCs that a script is about; none where its stack was never created."""
        plan, vdu = execution.record.plan, step.vdu
        if vdu.resource_id:
            return [each for each in plan.members if each.server_id == vdu.resource_id]
        stack = self._service.stack(_stack_of(step))
        if stack is None:
            return ()
        members = plan.members
        if reference(stack) != plan.stack:
            body = live.body_of(self._service, reference(stack))
            members = live.read(self._service, stack, body, plan.places).members
        return [member for member in members if member.vdu_id == vdu.vdu_id]

    def _vnfc_details(self, member: VnfcServer, role: str) -> Json:
        return {
            "name": member.name,
            "server_id": member.server_id,
            "addresses": {port: self._addresses(member.stack, port) for port in member.ports},
            "ssh_ip": self._ssh_ip(member, role),
        }

    def _ssh_ip(self, member: VnfcServer, role: str) -> str | None:
        """Return the address of the request's connection point, as Tacker finds it, or None."""
        request = self.change
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
        resource = self._service.resource(stack, name) or {}
        attributes = resource.get("attributes") or {}
        if floating := attributes.get("floating_ip_address"):
            return [str(floating)]
        return [str(address["ip_address"]) for address in attributes.get("fixed_ips") or ()]

    # --- its outcome -----------------------------------------------------------------------------

    def records(self, _: Outcome) -> Records:
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
        name = self._live.reference if self._live else self.stack
        stack = live.find(self._service, name)
        return live.members_of(self._service, stack, self.packages.all_vdus)


def _with_vnfd_id(request: ChangePackageRequest, options: Options) -> Mapping[str, Any]:
    """Return the body of a request; without ``vnfdId`` that of the new package counts."""
    if "vnfdId" in request.body:
        return request.body
    with csar.open_package(request.new, options=options) as opened:
        return {**request.body, "vnfdId": opened.vnfd_id or "unknown"}


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


def recover_stack(
    instance: StackInstance, request: Mapping[str, Any] | None = None, *, back: bool
) -> tuple[Outcome | None, Sequence[ScriptReport]]:
    """Finish or undo what was interrupted. The packages of a change have to be where they were.

    :param request: the change's request again, where its scripts need passwords: the journal holds
        none.
    :returns: its outcome, None where there was nothing; and the runs of its scripts.
    :raises PackageError: a package is not there, or the request is needed; nothing was done. The
        other errors are those of :meth:`StackChange.recover`.
    """
    record = instance.read()
    if record is None:
        return None, ()
    if not record.context:  # an operation of the service: its steps say all
        return instance.recover(back=back), ()
    change = _recorded_change(instance, record, request)
    names = ("cancel", "progress", "leave_failed")
    outcome = change.recover(back=back, **{name: getattr(instance, name) for name in names})
    return outcome, change.reports


def _recorded_change(
    instance: StackInstance, record: StackRecord, given: Mapping[str, Any] | None
) -> StackChange:
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
    request = ChangePackageRequest(
        body, context["old"], context["new"], instance_id=instance.instance_id
    )
    assert instance.stack is not None, "the command names it"
    return StackChange(
        request,
        instance.service,
        instance.stack,
        instance.options,
        flavour_id=context["flavourId"],
    )
