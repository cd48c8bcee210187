# SPDX-License-Identifier: Apache-2.0
"""The installation of a package: everything that it describes, as a goal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from container_update.cluster.history import History
from container_update.cluster.operation import digest_of
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import refuse_missing, refuse_missing_namespaces
from container_update.engine.goal import Observed, PackageGoal
from container_update.engine.instances import manifests_in_record
from container_update.engine.read_packages import packages_of
from container_update.engine.run import run
from container_update.model import context_threads
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import PlanError
from container_update.model.objects import Manifest, namespace_key
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import INSTALL, Plan
from container_update.model.requests import PackageIdentity
from container_update.package import csar
from container_update.package.csar import identity_of
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.finished_jobs import gone_jobs
from container_update.planning.lifecycle import install_plan
from container_update.workloads.readiness import with_replicas
from container_update.workloads.registry import kind_of


def install(  # noqa: PLR0913
    package: str,
    cluster: Cluster,
    *,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    instance_id: str | None = None,
    options: Options = Options(),  # noqa: B008
    replicas: Mapping[str, int] = {},
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    leave_failed: bool = False,
) -> Outcome:
    """Create everything that a package describes, in the order of its kinds, and wait for it.

    What the instance has already stays as it is; if something does not get Ready, what this run
    created is deleted again, and nothing else.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     install("packages/v1", cluster, namespace="cnf", instance_id="vnf-1")

    :param package: a folder, a CSAR zip, a YAML file, or ``-`` for standard input.
    :param cluster: where to create them.
    :param def_files: paths in the package; empty: every manifest that it lists.
    :param namespace: of the objects whose manifests name none.
    :param one_namespace: all objects go to *namespace*, whatever their manifests say.
    :param instance_id: the VNF instance; becomes the label that Tacker puts on what it creates.
        None: the product's name, where no instance has it yet.
    :param replicas: a workload's name to its number of pods; without, as its manifest says. For a
        kind that is not scaled (Pod, DaemonSet) it is not looked at.
    :returns: its plan has the id of the instance. The other parameters and the errors are those of
        :func:`~container_update.engine.run.run`.
    :raises PlanError: an object exists and is not this instance's; nothing was written.
    """
    placing = Placing(tuple(def_files), namespace, one_namespace)
    goal = Install(package, placing, instance_id, options, replicas)
    if instance_id is None:
        goal.refuse_taken(cluster)
    return run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)


class Install(PackageGoal):
    """Everything that a package describes."""

    kind = INSTALL
    asks_server = True

    def __init__(
        self,
        package: str,
        placing: Placing,
        instance_id: str | None,
        options: Options = Options(),  # noqa: B008
        replicas: Mapping[str, int] = {},
    ) -> None:
        self.namespace = placing.namespace
        self._source, self._placing, self._options = package, placing, options
        self._replicas = replicas
        self._read = context_threads.in_background(self._read_package)
        self.instance_id: str = instance_id or name_of(self.packages.identities[0])

    def _read_package(self) -> Packages:
        with csar.open_package(self._source, options=self._options) as opened:
            packages = packages_of(opened, self._placing)
            identity = identity_of(opened)
        new = {key: _with_replicas(each, self._replicas) for key, each in packages.new.items()}
        return replace(packages, old=new, new=new, identities=(identity,))

    @property
    def packages(self) -> Packages:
        """See PackageGoal."""
        return self._read()

    def refuse_taken(self, cluster: ReadOnlyCluster) -> None:
        """Raise PlanError where the name of the product is another instance's."""
        retrying = RetryingReader(cluster, self._options.retry_seconds)
        taken = History(retrying, self.namespace, self.instance_id).instance()
        if taken is not None:
            raise PlanError(
                f"namespace {self.namespace} has a VNF instance {self.instance_id} already, which "
                f"runs from {taken.package}: expected no instance of this name; give this one "
                "another instance id, or that one's to add what is missing of it"
            )

    def digest(self) -> str:
        """See Goal: a digest of the manifests."""
        return f"{INSTALL} {digest_of(self.packages.new.values())}"

    def scope(self) -> Scope:
        """See Goal."""
        return Scope(self.packages.keys)

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        packages, cluster = self.packages, observed.cluster
        keys = packages.keys
        if namespace_key(self.namespace) not in keys:
            refuse_missing(self.namespace, cluster)
        live = observed.read(keys)
        refuse_missing_namespaces(
            keys, live, {self.namespace, *observed.informer.namespaces}, cluster
        )
        manifests, def_files = tuple(packages.new.values()), packages.def_files
        where = self.namespace, self.instance_id
        recorded = manifests_in_record(cluster, *where) if gone_jobs(manifests, live) else None
        plan = install_plan(manifests, live, *where, def_files, recorded or {})
        return replace(plan, packages=packages.identities)


def _with_replicas(manifest: Manifest, replicas: Mapping[str, int]) -> Manifest:
    kind, number = kind_of(manifest.key), replicas.get(manifest.key.name)
    if number is None or kind is None or not kind.is_scaled:
        return manifest
    return replace(manifest, body=with_replicas(manifest.body, number))


def name_of(package: PackageIdentity) -> str:
    """Return the id of an instance that is given none: the product's name, else the package's.

    >>> name_of(PackageIdentity("packages/my upf.zip", "", "", sha256=""))
    'my-upf'
    """
    name = package.product or Path(package.source).absolute().stem
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:63].strip("-_.") or "vnf"
