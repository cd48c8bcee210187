# SPDX-License-Identifier: Apache-2.0
"""The goal of a change of the package on Kubernetes: all of a new package, as a planner says.

Blue-Green, rolling update and every other strategy differ in the plan that they make, in nothing
else: lease, journal, waiting and undo are those of every operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import digest_of
from container_update.engine.checks.namespaces import refuse_missing_namespaces
from container_update.engine.goal import Intent, Observed, PackageGoal
from container_update.engine.goals import upgrade_types
from container_update.engine.goals.change_request import ChangeRequest, FromVnfm
from container_update.engine.instances import record_of, refuse_absent
from container_update.engine.journalled_run import JournalledRun
from container_update.engine.read_packages import read_packages, stored_images
from container_update.engine.scripts import coordination
from container_update.engine.scripts.coordination import Coordination
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.objects import Json, Manifest
from container_update.model.options import Options
from container_update.model.outcome import Outcome, StepResult, Vnfc
from container_update.model.plan import Plan
from container_update.model.requests import ChangePackageRequest
from container_update.model.scripts import ScriptReport
from container_update.package import csar
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.steps import object_steps
from container_update.planning.steps.manifest import unexplained_workloads
from container_update.planning.strategy import Strategy
from container_update.records.vnf_records import Records, services, workloads_of
from container_update.workloads import ownership

_VIM = "kubernetes"


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

    :param record: what the VNF runs from, where the request names no old package and no history
        says it.
    :param packages: both, where the caller has them already; None: those that the request names.
    """

    def __init__(  # noqa: PLR0913
        self,
        request: ChangePackageRequest,
        cluster: ReadOnlyCluster,
        options: Options = Options(),  # noqa: B008
        vnfm: FromVnfm = FromVnfm(),  # noqa: B008
        *,
        record: InstanceRecord | None = None,
        packages: Packages | None = None,
    ) -> None:
        self._given, self._cluster, self._options = request, cluster, options
        self._opened, body = None, request.body
        with ExitStack() as opened:  # closes the package where the request is wrong
            if "vnfdId" not in body:  # the new package says it, and stays open until it is read
                package = csar.open_package(request.new, options=options)
                self._opened = opened.enter_context(package)
                body = {**body, "vnfdId": self._opened.vnfd_id or "unknown"}
            self.change = change = ChangeRequest.of(body, _VIM)
            self._planner: type[Strategy] = upgrade_types.find(_VIM, change.upgrade_type)
            self._open = opened.pop_all()
        self.coordination = Coordination.of(request, change, options, vnfm, cluster.access)
        self.intent = Intent(
            request.namespace,
            request.instance_id,
            change.upgrade_type,
            asks_server=True,
            promotes=vnfm.promoted,
            scripts=change.script_params,
            recorded_in=None if request.old or record is not None else (request.namespace,),
        )
        self._known_record, self._known_packages = record, packages
        self._observed: Observed | None = None
        self._plan: Plan | None = None
        self._facts = _Facts()

    @property
    def reports(self) -> Sequence[ScriptReport]:
        """Every run of a coordination script, in order."""
        return tuple(self.coordination.reports)

    # --- the plan -------------------------------------------------------------------------------

    @cached_property
    def packages(self) -> Packages:
        """Both packages, read when they are first needed."""
        if self._known_packages is not None:
            return self._known_packages
        with self._open:
            return read_packages(
                self._given, self.change, self._options, self._record, self._opened
            )

    @cached_property
    def _record(self) -> InstanceRecord | None:
        """What the instance runs from, where the request names no old package."""
        if self._given.old:
            return None
        return self._known_record or record_of(self._cluster, *self.intent.where, self._options)

    def digest(self) -> str:
        """See Goal; never the same as an update's."""
        return f"{self.intent.kind} {digest_of(self.packages.new.values())}"

    def read_manifests(self) -> Sequence[Manifest]:
        """See Goal."""
        packages = self.packages
        of_new = (*packages.new.values(), *packages.kept.values())
        return packages.manifests if self._given.old else of_new

    def plan(self, observed: Observed) -> Plan:
        """Compare both packages with the live objects."""
        self._observed, packages, change = observed, self.packages, self.change
        namespace, instance_id = self.intent.where
        live = observed.read_packages(packages, namespace)
        refuse_missing_namespaces(
            packages.new, live, observed.informer.namespaces, observed.cluster
        )
        refuse_absent((*packages.old, *packages.new), live, self._given.old, namespace)
        pairs = ((packages.old.get(key), new) for key, new in packages.new.items())
        planner = self._planner(
            packages,
            live,
            namespace,
            instance_id,
            stored_images(observed.cluster, unexplained_workloads(pairs, live)),
            restart_for=self._options.restart_for,
            params=change.body["additionalParams"],
            scripts=change.script_paths,
        )
        plan = replace(planner.plan(), packages=packages.identities, vdus=packages.vdus)
        if not plan.is_empty:
            unused = coordination.notes(change, planner.script_roles)
            plan = replace(plan, notes=(*plan.notes, *unused))
        observed.informer.include(step.key for step in object_steps(plan))  # with their new names
        if not plan.is_empty:
            self._facts = _Facts(
                names=planner.names(),
                network=planner.connection_points(),
                storage=planner.claims(plan),
                pods={vnfc.pod_name: vnfc.incarnation for vnfc in self._vnfcs(plan)},
            )
        self._plan = replace(plan, context=self._context())
        return self._plan

    def _context(self) -> Json:
        given = self._given
        return {
            "request": dict(self.change.body),
            "old": given.old,
            "new": given.new,
            "defFiles": list(given.def_files),
            "oneNamespace": given.one_namespace,
            "instance": dict(self.coordination.about.vnfm.instance),
            "facts": asdict(self._facts),
        }

    def carry_out(self, run: JournalledRun) -> tuple[StepResult, ...]:
        """See Goal."""
        if run.execution.resumed:
            self._facts = _Facts(**run.record.context["facts"])
            self.coordination.reports.extend(run.record.scripts)
        scripts = self.coordination
        scripts.operation, scripts.cancel = run.record.operation, run.execution.cancel
        run.execution.run_script = scripts.run
        return super().carry_out(run)

    # --- afterwards -----------------------------------------------------------------------------

    def _vnfcs(self, plan: Plan) -> tuple[Vnfc, ...]:
        assert self._observed is not None, "a plan is made of live objects"
        return ownership.vnfcs(plan.vdus, plan.manifests, self._observed.live)

    def records(self, outcome: Outcome) -> Records:  # noqa: ARG002, the plan says more
        """Return the attributes that the specification lists for this way of changing."""
        assert self._plan is not None, "a plan is validated before there are records"
        names_files = self.change.def_files or self._given.def_files
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
            workloads=workloads_of(self._plan.vdus, self._plan.manifests),
            resource_names=self._facts.names,
            network_resources=self._facts.network,
            storage_resources=self._facts.storage,
            links=services(self._plan.manifests),
        )
