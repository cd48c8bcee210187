"""VNFs that are objects in a Kubernetes cluster. See :class:`.vim.Vim`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from container_update.cluster.lease import utc_now
from container_update.cluster.retry import RetryingCluster
from container_update.drivers.vim import script_access
from container_update.model.objects import Json
from container_update.model.outcome import Outcome
from container_update.model.requests import DEF_FILES
from container_update.operations.change_package import Changed
from container_update.operations.install import install
from container_update.operations.strategies.kubernetes import KubernetesTarget
from container_update.operations.strategies.strategy import ChangeJob
from container_update.operations.terminate import terminate
from container_update.operations.upkeep.heal import heal
from container_update.operations.upkeep.running_vnf import RunningVnf
from container_update.operations.upkeep.scale import scale
from container_update.planning.comparison.package_pair import Placing
from container_update.vnfm.lcm import levels, records
from container_update.vnfm.lcm.operation_context import OperationContext, Record


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
        """Return the holder of the instance's Lease."""
        holder, now = self.context.journalled(self.cluster).holder(), utc_now()
        return holder.sentence(now) if holder is not None and holder.seems_alive(now) else None

    # --- making and deleting --------------------------------------------------------------------

    def instantiate(self) -> Record:
        """Create every object of the def-files and wait until the workloads are Ready."""
        context, namespace = self.context, self._requested_namespace
        created = install(
            str(context.package(context.record.vnfd_id)),
            self.cluster,
            def_files=self._requested_def_files,
            namespace=namespace,
            one_namespace=True,
            instance_id=context.instance_id,
            options=context.service.options,
            replicas=levels.replicas(context),
            created=lambda key: context.steps.add(str(key), "create", "done"),
        )
        return records.instantiated(context, created, self.cluster, namespace)

    def undo_instantiate(self) -> None:
        """Delete what was created so far."""
        self._delete(self._requested_def_files, self._requested_namespace)

    def terminate(self) -> None:
        """Delete the objects with the instance's label, and wait until they are gone."""
        self._delete(self.context.record.def_files, self.context.record.namespace)

    def _delete(self, def_files: tuple[str, ...], namespace: str) -> None:
        context = self.context
        deleted = terminate(
            str(context.package(context.record.vnfd_id)),
            self.cluster,
            instance_id=context.instance_id,
            def_files=def_files,
            namespace=namespace,
            one_namespace=True,
            options=context.service.options,
        )
        for key in deleted:
            context.steps.add(str(key), "delete", "done")

    @property
    def _requested_namespace(self) -> str:
        return str(self.context.params.get("namespace") or "default")

    @property
    def _requested_def_files(self) -> tuple[str, ...]:
        return tuple(self.context.params.get(DEF_FILES) or ())

    # --- keeping it -----------------------------------------------------------------------------

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:  # noqa: ARG002
        """Replace the pods of these VNFCs; without any, heal the whole VNF.

        :param with_storage: makes no difference: a pod's volumes are objects of their own.
        """
        pods = [(entry["vduId"], entry["computeResource"]["resourceId"]) for entry in vnfcs]
        context = self.context
        heal(self._running, pods, context.operation_id, context.cancel, context.steps)

    def scale(self, numbers: Mapping[str, int]) -> None:
        """Give VDUs these numbers of pods."""
        context = self.context
        scale(self._running, numbers, context.operation_id, context.cancel, context.steps)

    def undo_heal(self) -> None:
        """Undo by the journal what a heal left."""
        self._undo()

    def undo_scale(self, numbers: Mapping[str, int]) -> None:  # noqa: ARG002
        """Undo by the journal what a scaling left."""
        self._undo()

    def _undo(self) -> None:
        self.context.journalled(self.cluster).recover(back=True, cancel=self.context.cancel)

    @property
    def _running(self) -> RunningVnf:
        context, record = self.context, self.context.record
        return RunningVnf(
            str(context.package(record.vnfd_id)),
            self.cluster,
            Placing(record.def_files, record.namespace, one_namespace=True),
            context.instance_id,
            context.service.options,
            leave_failed=True,
        )

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

    def changed(self, record: Record, changed: Changed) -> Record:
        """Return the record as the strategy left it."""
        return replace(record, touched=changed.records.restarted)

    def undo_change(self, job: ChangeJob) -> Outcome | None:  # noqa: ARG002
        """Undo it by the journal in the cluster, which holds the job."""
        journalled = self.context.journalled(self.cluster)
        return journalled.recover(back=True, cancel=self.context.cancel)

    def as_it_is(self, record: Record) -> Record:
        """Return the record with the pods that run now."""
        return records.with_live_pods(self.context, record, self.cluster)
