# SPDX-License-Identifier: Apache-2.0
"""VNFs that are Heat stacks in an OpenStack. See the folder.

An instance's stack has the name that Tacker gives it, ``vnf-<id>``; Blue-Green adds a suffix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from container_update.cluster.lease import utc_now
from container_update.engine.goals.change_request import FromVnfm
from container_update.engine.run import operate
from container_update.model.errors import NoWayBackError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Outcome
from container_update.model.plan import Plan
from container_update.model.requests import ChangePackageRequest
from container_update.openstack import live
from container_update.openstack import vnfm_records as stack_records
from container_update.openstack.change import StackChange
from container_update.openstack.client import Heat, reference
from container_update.openstack.instantiate import Instantiate, Terminate, described_by
from container_update.openstack.stack_instance import StackInstance
from container_update.openstack.templates import links
from container_update.openstack.upkeep import Renew, StackHeal, StackScale
from container_update.openstack.vnfcs import VnfcServer
from container_update.records.vnf_records import Records
from container_update.vnfm import vims
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord
from container_update.vnfm.states import NO_ROLLBACK


@contextmanager
def connect_vim(context: OperationContext) -> Iterator[OpenStackVim]:
    """Connect to Heat of the instance's VIM for a ``with`` block."""
    with vims.heat(context.connection, context.service.options) as heat:
        yield OpenStackVim(context, heat)


def stack_name(instance_id: str) -> str:
    """Return the name of an instance's stack when it is created."""
    return f"vnf-{instance_id}"


@dataclass(frozen=True)
class OpenStackVim:
    """A project of a cloud, for one operation."""

    context: OperationContext
    heat: Heat

    def held_by(self) -> str | None:
        """Return who holds the instance's journal, as a sentence; None: it is free."""
        holder, now = self._instance.journal("").holder(), utc_now()
        return holder.sentence(now) if holder and holder.is_fresh(now) else None

    @property
    def _instance(self) -> StackInstance:
        """The instance."""
        context = self.context
        return StackInstance(self.heat, context.instance_id, context.service.options, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        """How operations run: a failure is left for the VNFM's user."""
        return {
            "cancel": self.context.cancel,
            "progress": self.context.steps,
            "leave_failed": True,
        }

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> VnfRecord:
        """Create the stack that the package describes and wait until it is complete."""
        context = self.context
        body = described_by(
            str(context.package(context.record.vnfd_id)),
            str(context.request.get("flavourId")),
            context.params,
            context.service.options,
            links=links.StackLinks.of(context.request),
            sizes=records.first_numbers(context),
        )
        goal = Instantiate(self._name, body, context.service.options, context.operation_id)
        operate(goal, self._instance)
        info = records.started_info(context) | links.record_links({}, context.request)
        return self.as_it_is(replace(context.record.with_info(info), instantiated=True))

    def undo_instantiate(self) -> None:
        """Delete what was created so far."""
        self.terminate()

    def terminate(self) -> None:
        """Delete every stack of the instance, the journal last: a failed change may leave two."""
        operate(Terminate(self._name), self._instance)

    # --- keeping it -----------------------------------------------------------------------------

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:
        """Replace the servers of these VNFCs; without any, those of the whole VNF.

        :param with_storage: their volumes are replaced too; for the whole VNF the stack is deleted
            and created anew, as Tacker does.
        """
        context, running = self.context, self._running
        context.keep(NO_ROLLBACK, "the old servers are deleted")
        if with_storage and not vnfcs:
            operate(Renew(*running, context.operation_id), self._instance)
            return
        entries = vnfcs or context.record.info.get("vnfcResourceInfo") or ()
        ids = [str(entry["computeResource"]["resourceId"]) for entry in entries]
        operate(StackHeal(*running, context.operation_id, ids, with_storage), self._instance)

    def undo(self) -> Outcome | None:
        """Undo what left a journal, None without one; NoWayBackError: Heat has replaced servers."""
        return self._instance.recover(back=True)

    def scale(self, numbers: Mapping[str, int], request_id: str) -> None:
        """Give the scaling groups of VDUs these numbers of servers.

        :param request_id: an interrupted scaling of another request is undone before.
        """
        operate(StackScale(*self._running, request_id, numbers), self._instance)

    @property
    def _running(self) -> tuple[str, Mapping[str, str], Options]:
        """The VNF's stack, its VDUs, and the options."""
        return self._stack(), self._vdus(self.context.record), self.context.service.options

    # --- the stack ------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return stack_name(self.context.instance_id)

    def _stack(self) -> str:
        """Return the VNF's stack: the recorded one, else the one of an unrecorded change."""
        stacks = live.stacks_of(self.heat, self._name)
        recorded_id = self.context.record.info.get(stack_records.STACK)
        stacks = [stack for stack in stacks if stack["id"] == recorded_id] or stacks
        return reference(stacks[0]) if len(stacks) == 1 else self._name

    # --- changing -------------------------------------------------------------------------------

    def change(
        self, request: ChangePackageRequest, vnfm: FromVnfm
    ) -> tuple[Outcome, Records | None]:
        """Change the package; see KubernetesVim. A failure is left for the VNFM's user."""
        change = self._change(request, vnfm)
        outcome = change.run(**self._how)
        return outcome, change.records(outcome)

    def preview(self, request: ChangePackageRequest, vnfm: FromVnfm) -> Plan:
        """Return the plan of a change; write nothing."""
        return self._change(request, vnfm).preview()

    def _change(self, request: ChangePackageRequest, vnfm: FromVnfm) -> StackChange:
        context = self.context
        access = {"vim_connection_info": {"vim": context.connection}}
        return StackChange(
            request,
            self.heat,
            self._stack(),
            context.service.options,
            replace(vnfm, access=access),
            flavour_id=context.record.flavour_id,
        )

    def record_change(self, record: VnfRecord, outcome: Outcome, written: Records) -> VnfRecord:  # noqa: ARG002
        """Return the record with the live resources: an earlier try may have changed some without
        recording their ids."""
        names = {result.step.key.name for result in outcome.results}
        members = self._members(record)
        touched = frozenset(member.server_id for member in members if str(member) in names)
        info = record.info | links.record_links(record.info, self.context.request)
        return replace(self._describe(record.with_info(info), members), touched=touched)

    def put_back(
        self, request: ChangePackageRequest | None = None, vnfm: FromVnfm | None = None
    ) -> frozenset[str]:
        """Undo a change of the package by the journal in the cloud; see KubernetesVim.

        :param request: of the change, which the scripts need; nothing else changes servers.
        :raises NoWayBackError: old objects are being deleted, or the change is complete.
        """
        assert request is not None, "no modification changes servers"
        assert vnfm is not None, "as above"
        change = self._change(request, vnfm)
        undone = change.recover(back=True, **self._how)
        if undone is None and change.preview().is_empty:
            raise NoWayBackError(
                "the change was complete when the service ended, only its record is missing: it "
                "cannot be undone any more"
            )
        return frozenset()

    def as_it_is(self, record: VnfRecord) -> VnfRecord:
        """Return the record with the live servers, ports and volumes."""
        return self._describe(record, self._members(record))

    def _describe(self, record: VnfRecord, members: Sequence[VnfcServer]) -> VnfRecord:
        stack_id = self._stack().rpartition("/")[2]
        return record.with_info(stack_records.instantiated_info(record.info, members, stack_id))

    def _members(self, record: VnfRecord) -> Sequence[VnfcServer]:
        stack = live.find(self.heat, self._stack())
        return live.members_of(self.heat, stack, self._vdus(record))

    def _vdus(self, record: VnfRecord) -> Mapping[str, str]:
        """Return the VDUs of all packages of a change: a rolling update may leave any."""
        context, vdus = self.context, dict[str, str]()
        requested = str(context.request.get("vnfdId") or record.vnfd_id)
        for vnfd_id in (requested, context.record.vnfd_id, record.vnfd_id):
            vdus |= records.vdus_of(context, vnfd_id, record.flavour_id)
        return vdus
