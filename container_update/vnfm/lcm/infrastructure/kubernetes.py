# SPDX-License-Identifier: Apache-2.0
"""VNFs that are objects in a Kubernetes cluster. See the folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from container_update.cluster.history import HistoryWriter
from container_update.cluster.lease import utc_now
from container_update.cluster.retry import RetryingCluster
from container_update.drivers import v2_memory
from container_update.drivers.vim import script_access
from container_update.drivers.way_back import go_back
from container_update.engine.goal import Goal
from container_update.engine.goals.change import KubernetesTarget
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.goals.change_package import Changed
from container_update.engine.goals.install import Install
from container_update.engine.goals.uninstall import Uninstall
from container_update.engine.goals.upkeep import Heal, Scale
from container_update.engine.run import run
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Outcome
from container_update.model.requests import DEF_FILES
from container_update.planning.comparison.package_pair import Placing
from container_update.planning.staying import Included
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord


@contextmanager
def connected(context: OperationContext) -> Iterator[KubernetesVim]:
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
        holder, now = self.context.journalled(self.cluster).holder(), utc_now()
        return holder.sentence(now) if holder is not None and holder.seems_alive(now) else None

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> VnfRecord:
        """Create every object of the def-files and wait until the workloads are Ready."""
        context, placing = self.context, self._placing(self._requested_def_files)
        what = self._package, placing, context.instance_id, context.service.options
        outcome = self._carry_out(Install(*what, records.first_replicas(context)))
        return records.instantiated(
            context, outcome.plan.manifests, self.cluster, context.namespace
        )

    def undo_instantiate(self) -> None:
        """Undo by its journal what was created so far; where it had come to its end, uninstall it.

        What a volume holds by then stays.
        """
        context = self.context
        if self.undo() is None:  # a package that is wrong has created nothing
            package = None if context.service.options.history else self._package
            self._uninstall(package, self._requested_def_files, Included())
        HistoryWriter(self.cluster, context.namespace, context.instance_id).clear()

    def terminate(self) -> None:
        """Delete the objects of the instance, and wait until they are gone."""
        params = self.context.params
        included = Included(
            data=params.get("delete_data", False), shared=params.get("delete_shared", False)
        )
        self._uninstall(self._package, self.context.record.def_files, included)

    def _uninstall(
        self, package: str | None, def_files: tuple[str, ...], included: Included
    ) -> None:
        context = self.context
        what = package, self._placing(def_files), context.instance_id, context.service.options
        self._carry_out(Uninstall(*what, included, is_recorded=True))

    @property
    def _requested_def_files(self) -> tuple[str, ...]:
        return tuple(self.context.params.get(DEF_FILES) or ())

    # --- keeping it -----------------------------------------------------------------------------

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:  # noqa: ARG002
        """Replace the pods of these VNFCs; without any, heal the whole VNF.

        :param with_storage: makes no difference: a pod's volumes are objects of their own.
        """
        pods = [(entry["vduId"], entry["computeResource"]["resourceId"]) for entry in vnfcs]
        self._carry_out(Heal(*self._kept(self.context.operation_id), pods))

    def scale(self, numbers: Mapping[str, int], request_id: str) -> None:
        """Give VDUs these numbers of pods.

        :param request_id: an interrupted scaling of another request is undone before.
        """
        self._carry_out(Scale(*self._kept(request_id), numbers))

    def _carry_out(self, goal: Goal) -> Outcome:
        """Carry out a goal; a failure is left for the VNFM's user."""
        context, options = self.context, self.context.service.options
        return run(goal, self.cluster, options, context.cancel, context.steps, leave_failed=True)

    def undo(self) -> Outcome | None:
        """Undo the operation that left a journal; None where there is none."""
        return self.context.journalled(self.cluster).recover(back=True)

    @property
    def _package(self) -> str:
        """The package that the instance runs from."""
        return str(self.context.package(self.context.record.vnfd_id))

    def _placing(self, def_files: tuple[str, ...]) -> Placing:
        return Placing(def_files, self.context.namespace, one_namespace=True)

    def _kept(self, request_id: str) -> tuple[str, Placing, str, Options, str]:
        """Return the parameters that all goals of a running VNF have in common."""
        context, placing = self.context, self._placing(self.context.record.def_files)
        options = context.service.options
        return self._package, placing, context.instance_id, options, request_id

    # --- changing -------------------------------------------------------------------------------

    def target(self) -> KubernetesTarget:
        """Return the instance's namespace and def-files."""
        context = self.context
        return KubernetesTarget(
            self.cluster,
            context.record.namespace,
            context.record.def_files,
            script_access(context.connection),
            one_namespace=True,
            vim_type=str(context.connection.get("vimType")),
        )

    def changed(self, record: VnfRecord, changed: Changed) -> VnfRecord:
        """Return the record as the strategy left it."""
        return replace(record, touched=changed.records.restarted)

    def put_back(self, job: ChangeJob | None = None) -> frozenset[str]:  # noqa: ARG002
        """Undo a modification or a change of the package, by its journal or, where it is complete,
        by the history; store that it is undone: a rollback that cannot be recorded is requested
        again.

        :param job: is not needed: journal and history are in the cluster.
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
