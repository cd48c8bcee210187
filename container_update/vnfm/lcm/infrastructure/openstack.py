# SPDX-License-Identifier: Apache-2.0
"""VNFs that are Heat stacks in an OpenStack. See :class:`.vim.Vim`.

An instance's stack has the name that Tacker gives it, ``vnf-<id>``; Blue-Green adds a suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from container_update.cluster.lease import utc_now
from container_update.engine.goals.change_package import Changed, coordination_of
from container_update.engine.goals.job import ChangeJob
from container_update.model.errors import ContainerUpdateError, NoWayBackError, PlanError
from container_update.model.objects import Json
from container_update.model.outcome import Outcome
from container_update.openstack import change as stack_change
from container_update.openstack import live
from container_update.openstack import vnfm_records as stack_records
from container_update.openstack.change import OpenStackTarget
from container_update.openstack.client import Heat, reference
from container_update.openstack.instantiate import Builder, described_by
from container_update.openstack.journal import Journal
from container_update.openstack.operation import StackInstance
from container_update.openstack.templates import links
from container_update.openstack.upkeep import RunningStack
from container_update.openstack.vnfcs import VnfcServer
from container_update.package.hot import Body
from container_update.vnfm import vim_clients
from container_update.vnfm.lcm import levels, records
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.vnfm.states import NO_ROLLBACK

_HEALED_STACK = "healed_stack"
"""In what an occurrence keeps: the stack that a heal deletes and creates anew, sealed."""


@contextmanager
def connected(context: OperationContext) -> Iterator[OpenStackVim]:
    """Connect to Heat of the instance's VIM for a ``with`` block."""
    with vim_clients.heat(context.connection, context.service.options) as heat:
        yield OpenStackVim(context, heat)


def stack_name(instance_id: str) -> str:
    """Return the name of an instance's stack when it is created."""
    return f"vnf-{instance_id}"


def stacks_of(heat: Heat, instance_id: str) -> list[Json]:
    """Return the instance's stacks: more than one during a change."""
    own = re.compile(re.escape(stack_name(instance_id)) + r"(\.[0-9a-f]{8})?")
    return [stack for stack in heat.stacks() if own.fullmatch(str(stack["stack_name"]))]


@dataclass(frozen=True)
class OpenStackVim:
    """A project of a cloud, for one operation."""

    context: OperationContext
    heat: Heat

    def held_by(self) -> str | None:
        """Return the holder of a change's journal."""
        holder, now = self._journal.holder(), utc_now()
        return holder.sentence(now) if holder and holder.is_fresh(now) else None

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> Record:
        """Create the stack that the package describes and wait until it is complete."""
        context = self.context
        stack = described_by(
            str(context.package(context.record.vnfd_id)),
            str(context.request.get("flavourId")),
            context.params,
            context.service.options,
            links=links.Links.of(context.request),
            sizes=levels.numbers(context),
        )
        with self._reported(self._name, "create"):
            self._builder.make(self._name, stack)
        info = records.started_info(context) | links.recorded({}, context.request)
        body = {**context.record.body, "instantiatedVnfInfo": info}
        return self.as_it_is(replace(context.record, instantiated=True, body=body))

    def undo_instantiate(self) -> None:
        """Delete what was created so far."""
        self.terminate()

    def terminate(self) -> None:
        """Delete every stack of the instance, the journal last: a failed change may leave two."""
        names = sorted(str(stack["stack_name"]) for stack in self._stacks())
        for name in (*names, *(str(stack["stack_name"]) for stack in self._journal.stacks())):
            if self.heat.stack(name) is not None:
                with self._reported(name, "delete"):
                    self._builder.delete(name)

    @property
    def _journal(self) -> Journal:
        options = self.context.service.options
        return StackInstance(self.heat, self.context.instance_id, options).journal("")

    @property
    def _builder(self) -> Builder:
        return Builder(self.heat, self.context.service.options, self.context.cancel)

    @contextmanager
    def _reported(self, stack: str, action: str) -> Iterator[None]:
        """Report the begin and the end of what the ``with`` block does to a stack."""
        text, add = f"Stack {stack}", self.context.steps.add
        add(text, action, "running")
        try:
            yield
        except ContainerUpdateError as error:
            add(text, action, "failed", str(error))
            raise
        add(text, action, "done")

    # --- keeping it -----------------------------------------------------------------------------

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:
        """Replace the servers of these VNFCs; without any, those of the whole VNF.

        :param with_storage: their volumes are replaced too; for the whole VNF the stack is deleted
            and created anew, as Tacker does.
        """
        context = self.context
        with self._reported(self._name, "heal"):
            self._refuse_unfinished_change()
            context.keep(NO_ROLLBACK, "the old servers are deleted")
            if with_storage and not vnfcs:
                self._create_again()
                return
            entries = vnfcs or context.record.info.get("vnfcResourceInfo") or ()
            ids = [str(entry["computeResource"]["resourceId"]) for entry in entries]
            self._running().replace(ids, with_storage=with_storage)

    def _create_again(self) -> None:
        """Delete the stack and create it from its own templates and parameters.

        They are stored before the stack is deleted, because another try may find no stack.
        """
        stored = self.context.kept.get(_HEALED_STACK)
        if stored is None:
            running = self._running()
            if running.body.hidden:
                raise PlanError(
                    f"stack {running.stack}: Heat does not tell the values of its hidden "
                    f"parameters ({', '.join(sorted(running.body.hidden))}), so that it cannot be "
                    "created anew: heal it without additionalParams.all, or terminate and "
                    "instantiate it"
                )
            stack = {"name": running.stack.partition("/")[0], **running.body.as_request()}
            stored = self.context.service.vault.seal(stack)
            self.context.keep(_HEALED_STACK, stored)
        stack = self.context.service.vault.open(stored)
        self._builder.make(stack.pop("name"), Body(**stack))

    def undo_heal(self) -> None:
        """Refuse: Heat replaces servers, and has nothing to bring the old ones back from.

        :raises NoWayBackError: always.
        """
        raise NoWayBackError("a heal of servers cannot be undone: the old servers are deleted")

    def scale(self, numbers: Mapping[str, int]) -> None:
        """Give the scaling groups of VDUs these numbers of servers."""
        with self._reported(self._name, "scale"):
            self._refuse_unfinished_change()
            self._running().scale(numbers)

    def undo_scale(self, numbers: Mapping[str, int]) -> None:
        """Give the scaling groups the numbers of servers that they had; what is in none was never
        scaled."""
        places = self._running().places
        was = {vdu: n for vdu, n in numbers.items() if vdu in places and places[vdu].grouped}
        if was:
            self.scale(was)

    def _running(self) -> RunningStack:
        return RunningStack.read(
            self.heat, self._builder, self._stack(), self._vdus(self.context.record)
        )

    def _refuse_unfinished_change(self) -> None:
        if (record := self._journal.read()) is not None:
            raise PlanError(
                f"operation {record.operation}, a change of this VNF's package, has not ended: "
                "send its request again to finish it"
            )

    # --- the stack ------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return stack_name(self.context.instance_id)

    def _stacks(self) -> list[Json]:
        return stacks_of(self.heat, self.context.instance_id)

    def _stack(self) -> str:
        """Return the VNF's stack: the recorded one, or if that is gone its successor from a change
        that was not recorded."""
        stacks = self._stacks()
        recorded_id = self.context.record.info.get(stack_records.STACK)
        stacks = [stack for stack in stacks if stack["id"] == recorded_id] or stacks
        return reference(stacks[0]) if len(stacks) == 1 else self._name

    # --- changing -------------------------------------------------------------------------------

    def target(self) -> OpenStackTarget:
        """Return the instance's stack."""
        context = self.context
        return OpenStackTarget(
            self.heat,
            self._stack(),
            context.record.flavour_id,
            {"vim_connection_info": {"vim": context.connection}},
            vim_type=str(context.connection.get("vimType")),
        )

    def changed(self, record: Record, changed: Changed) -> Record:
        """Return the record with the live resources, also of a change by an earlier try, whose ids
        were not recorded."""
        names = {result.step.key.name for result in changed.outcome.results}
        members = self._members(record)
        touched = frozenset(member.server_id for member in members if str(member) in names)
        info = record.info | links.recorded(record.info, self.context.request)
        record = replace(record, body={**record.body, "instantiatedVnfInfo": info})
        return replace(self._described(record, members), touched=touched)

    def undo_change(self, job: ChangeJob) -> Outcome | None:
        """Undo it by the journal in the cloud; the scripts need the job."""
        target = self.target()
        steps = self.context.steps
        scripts = coordination_of(job, target, self.context.cancel)
        return stack_change.roll_back(job, target, scripts, steps)

    def as_it_is(self, record: Record) -> Record:
        """Return the record with the live servers, ports and volumes."""
        return self._described(record, self._members(record))

    def _described(self, record: Record, members: Sequence[VnfcServer]) -> Record:
        stack_id = self._stack().rpartition("/")[2]
        info = stack_records.described(record.info, members, stack_id)
        return replace(record, body={**record.body, "instantiatedVnfInfo": info})

    def _members(self, record: Record) -> Sequence[VnfcServer]:
        stack = live.find(self.heat, self._stack())
        return live.members_of(self.heat, stack, self._vdus(record))

    def _vdus(self, record: Record) -> Mapping[str, str]:
        """Return the VDUs of the record's package and of the old and new package of a change: a
        rolling update may leave VDUs of either."""
        context, vdus = self.context, dict[str, str]()
        requested = str(context.request.get("vnfdId") or record.vnfd_id)
        for vnfd_id in (requested, context.record.vnfd_id, record.vnfd_id):
            vdus |= records.vdus_of(context, vnfd_id, record.flavour_id)
        return vdus
