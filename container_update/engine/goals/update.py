# SPDX-License-Identifier: Apache-2.0
"""An update: what two packages say, and the goal of moving a running CNF from one to the other.

packages -> manifests -> matching -> live objects -> plan; carried out by
:mod:`container_update.engine.run`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cached_property, partial

from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import digest_of
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import refuse_missing, without_objects
from container_update.engine.goal import Goal, Intent, Observed
from container_update.engine.instances import record_of, refuse_absent
from container_update.engine.read_packages import (
    described_by,
    described_in,
    read_manifests,
    refuse_none,
    stored_images,
)
from container_update.model import context_threads
from container_update.model.cluster import ReadOnlyCluster, if_allowed
from container_update.model.errors import ClusterError, ContainerUpdateError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.options import Options
from container_update.model.plan import UPDATE, Plan
from container_update.model.requests import InstallRequest, UpdateRequest
from container_update.package import csar
from container_update.package.csar import identities_of
from container_update.package.manifests import ReadDocuments
from container_update.planning.comparison import match
from container_update.planning.configuration import Live
from container_update.planning.steps.manifest import unexplained_workloads
from container_update.planning.update import (
    differing_others,
    in_force,
    make_plan,
    unknown_workloads,
)
from container_update.workloads.registry import kind_of

LOG = logging.getLogger(__name__)


class Update(Goal):
    """The images and the configuration of a new package, and nothing else of it."""

    def __init__(
        self,
        request: UpdateRequest,
        options: Options = Options(),  # noqa: B008
        record: InstanceRecord | None = None,
    ) -> None:
        self.request = request
        self.options = options
        self._record = record
        namespace, spaces = request.namespace, None if record is None else (request.namespace,)
        self.intent = Intent(namespace, request.instance_id, UPDATE, recorded_in=spaces)
        self._read()

    @classmethod
    def of(cls, request: UpdateRequest, cluster: ReadOnlyCluster, options: Options) -> Update:
        """Return the goal of a request; the record stands for an old package not named."""
        if request.old:
            return cls(request, options)
        try:
            record = record_of(cluster, request.namespace, request.instance_id, options)
        except ContainerUpdateError:
            described_by(InstallRequest(request.new, namespace=request.namespace), options)
            raise  # the new package is right: the missing record is the error
        return cls(request, options, record)

    def _read(self) -> None:
        """Open each package once, and begin to read it."""
        request, packages = self.request, ExitStack()
        with packages:  # closes them where one cannot be opened
            new = packages.enter_context(csar.open_package(request.new, options=self.options))
            old: csar.Csar | InstanceRecord = self._record or packages.enter_context(
                csar.open_package(request.old, options=self.options)
            )
            packages = packages.pop_all()
        self._vdus = context_threads.in_background(lambda: dict(new.vdus()))
        self.matched = context_threads.in_background(lambda: _match(request, old, new))
        self._identities = identities_of(
            old.package if isinstance(old, InstanceRecord) else old, new, after=self._vdus
        )

        def close() -> None:
            for read in (self._vdus, self.matched, self._identities):
                with suppress(ContainerUpdateError):  # a caller that needs the value gets it
                    read()
            packages.close()

        context_threads.in_background(close)

    @cached_property
    def keys(self) -> list[ObjectKey]:
        """Every object that the update may concern."""
        matched = self.matched()
        return [manifest.key for manifest in (*(old for old, _ in matched.pairs), *matched.added)]

    def read_manifests(self) -> Sequence[Manifest]:
        """See Goal."""
        matched = self.matched()
        self._vdus()
        new = [new for new in (*(new for _, new in matched.pairs), *matched.added) if new]
        return new if self._record else [*new, *(old for old, _ in matched.pairs)]

    def digest(self) -> str:
        """See Goal: a digest of the manifests in force afterwards."""
        self.read_manifests()
        return digest_of(in_force(self.matched()))

    def scope(self) -> Scope:
        """See Goal."""
        scope, olds = Scope(self.keys), (old for old, _ in self.matched().pairs)
        kinds = ((old, kind_of(old.key)) for old in olds)
        controllers = [old for old, kind in kinds if kind and not kind.runs_to_completion]
        scope.include((), [(old.key, old.body) for old in controllers])
        return scope

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        informer, cluster = observed.informer, observed.cluster
        observed.list(self.keys)
        for namespace in without_objects(self.keys, informer.namespaces):
            refuse_missing(namespace, cluster)
        matched = self.matched()
        olds = (old.key for old, _ in matched.pairs)
        refuse_absent(olds, informer.live, self.request.old, self.intent.namespace)
        others = self._differing_others(observed) | self._unknown_workloads(observed)
        live = {**informer.live, **others}
        plan = plan_matching(self, matched, live, cluster, self.options)
        return replace(plan, packages=self._identities(), vdus=self._vdus())

    def _unknown_workloads(self, observed: Observed) -> dict[ObjectKey, Json]:
        """Return the objects of unknown kinds that may use configuration, live where readable."""
        described = unknown_workloads(old for old, _ in self.matched().pairs)
        read = observed.cluster.get
        bodies = {m.key: if_allowed(partial(read, m.key), m.body) for m in described}
        return {key: body for key, body in bodies.items() if body is not None}

    def _differing_others(self, observed: Observed) -> dict[ObjectKey, Json]:
        """Return the live objects that differ between the packages and are of kinds that an update
        does not write, as far as they can be read: what they have already is not noted."""
        cluster = observed.cluster.unretried

        def read(key: ObjectKey) -> Json | None:
            try:
                return cluster.get(key)
            except ClusterError as error:
                LOG.info("its differences are noted without a look at the cluster: %s", error)
                return None

        keys = [old.key for old in differing_others(self.matched().pairs)]
        with context_threads.pool(self.options.workers) as pool:
            bodies = zip(keys, pool.map(read, keys), strict=True)
            return {key: body for key, body in bodies if body is not None}


def plan_matching(
    goal: Goal, matched: match.Matching, live: Live, cluster: ReadOnlyCluster, options: Options
) -> Plan:
    """Return the plan of a matching, with what the server makes of its images."""
    return make_plan(
        matched,
        live,
        namespace=goal.intent.namespace,
        instance_id=goal.intent.instance_id,
        stored=stored_images(cluster, unexplained_workloads(matched.pairs, live)),
        restart_for=options.restart_for,
    )


def _match(
    request: UpdateRequest, old: csar.Csar | InstanceRecord, new: csar.Csar
) -> match.Matching:
    """Read the manifests of both packages and find each old object's new one."""
    known, whole = None, not request.def_files
    if isinstance(old, InstanceRecord):
        before, def_files = old.by_path, old.def_files
    else:
        known = ReadDocuments()
        before = described_in(old, request, known)
        def_files = tuple(before)
    listed = read_manifests(new, request.config_paths, request, known)
    if request.config_paths:
        refuse_none(listed, new, request.config_paths)
    kept_paths = [path for path in def_files if path not in listed and new.has(path)]
    kept = read_manifests(new, kept_paths, request, known)
    others: match.ByPath = {}
    if whole or match.unmatched_keys(before, listed, kept):
        paths = [path for path in new.manifest_files() if path not in listed and path not in kept]
        others = read_manifests(new, paths, request, known)
    refuse_none({**listed, **kept, **others}, new)
    if known is not None and whole:  # in all files no object may be there twice
        match.index({**listed, **kept, **others})
    return match.match(before, listed, kept, others, whole=whole)
