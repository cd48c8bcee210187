# SPDX-License-Identifier: Apache-2.0
"""The installation of a package: everything that it describes, as a goal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from container_update.cluster.operation import digest_of
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import (
    namespace_manifest,
    refuse_missing,
    refuse_missing_namespaces,
)
from container_update.engine.goal import Intent, Observed, PackageGoal
from container_update.engine.instances import manifests_in_record
from container_update.engine.read_packages import packages_of
from container_update.model import context_threads
from container_update.model.objects import Manifest, namespace_key
from container_update.model.options import Options
from container_update.model.plan import INSTALL, Plan
from container_update.model.requests import InstallRequest, PackageIdentity
from container_update.package import csar
from container_update.package.csar import identity_of
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.finished_jobs import gone_jobs
from container_update.planning.lifecycle import install_plan
from container_update.workloads.readiness import with_replicas
from container_update.workloads.registry import kind_of


class Install(PackageGoal):
    """Everything that a package describes; *replicas*: pods by the name of a scaled workload."""

    def __init__(
        self,
        request: InstallRequest,
        options: Options = Options(),  # noqa: B008
        replicas: Mapping[str, int] = {},
    ) -> None:
        self._given, self._options, self._replicas = request, options, replicas
        self._read = context_threads.in_background(self._read_package)
        name = request.instance_id or name_of(self.packages.identities[0])
        self.intent = Intent(request.namespace, name, INSTALL, asks_server=True)

    def _read_package(self) -> Packages:
        with csar.open_package(self._given.package, options=self._options) as opened:
            packages = packages_of(opened, self._given)
            identity = identity_of(opened)
        new = {key: _with_replicas(each, self._replicas) for key, each in packages.new.items()}
        return replace(packages, old=new, new=new, identities=(identity,))

    @property
    def packages(self) -> Packages:
        """See PackageGoal."""
        return self._read()

    def digest(self) -> str:
        """See Goal: a digest of the manifests."""
        return f"{INSTALL} {digest_of(self.packages.new.values())}"

    def scope(self) -> Scope:
        """See Goal."""
        return Scope(self.packages.keys)

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        packages, cluster = self.packages, observed.cluster
        namespace, name = self.intent.where
        assert name is not None, "it was given, or is the product's"
        manifests, own = tuple(packages.new.values()), namespace_key(namespace)
        keys = packages.keys
        if own not in keys and self._given.create_namespace and cluster.get(own) is None:
            keys = (own, *keys)
            manifests = (namespace_manifest(namespace), *manifests)
        elif own not in keys:
            refuse_missing(namespace, cluster)
        live = observed.read(keys)
        refuse_missing_namespaces(keys, live, {namespace, *observed.informer.namespaces}, cluster)
        recorded = (
            manifests_in_record(cluster, namespace, name) if gone_jobs(manifests, live) else None
        )
        plan = install_plan(manifests, live, namespace, name, packages.def_files, recorded or {})
        described = tuple(each for each in plan.manifests if each.key in packages.keys)
        return replace(plan, packages=packages.identities, manifests=described, vdus=packages.vdus)


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
