"""What both Kubernetes strategies share: they carry out another plan in the way of an update.

The plan's stages are the strategy's phases: objects and workloads are prepared, Services switched,
what is old removed. Lease, journal, waiting and undo are an update's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from container_update.cluster.execution.journalled_run import JournalledRun
from container_update.cluster.execution.operation import Operation
from container_update.cluster.history.instance_record import InstanceRecord
from container_update.cluster.record import digest_of
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Outcome, Progress, StepResult, Vnfc
from container_update.model.plan import Action, Plan, Stage
from container_update.operations.checks.namespaces import refuse_missing_namespaces
from container_update.operations.goal import Goal, Observed
from container_update.operations.instances import record_of
from container_update.operations.read_packages import read_packages, stored_images
from container_update.operations.records.vnf_records import Records, services, workloads_of
from container_update.operations.run import preview, run
from container_update.operations.strategies.strategy import CarryOut, ChangeJob, Strategy, VduChange
from container_update.planning.change import ChangePlanner
from container_update.planning.comparison import renames
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.release_labels import selector_of
from container_update.planning.steps import ManifestStep, object_steps
from container_update.planning.steps.stored_images import unexplained
from container_update.workloads import ownership, pod_template
from container_update.workloads.registry import is_workload

_OBJECTS_DONE = "objects"
"""A milestone: held Services must not be held again after they were switched."""


@dataclass(frozen=True)
class KubernetesTarget:
    """A VNF in a namespace of a cluster."""

    cluster: Cluster
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


@dataclass(frozen=True)
class _Facts:
    """What the scripts and the records need to know of a plan, also after a resume."""

    targets: tuple[VduChange, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Old to new name of a VDU's workload, where that changed."""
    network: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, str] = field(default_factory=dict)
    """Each VNFC's pod to its incarnation before the change."""

    @classmethod
    def of(cls, body: Json) -> _Facts:
        targets = tuple(VduChange(**vdu) for vdu in body["targets"])
        pods = body.get("pods") or {}  # a journal of an earlier version has none
        return cls(targets, body["names"], body["network"], body["storage"], pods)


class KubernetesStrategy(Strategy):
    """A strategy that carries out a plan in a cluster; a subclass says how it is made."""

    planner: ClassVar[type[ChangePlanner]]
    new_vnfc_ids: ClassVar[bool]
    """See :class:`~container_update.operations.records.vnf_records.Records`."""

    target: KubernetesTarget

    def __init__(
        self, job: ChangeJob, target: Any, cancel: CancelToken, progress: Progress
    ) -> None:
        super().__init__(job, target, cancel, progress)
        self._observed: Observed | None = None
        self._planner: ChangePlanner | None = None
        self._plan: Plan | None = None
        self._run: JournalledRun | None = None
        self._facts = _Facts()

    # --- the plan -------------------------------------------------------------------------------

    @cached_property
    def packages(self) -> Packages:
        """Both packages, read when they are first needed."""
        target = self.target
        placing = Placing(target.def_files, target.namespace, target.one_namespace)
        return read_packages(self.job, placing, self._record)

    @cached_property
    def _record(self) -> InstanceRecord | None:
        """What the instance runs from, where the job names no old package."""
        job, target = self.job, self.target
        if job.old:
            return None
        return target.record or record_of(
            target.cluster, target.namespace, job.instance_id, job.options
        )

    def planned(self, observed: Observed) -> Plan:
        """Compare both packages with what is live."""
        self._observed = observed
        live = observed.read_packages(self.packages, self.target.namespace)
        refuse_missing_namespaces(
            self.packages.new, live, observed.informer.namespaces, observed.cluster
        )
        packages, there = self.packages, renames.live_names(live)
        pairs = (
            (packages.old.get(key), renames.with_live_name(new, there))
            for key, new in packages.new.items()
        )
        stored = stored_images(observed.cluster, unexplained(pairs, live))
        planner = self.planner(
            packages,
            live,
            self.target.namespace,
            self.job.instance_id,
            stored,
            restart_for=self.job.options.restart_for,
        )
        self._planner = planner
        self._plan = plan = replace(planner.plan(), packages=packages.identities)
        observed.informer.include(step.key for step in object_steps(plan))  # some get other names
        return plan

    def _facts_of(self, plan: Plan) -> _Facts:
        assert self._planner is not None, "it made the plan"
        names = self.successors(self._planner)
        return _Facts(
            targets=tuple(self._vdus(plan, self._planner, names)),
            names=names,
            network=self.connection_points(self._planner),
            storage=_claims(plan, names),
            pods={vnfc.pod_name: vnfc.incarnation for vnfc in self._vnfcs(plan)},
        )

    def successors(self, planner: ChangePlanner) -> dict[str, str]:  # noqa: ARG002
        """Return old to new name of a VDU's workload, where another one replaces it."""
        return {}

    def connection_points(self, planner: ChangePlanner) -> dict[str, str]:  # noqa: ARG002
        """Return old to new name of the VNF's Services, where another one replaces it."""
        return {}

    def _vdus(
        self, plan: Plan, planner: ChangePlanner, names: Mapping[str, str]
    ) -> Iterator[VduChange]:
        old_names = {new: old for old, new in names.items()}
        manifest_names = {live: named for named, live in planner.renamed.items()}
        services = [
            {"name": s.key.name, "namespace": s.key.namespace, "selector": selector_of(s.content)}
            for s in object_steps(plan)
            if isinstance(s, ManifestStep)
            and s.stage is Stage.SWITCH
            and s.key.kind == "Service"
            and s.content is not None
        ]
        for step in object_steps(plan):
            if step.stage is not Stage.WORKLOADS:
                continue
            key = replace(step.key, name=manifest_names.get(step.key.name, step.key.name))
            yield VduChange(
                vdu_id=self.packages.vdu_of(key),
                old_resource=old_names.get(step.key.name, step.key.name if step.before else ""),
                new_resource=step.key.name,
                details={
                    "kind": step.key.kind,
                    "namespace": step.key.namespace,
                    "services": services,
                },
            )

    # --- the run --------------------------------------------------------------------------------

    def run(self, carry_out: CarryOut) -> Outcome:
        """See Strategy."""
        job = self.job
        return run(
            Change(self, carry_out),
            self.target.cluster,
            job.options,
            self.cancel,
            self.progress,
            leave_failed=job.leave_failed,
        )

    def preview(self) -> Plan:
        """See Strategy."""
        return preview(Change(self, lambda _: None), self.target.cluster, self.job.options)

    def resume(self, carry_out: CarryOut) -> Outcome | None:
        """See Strategy."""
        job, target = self.job, self.target
        instance = Operation(
            RetryingCluster(target.cluster, job.options.retry_seconds),
            target.namespace,
            job.instance_id,
            job.options,
            self.progress,
            job.leave_failed,
        )
        go_on = Change(self, carry_out).carry_out
        return instance.recover(cancel=self.cancel, go_on=go_on, described=self.described)

    def begin(self, run: JournalledRun, *, resumed: bool) -> None:
        """Take over a run, which an earlier one may have begun."""
        self._run = run
        if resumed:
            self._facts = _Facts.of(run.record.context["facts"])
        run.execution.begin(resumed=resumed)

    def digest(self) -> str:
        """Return the goal in the journal's record; never the same as an update's."""
        kind = self.job.request.upgrade_type
        return f"{kind} {digest_of(self.packages.new.values())}"

    def context(self, plan: Plan) -> Json:
        """Return what a resume needs beside the steps of the plan that begins."""
        job, target = self.job, self.target
        self._facts = self._facts_of(plan)
        return {
            "request": dict(job.request.body),
            "old": job.old,
            "new": job.new,
            "defFiles": list(target.def_files),
            "oneNamespace": target.one_namespace,
            "instance": dict(job.instance),
            "facts": asdict(self._facts),
        }

    @property
    def _running(self) -> JournalledRun:
        assert self._run is not None, "the change was begun"
        return self._run

    def prepare(self) -> None:
        """Write configuration and other objects, then wait until every new pod is Ready."""
        run = self._running
        if not any(step.action is Action.HOLD for step in run.execution.plan.steps):
            run.execution.advance(Stage.OBJECTS, Stage.WORKLOADS)
            return
        if run.has_passed(_OBJECTS_DONE):
            run.execution.skip(Stage.OBJECTS)
        else:
            run.execution.advance(Stage.OBJECTS)
            run.pass_milestone(_OBJECTS_DONE)
        run.execution.advance(Stage.WORKLOADS)

    def switch_over(self) -> None:
        """Switch the Services and wait until their endpoints are the new pods."""
        self._running.execution.advance(Stage.SWITCH)

    def finish(self) -> None:
        """Delete the old objects."""
        self._running.execution.advance(Stage.REMOVE)

    def undo(self, cause: str) -> NoReturn:
        """See Strategy."""
        self._running.execution.give_up(cause)

    # --- around it ------------------------------------------------------------------------------

    def vdus(self) -> Sequence[VduChange]:
        """Return the workloads that changed, with the pods that they have now."""
        return [self._with_pods(vdu) for vdu in self._facts.targets]

    def _with_pods(self, vdu: VduChange) -> VduChange:
        informer = self._running.execution.informer

        def pods(name: str) -> dict[str, str]:
            """Return the names of the pods to their addresses."""
            key = ObjectKey("apps", vdu.details["kind"], vdu.details["namespace"], name)
            live = informer.get(key)
            found = informer.pods_of(live) if live else ()
            return {p["metadata"]["name"]: p.get("status", {}).get("podIP", "") for p in found}

        new, old = pods(vdu.new_resource), pods(vdu.old_resource) if vdu.old_resource else {}
        first = {which: next(iter(ips.values()), "") for which, ips in (("new", new), ("old", old))}
        return replace(
            vdu,
            details={
                **vdu.details,
                "new_pods": list(new),
                "old_pods": list(old),
                "pod_ips": {**old, **new},
            },
            ssh_ips={which: ip for which, ip in first.items() if ip},
            operation=self._running.record.operation,
        )

    def has_passed(self, milestone: str) -> bool:
        """See Strategy."""
        return self._running.has_passed(milestone)

    def pass_milestone(self, milestone: str) -> None:
        """See Strategy."""
        self._running.pass_milestone(milestone)

    def _vnfcs(self, plan: Plan) -> tuple[Vnfc, ...]:
        assert self._observed is not None, "a plan is made of what is live"
        return ownership.vnfcs(self.packages.vdus, plan.manifests, self._observed.live)

    def records(self) -> Records:
        """Return the attributes that the specification lists for this way of changing."""
        assert self._plan is not None, "a plan is validated before there are records"
        names_files = self.job.request.def_files or self.target.def_files
        before, vnfcs = self._facts.pods, self._vnfcs(self._plan)
        return Records(
            vnfd_id=self.packages.vnfd_id,
            vnfcs=vnfcs,
            restarted=frozenset(
                vnfc.pod_name
                for vnfc in vnfcs
                if before.get(vnfc.pod_name, vnfc.incarnation) != vnfc.incarnation
            ),
            new_vnfc_ids=self.new_vnfc_ids,
            def_files=self.packages.def_files if names_files else None,
            workloads=workloads_of(self.packages.vdus, self._plan.manifests),
            resource_names=self._facts.names,
            network_resources=self._facts.network,
            storage_resources=self._facts.storage,
            links=services(self._plan.manifests),
        )


def _claims(plan: Plan, names: Mapping[str, str]) -> dict[str, str]:
    """Return old to new PersistentVolumeClaim of the workloads that others replace."""
    steps = {
        (step.action, step.key.name): step
        for step in plan.steps
        if isinstance(step, ManifestStep) and is_workload(step.key)
    }
    claims = {}
    for old_name, new_name in names.items():
        old, new = steps.get((Action.DELETE, old_name)), steps.get((Action.CREATE, new_name))
        before = pod_template.claims(old.before or {}) if old else {}
        after = pod_template.claims(new.content or {}) if new else {}
        claims.update({before[volume]: after[volume] for volume in before if volume in after})
    return {old: new for old, new in claims.items() if old != new}


class Change(Goal):
    """All of a new package, in the way that a strategy plans and carries out.

    :param carry_out: runs the strategy's phases, and the coordination scripts between them.
    """

    asks_server = True

    def __init__(self, strategy: KubernetesStrategy, carry_out: CarryOut) -> None:
        job, target = strategy.job, strategy.target
        self.kind = job.request.upgrade_type
        self.namespace, self.instance_id = target.namespace, job.instance_id
        self._strategy, self._carry_out = strategy, carry_out

    def digest(self) -> str:
        """See Goal."""
        return self._strategy.digest()

    def check(self) -> None:
        """See Goal."""
        assert self._strategy.packages, "they are read"

    def described(self) -> Iterable[ObjectKey]:
        """See Goal."""
        packages = self._strategy.packages
        return packages.keys if self._strategy.job.old else [*packages.new, *packages.kept]

    @property
    def recorded_in(self) -> Iterable[str] | None:
        """See Goal."""
        job, target = self._strategy.job, self._strategy.target
        return [self.namespace] if not job.old and target.record is None else None

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        return self._strategy.noted(self._strategy.planned(observed))

    def context(self, plan: Plan) -> Json:
        """See Goal."""
        return self._strategy.context(plan)

    def carry_out(self, run: JournalledRun, *, resumed: bool = False) -> tuple[StepResult, ...]:
        """See Goal."""
        self._strategy.begin(run, resumed=resumed)
        self._carry_out(self._strategy)
        return run.execution.results

    def vdus(self) -> Mapping[str, str]:
        """See Goal."""
        return self._strategy.packages.vdus
