"""A VNF that runs in a cluster and keeps its package: how its heal or scaling is carried out.

An operation of the instance that was interrupted is finished first if it has the same goal, else
undone. Lease, journal, waiting and undo are an update's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from container_update.cluster.execution.operation import Operation
from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingCluster
from container_update.cluster.scope import Scope
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepState
from container_update.model.plan import Plan
from container_update.model.reporter import reporter
from container_update.operations.read_packages import read_live, read_manifests
from container_update.package import csar
from container_update.planning.comparison import match
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.update import Live


@dataclass(frozen=True)
class RunningVnf:
    """A VNF in a cluster.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     vnf = RunningVnf("packages/v1", cluster, Placing(namespace="cnf"), "vnf-1")
    """

    package: str
    """What it runs from: a folder or a CSAR zip."""
    cluster: Cluster
    placing: Placing = field(default_factory=Placing)
    instance_id: str | None = None
    """Objects that bear another instance's label are refused."""
    options: Options = field(default_factory=Options)
    leave_failed: bool = False
    """A failure is left for another try or a rollback, not undone at once."""

    def run(
        self,
        goal: str,
        planned: Callable[[Packages, Live], Plan],
        cancel: CancelToken | None = None,
        progress: Progress = lambda _: None,
    ) -> Outcome:
        """Carry out a plan that is made from the package and the live objects.

        :param goal: identifies the request: another try of it has the same.
        :raises PackageError: the package is wrong; nothing was written.
        :raises PlanError: the VNF is in no state for it; nothing was written.
        :raises UpdateInProgressError: another operation of this instance runs.
        :raises UpdateFailedError: a workload did not get Ready.
        """
        options, namespace = self.options, self.placing.namespace
        cancel, report = CancelToken() if cancel is None else cancel, reporter(progress)
        cluster = RetryingCluster(self.cluster, options.retry_seconds)
        packages = self._read()
        operation = Operation(
            cluster, namespace, self.instance_id, options, report, self.leave_failed
        )
        resumed = operation.recover(goal=lambda: goal, cancel=cancel)
        if resumed is not None and all(r.state is StepState.DONE for r in resumed.results):
            return resumed
        with Informer(cluster, Scope(), watch_seconds=options.watch_seconds) as informer:
            plan = planned(packages, read_live(packages, namespace, cluster, informer))
            report(plan)
            if plan.is_empty:
                operation.tidy(cancel)
                return Outcome(plan)
            with operation.begun(plan, informer, cancel, goal) as run:
                return Outcome(plan, run.execution.run())

    def _read(self) -> Packages:
        placing = self.placing
        with csar.open_package(self.package, options=self.options) as opened:
            def_files = placing.def_files or tuple(opened.manifest_files())
            objects = match.index(read_manifests(opened, def_files, placing))
            vdus = dict(opened.vdus())
            return Packages(objects, objects, vdus, vdus, opened.vnfd_id, def_files)
