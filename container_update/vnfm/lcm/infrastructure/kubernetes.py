# SPDX-License-Identifier: Apache-2.0
"""VNFs that are objects in a Kubernetes cluster. See the folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from container_update.cluster.history import HistoryWriter
from container_update.cluster.lease import utc_now
from container_update.cluster.retry import RetryingCluster
from container_update.drivers import v2_memory
from container_update.drivers.vim import script_access
from container_update.drivers.way_back import go_back
from container_update.engine.goal import Goal
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import FromVnfm
from container_update.engine.goals.install import Install
from container_update.engine.goals.uninstall import Uninstall
from container_update.engine.goals.upkeep import Heal, Scale
from container_update.engine.run import preview, run
from container_update.model.errors import NextStep, PlanError
from container_update.model.objects import Json
from container_update.model.outcome import Outcome
from container_update.model.plan import Plan
from container_update.model.requests import (
    DEF_FILES,
    ChangePackageRequest,
    HealRequest,
    InstallRequest,
    ScaleRequest,
    TerminateRequest,
)
from container_update.records.vnf_records import Records
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord
from container_update.vnfm.states import HELD


@contextmanager
def connect_vim(context: OperationContext) -> Iterator[KubernetesVim]:
    """Connect to the cluster of the instance's VIM for a ``with`` block."""
    with context.cluster() as cluster:
        yield KubernetesVim(context, cluster)


@dataclass(frozen=True)
class KubernetesVim:
    """A cluster, for one operation."""

    context: OperationContext
    cluster: RetryingCluster

    def held_by(self) -> str | None:
        """Return who holds the instance's Lease, as a sentence; None: it is free."""
        holder, now = self.context.with_journal(self.cluster).holder(), utc_now()
        return holder.sentence(now) if holder is not None and holder.seems_alive(now) else None

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> VnfRecord:
        """Create every object of the def-files and wait until the workloads are Ready."""
        context = self.context
        request = InstallRequest(self._package, **self._requested_where)
        options, replicas = context.service.options, records.first_replicas(context)
        outcome = self._carry_out(Install(request, options, replicas))
        return records.instantiated_record(
            context, outcome.plan.manifests, self.cluster, context.namespace
        )

    def undo_instantiate(self) -> None:
        """Undo by its journal what was created so far; where it had come to its end, uninstall it.

        What a volume holds by then stays.
        """
        context = self.context
        if self.undo() is None:  # a package that is wrong has created nothing
            package = None if context.service.options.history else self._package
            self._uninstall(TerminateRequest(package, **self._requested_where))
        HistoryWriter(self.cluster, context.namespace, context.instance_id).clear()

    def terminate(self) -> None:
        """Delete the objects of the instance, and wait until they are gone."""
        params = self.context.params
        what = {name: params.get(name, False) for name in ("delete_data", "delete_shared")}
        self._uninstall(TerminateRequest(self._package, **self._recorded_where, **what))

    def _uninstall(self, request: TerminateRequest) -> None:
        self._carry_out(Uninstall(request, self.context.service.options, is_recorded=True))

    @property
    def _requested_where(self) -> dict[str, Any]:
        return {"def_files": tuple(self.context.params.get(DEF_FILES) or ()), **self._where}

    @property
    def _recorded_where(self) -> dict[str, Any]:
        return {"def_files": self.context.record.def_files, **self._where}

    # --- keeping it -----------------------------------------------------------------------------

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:  # noqa: ARG002
        """Replace the pods of these VNFCs; without any, heal the whole VNF.

        :param with_storage: makes no difference: a pod's volumes are objects of their own.
        """
        context = self.context
        pods = ((entry["vduId"], entry["computeResource"]["resourceId"]) for entry in vnfcs)
        where = {**self._recorded_where, "request_id": context.operation_id}
        request = HealRequest(self._package, tuple(pods), **where)
        self._carry_out(Heal(request, context.service.options))

    def scale(self, numbers: Mapping[str, int], request_id: str) -> None:
        """Give VDUs these numbers of pods.

        :param request_id: an interrupted scaling of another request is undone before.
        """
        request = ScaleRequest(
            self._package, numbers, **self._recorded_where, request_id=request_id
        )
        self._carry_out(Scale(request, self.context.service.options))

    def _carry_out(self, goal: Goal) -> Outcome:
        """Carry out a goal; a failure is left for the VNFM's user."""
        context, options = self.context, self.context.service.options
        goal.intent = replace(goal.intent, why=context.why)
        return run(goal, self.cluster, options, context.cancel, context.steps, leave_failed=True)

    def undo(self) -> Outcome | None:
        """Undo the operation that left a journal; None where there is none."""
        return self.context.with_journal(self.cluster).recover(back=True)

    @property
    def _package(self) -> str:
        """The package that the instance runs from."""
        return str(self.context.package(self.context.record.vnfd_id))

    @property
    def _where(self) -> dict[str, Any]:
        """Where the objects of the instance are, as requests say it."""
        context = self.context
        return {
            "namespace": context.namespace,
            "one_namespace": True,
            "instance_id": context.instance_id,
        }

    # --- changing -------------------------------------------------------------------------------

    def change(
        self, request: ChangePackageRequest, vnfm: FromVnfm
    ) -> tuple[Outcome, Records | None]:
        """Change the package; return its outcome, and what to record: None while it waits
        for a person.

        :raises PlanError: it waited, and was undone in the cluster meanwhile.
        """
        change, kept = self._change(request, vnfm), self.context.kept
        is_over = kept.get(HELD) and self.context.with_journal(self.cluster).journal.read() is None
        if is_over and not self.preview(request, vnfm).is_empty:
            kept[HELD] = ""
            raise PlanError(
                "the change waited for a person, and was aborted in the cluster",
                next_step=NextStep.RESUME_OR_ROLLBACK,
            )
        outcome = self._carry_out(change)
        return outcome, None if outcome.held else change.records(outcome)

    def preview(self, request: ChangePackageRequest, vnfm: FromVnfm) -> Plan:
        """Return the plan of a change; write nothing."""
        return preview(self._change(request, vnfm), self.cluster, self.context.service.options)

    def _change(self, request: ChangePackageRequest, vnfm: FromVnfm) -> PackageChange:
        context = self.context
        request = replace(request, def_files=context.record.def_files, **self._where)
        vnfm = replace(vnfm, access=script_access(context.connection))
        return PackageChange(request, self.cluster, context.service.options, vnfm)

    def record_change(self, record: VnfRecord, outcome: Outcome, written: Records) -> VnfRecord:  # noqa: ARG002
        """Return the record as the strategy left it."""
        return replace(record, touched=written.restarted)

    def put_back(self, *_: Any) -> frozenset[str]:
        """Undo a modification or a change of the package, by its journal or, where it is complete,
        by the history; store that it is undone: a rollback that cannot be recorded is requested
        again.

        A change is not named: journal and history are in the cluster.

        :returns: the ids of resources that were started again under the same name.
        :raises NoWayBackError: it is complete, and the history does not have the state before it.
        """
        context = self.context
        restarted = go_back(
            self._package,
            self.cluster,
            context.service.options,
            context.kept[v2_memory.OURS]["state"],
            context.cancel,
            context.steps,
            namespace=context.namespace,
            instance_id=context.instance_id,
        )
        context.keep(v2_memory.OURS, {"state": v2_memory.ROLLED_BACK})
        return restarted

    def as_it_is(self, record: VnfRecord) -> VnfRecord:
        """Return the record with the pods that run now."""
        return records.with_live_pods(self.context, record, self.cluster)
