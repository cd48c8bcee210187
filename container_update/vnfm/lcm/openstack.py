"""VNFs that are Heat stacks in an OpenStack. See :class:`container_update.vnfm.lcm.vim.Vim`.

An instance's stack is named as Tacker names it, ``vnf-<id>``; Blue-Green puts an ending behind it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from container_update.cluster.credentials import pem
from container_update.cluster.lease import held
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json
from container_update.model.operation import name_of
from container_update.model.outcome import Outcome
from container_update.operations import stack_records
from container_update.operations.change_package import Changed, coordination_of
from container_update.operations.strategies import openstack as strategies
from container_update.operations.strategies.openstack import OpenStackTarget
from container_update.operations.strategy import ChangeJob
from container_update.stacks import live
from container_update.stacks.client import Heat, connect, reference
from container_update.stacks.instantiate import Builder, described_by
from container_update.stacks.operation import StackInstance
from container_update.stacks.vnfcs import VnfcServer
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.operation_context import OperationContext, Record


@contextmanager
def connected(context: OperationContext) -> Iterator[OpenStackVim]:
    """Heat of the instance's VIM."""
    options, interface = context.service.options, context.connection.get("interfaceInfo") or {}
    authority = interface.get("ssl_ca_cert")
    access = context.connection.get("accessInfo") or {}
    verify: bool | str = not interface.get("skipCertificateVerification")
    with tempfile.TemporaryDirectory() as folder:
        if verify and authority:
            verify = str(Path(folder, "authority.pem"))
            Path(verify).write_text(pem(authority))
        with connect(
            auth=_auth(interface, access),
            options=options,
            region=access.get("region"),
            verify=verify,
        ) as heat:
            yield OpenStackVim(context, heat)


def _auth(interface: Mapping[str, Any], access: Mapping[str, Any]) -> dict[str, str]:
    """Return what Keystone is asked with, from SOL003's words for it."""
    return {
        "auth_url": str(interface.get("endpoint", "")),
        "username": str(access.get("username", "")),
        "password": str(access.get("password", "")),
        "project_name": str(access.get("project", "")),
        "user_domain_name": str(access.get("userDomain") or "Default"),
        "project_domain_name": str(access.get("projectDomain") or "Default"),
    }


@dataclass(frozen=True)
class OpenStackVim:
    """A project of a cloud, for one operation."""

    context: OperationContext
    heat: Heat

    def held_by(self) -> str | None:
        """Whoever holds the journal of a change."""
        options = self.context.service.options
        instance = StackInstance(self.heat, self.context.instance_id, options)
        found = instance.journal("").holder()
        if found is None or found[1] > options.lease_seconds:
            return None
        return held(*found, options.lease_seconds)

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> Record:
        """Make the stack that the package describes and wait until it is complete."""
        context = self.context
        body = described_by(
            str(context.package(context.record.vnfd_id)),
            str(context.request.get("flavourId")),
            context.request.get("additionalParams") or {},
            context.service.options,
        )
        with self._told(self._name, "create"):
            self._builder.make(self._name, body)
        info: Json = {
            "flavourId": context.request.get("flavourId"),
            "vnfState": "STARTED",
            "extCpInfo": [],
        }
        made = {**context.record.body, "instantiatedVnfInfo": info}
        return self.as_it_is(replace(context.record, instantiated=True, body=made))

    def undo_instantiate(self) -> None:
        """Delete what was made so far."""
        self.terminate()

    def terminate(self) -> None:
        """Delete every stack of the instance: a change that was given up may have left two, and its
        journal, which goes last."""
        names = [str(page["stack_name"]) for page in self._stacks()]
        for name in (*sorted(names), name_of(self.context.instance_id)):
            if self.heat.stack(name) is not None:
                with self._told(name, "delete"):
                    self._builder.delete(name)

    @property
    def _builder(self) -> Builder:
        return Builder(self.heat, self.context.service.options, self.context.cancel)

    @contextmanager
    def _told(self, stack: str, action: str) -> Iterator[None]:
        """Report what is done to a stack when it begins and when it ends."""
        text, tell = f"Stack {stack}", self.context.steps.tell
        tell(text, action, "running")
        try:
            yield
        except ContainerUpdateError as error:
            tell(text, action, "failed", str(error))
            raise
        tell(text, action, "done")

    # --- the stack ------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"vnf-{self.context.instance_id}"

    def _stacks(self) -> list[Json]:
        """Return the instance's stacks; more than one while a change is under way."""
        own = re.compile(re.escape(self._name) + r"(\.[0-9a-f]{8})?")
        return [page for page in self.heat.stacks() if own.fullmatch(str(page["stack_name"]))]

    def _stack(self) -> str:
        """Return the VNF's stack: the recorded one; where that is gone the one that took its place
        in a change whose record is missing."""
        pages = self._stacks()
        recorded = [
            page
            for page in pages
            if page["id"] == self.context.record.info.get(stack_records.STACK)
        ]
        found = recorded or pages
        return reference(found[0]) if len(found) == 1 else self._name

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
        """Return what the stack consists of now; also where an earlier try made the change, whose
        ids were not recorded."""
        told = {result.step.key.name for result in changed.outcome.results}
        members = self._members(record)
        touched = frozenset(each.server_id for each in members if str(each) in told)
        return replace(self._described(record, members), touched=touched)

    def undo_change(self, job: ChangeJob) -> Outcome | None:
        """By the journal, which is in the cloud; the scripts need the job."""
        target = self.target()
        scripts = coordination_of(job, target, self.context.cancel)
        try:
            return strategies.roll_back(job, target, scripts, self.context.steps)
        finally:
            self.context.steps.tell_scripts(scripts.reports)

    def as_it_is(self, record: Record) -> Record:
        """Return the record with the servers, ports and volumes that there are."""
        return self._described(record, self._members(record))

    def _described(self, record: Record, members: Sequence[VnfcServer]) -> Record:
        stack_id = self._stack().rpartition("/")[2]
        info = stack_records.described(record.info, members, stack_id)
        return replace(record, body={**record.body, "instantiatedVnfInfo": info})

    def _members(self, record: Record) -> Sequence[VnfcServer]:
        page = live.find(self.heat, self._stack())
        return live.members_of(self.heat, page, self._vdus(record))

    def _vdus(self, record: Record) -> Mapping[str, str]:
        """Those of the record's package, and of those that a change leads to or from: a rolling
        update leaves VDUs as they were."""
        context, vdus = self.context, dict[str, str]()
        asked = str(context.request.get("vnfdId") or record.vnfd_id)
        for vnfd_id in (asked, context.record.vnfd_id, record.vnfd_id):
            folder = str(context.package(vnfd_id))
            vdus |= records.vdus_of(context, folder, record.flavour_id)
        return vdus
