# SPDX-License-Identifier: Apache-2.0
"""The goal of a change of the package on Kubernetes: all of a new package, as a planner says.

Blue-Green, rolling update and every other strategy differ in the plan that they make, in nothing
else: lease, journal, waiting and undo are those of every operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import digest_of
from container_update.engine.checks.namespaces import refuse_missing_namespaces
from container_update.engine.goal import Observed, PackageGoal
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.instances import record_of, refuse_absent
from container_update.engine.journalled_run import JournalledRun
from container_update.engine.read_packages import read_packages, stored_images
from container_update.engine.run import preview, run
from container_update.engine.scripts import coordination
from container_update.engine.scripts.coordination import Coordination
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Outcome, Progress, StepResult, Vnfc
from container_update.model.plan import Plan
from container_update.planning.change import Planner
from container_update.planning.comparison import live_objects
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.steps import object_steps
from container_update.planning.steps.manifest import unexplained
from container_update.records.vnf_records import Records, services, workloads_of
from container_update.workloads import ownership


@dataclass(frozen=True)
class KubernetesView:
    """A VNF in a namespace of a cluster, whose change can be planned."""

    cluster: ReadOnlyCluster
    namespace: str = "default"
    def_files: tuple[str, ...] = ()
    """The instance's def-files; empty: every manifest that the old package lists."""
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How a script reaches the cluster: ``kubeconfig`` and ``context``, or a VIM connection."""
    one_namespace: bool = False
    """All objects are in that namespace, whatever their manifests say."""
    vim_type: str = "kubernetes"
    record: InstanceRecord | None = field(default=None, repr=False)
    """What the VNF runs from, where a job names no old package; None: its history says it."""

    def change(
        self, job: ChangeJob, planner: type[Planner], scripts: Coordination
    ) -> PackageChange:
        """Return the change of a job, as a strategy plans it."""
        return PackageChange(job, self, planner, scripts)


@dataclass(frozen=True)
class KubernetesTarget(KubernetesView):
    """The same, whose change can be carried out."""

    cluster: Cluster

    def change(
        self, job: ChangeJob, planner: type[Planner], scripts: Coordination
    ) -> RunnableChange:
        """Return the change of a job, as a strategy plans it."""
        return RunnableChange(job, self, planner, scripts)


@dataclass(frozen=True)
class _Facts:
    """Facts about a plan that the records need, also after a resume."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Old to new name of each VDU's workload that has another name."""
    network: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, str] = field(default_factory=dict)
    """Each VNFC's pod to its incarnation before the change."""


class PackageChange(PackageGoal):
    """All of a new package.

    :param packages: both, where the caller has them already; None: those that the job names.
    """

    asks_server = True

    def __init__(
        self,
        job: ChangeJob,
        target: KubernetesView,
        planner: type[Planner],
        scripts: Coordination,
        packages: Packages | None = None,
    ) -> None:
        self.scripts = job.request.script_params
        self.kind = job.request.upgrade_type
        self.namespace, self.instance_id = target.namespace, job.instance_id
        self.promotes = job.promote
        if not job.old and target.record is None:
            self.recorded_in = (target.namespace,)
        self._job, self._target, self._planner, self._scripts = job, target, planner, scripts
        self._given = packages
        self._observed: Observed | None = None
        self._plan: Plan | None = None
        self._facts = _Facts()

    def preview(self) -> Plan:
        """Return the plan; write nothing."""
        return preview(self, self._target.cluster, self._job.options)

    # --- the plan -------------------------------------------------------------------------------

    @cached_property
    def packages(self) -> Packages:
        """Both packages, read when they are first needed."""
        if self._given is not None:
            return self._given
        target = self._target
        placing = Placing(target.def_files, target.namespace, target.one_namespace)
        return read_packages(self._job, placing, self._record)

    @cached_property
    def _record(self) -> InstanceRecord | None:
        """What the instance runs from, where the job names no old package."""
        job, target = self._job, self._target
        if job.old:
            return None
        return target.record or record_of(
            target.cluster, target.namespace, job.instance_id, job.options
        )

    def digest(self) -> str:
        """See Goal; never the same as an update's."""
        return f"{self.kind} {digest_of(self.packages.new.values())}"

    def described(self) -> Sequence[Manifest]:
        """See Goal."""
        packages = self.packages
        of_new = (*packages.new.values(), *packages.kept.values())
        return packages.manifests if self._job.old else of_new

    def plan(self, observed: Observed) -> Plan:
        """Compare both packages with what is live."""
        self._observed, packages, request = observed, self.packages, self._job.request
        live = observed.read_packages(packages, self.namespace)
        refuse_missing_namespaces(
            packages.new, live, observed.informer.namespaces, observed.cluster
        )
        names = live_objects.live_names(live)
        there = {*live, *names}
        refuse_absent((*packages.old, *packages.new), there, self._job.old, self.namespace)
        pairs = (
            (packages.old.get(key), live_objects.with_live_name(new, names))
            for key, new in packages.new.items()
        )
        planner = self._planner(
            packages,
            live,
            self.namespace,
            self.instance_id,
            stored_images(observed.cluster, unexplained(pairs, live)),
            restart_for=self._job.options.restart_for,
            params=request.body["additionalParams"],
            scripts=request.script_paths,
        )
        plan = replace(planner.plan(), packages=packages.identities)
        if not plan.is_empty:
            unused = coordination.notes(self._job, planner.script_roles)
            plan = replace(plan, notes=(*plan.notes, *unused))
        self._plan = plan
        observed.informer.include(step.key for step in object_steps(plan))  # with their new names
        if not plan.is_empty:
            self._facts = _Facts(
                names=planner.names(),
                network=planner.connection_points(),
                storage=planner.claims(plan),
                pods={vnfc.pod_name: vnfc.incarnation for vnfc in self._vnfcs(plan)},
            )
        return plan

    def context(self) -> Json:
        """See Goal."""
        job, target = self._job, self._target
        return {
            "request": dict(job.request.body),
            "old": job.old,
            "new": job.new,
            "defFiles": list(target.def_files),
            "oneNamespace": target.one_namespace,
            "instance": dict(job.instance),
            "facts": asdict(self._facts),
        }

    def carry_out(self, run: JournalledRun) -> tuple[StepResult, ...]:
        """See Goal."""
        if run.execution.resumed:
            self._facts = _Facts(**run.record.context["facts"])
            self._scripts.reports.extend(run.record.scripts)
        self._scripts.operation, self._scripts.cancel = run.record.operation, run.execution.cancel
        run.execution.run_script = self._scripts.run
        return super().carry_out(run)

    # --- afterwards -----------------------------------------------------------------------------

    def _vnfcs(self, plan: Plan) -> tuple[Vnfc, ...]:
        assert self._observed is not None, "a plan is made of what is live"
        return ownership.vnfcs(self.vdus(), plan.manifests, self._observed.live)

    def records(self) -> Records:
        """Return the attributes that the specification lists for this way of changing."""
        assert self._plan is not None, "a plan is validated before there are records"
        names_files = self._job.request.def_files or self._target.def_files
        before, vnfcs = self._facts.pods, self._vnfcs(self._plan)
        return Records(
            vnfd_id=self.packages.vnfd_id,
            vnfcs=vnfcs,
            restarted=frozenset(
                vnfc.pod_name
                for vnfc in vnfcs
                if before.get(vnfc.pod_name, vnfc.incarnation) != vnfc.incarnation
            ),
            new_vnfc_ids=self._planner.new_vnfc_ids,
            def_files=self.packages.def_files if names_files else None,
            workloads=workloads_of(self.vdus(), self._plan.manifests),
            resource_names=self._facts.names,
            network_resources=self._facts.network,
            storage_resources=self._facts.storage,
            links=services(self._plan.manifests),
        )


class RunnableChange(PackageChange):
    """A change in a cluster that can be written to."""

    _target: KubernetesTarget

    def run(self, cancel: CancelToken, progress: Progress) -> Outcome:
        """Carry the change out; see :func:`~container_update.engine.run.run`."""
        job, cluster = self._job, self._target.cluster
        return run(self, cluster, job.options, cancel, progress, leave_failed=job.leave_failed)
