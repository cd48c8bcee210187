# SPDX-License-Identifier: Apache-2.0
"""Read the packages of an operation and their live objects; check a request to change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from container_update.cluster.instance_record import InstanceRecord
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import ClusterError, PackageError
from container_update.model.objects import CLUSTER_SCOPED, Json, Manifest, ObjectKey
from container_update.model.options import Options
from container_update.model.requests import (
    DEF_FILES,
    ChangePackageRequest,
    InstallRequest,
    Placing,
    TerminateRequest,
)
from container_update.model.scripts import NEW, OLD
from container_update.package import csar, fetch, rendering
from container_update.package.csar import identities_of
from container_update.package.findings import Severity
from container_update.package.manifests import ReadDocuments
from container_update.planning.comparison import match, package_pair
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.steps.manifest import StoredImages
from container_update.workloads import pod_template
from container_update.workloads.api_resources import is_built_in
from container_update.workloads.registry import is_workload

if TYPE_CHECKING:
    from container_update.engine.goals.change_request import ChangeRequest

LOG = logging.getLogger(__name__)
_NAMESPACE_FIELD = b"namespace"
"""In a text without it nothing names one: it need not be parsed."""


def read_packages(
    request: ChangePackageRequest,
    change: ChangeRequest,
    options: Options,
    record: InstanceRecord | None = None,
    opened: csar.Csar | None = None,
) -> Packages:
    """Read what a change needs of both packages; each is opened once.

    :param change: what the body of the request says.
    :param record: what the instance runs from, instead of the old package.
    :param opened: the new package, where the caller has opened it.
    :raises PackageError: a package or the request is wrong.
    """
    with ExitStack() as stack:
        after = opened or stack.enter_context(csar.open_package(request.new, options=options))
        before: csar.Csar | InstanceRecord | None = record
        if before is None:
            before = stack.enter_context(csar.open_package(request.old, options=options))
        packages = _pair(change, request, before, after)
        known = before if isinstance(before, csar.Csar) else before.package
        packages = replace(packages, identities=identities_of(known, after)())
        check_packages(change, after, before if isinstance(before, csar.Csar) else None)
        check_listed(change.def_files, after)
    _refuse_unknown_vdus(change, packages)
    return packages


def _pair(
    request: ChangeRequest, placing: Placing, before: csar.Csar | InstanceRecord, after: csar.Csar
) -> Packages:
    known = ReadDocuments()
    if isinstance(before, InstanceRecord):
        old, old_vdus = before.by_path, before.vdus
    else:
        old, old_vdus = described_in(before, placing, known), dict(before.vdus())
    new_files = request.def_files or (*after.manifest_files(), *filter(fetch.is_url, old))
    listed = read_manifests(after, new_files, placing, known)
    refuse_none(listed, after, request.def_files)
    others: match.ByPath = {}
    if match.unmatched_keys(old, listed):  # an old object may be in one of its other files
        paths = [path for path in old if after.has(path)] + list(after.manifest_files())
        unread = (path for path in paths if path not in listed)
        others = read_manifests(after, unread, placing, known)
    return package_pair.pair(
        old,
        listed,
        others,
        old_vdus=old_vdus,
        new_vdus=dict(after.vdus()),
        vnfd_id=request.vnfd_id,
        chosen=frozenset(vdu.vdu_id for vdu in request.vdu_params) or None,
    )


def packages_of(package: csar.Csar, placing: Placing) -> Packages:
    """Return an opened package as both the old one and the new one, for a VNF that keeps it."""
    by_path = described_in(package, placing)
    objects, vdus = match.index(by_path), dict(package.vdus())
    return Packages(objects, objects, vdus, vdus, package.vnfd_id, tuple(by_path))


def described_in(
    package: csar.Csar, placing: Placing, known: ReadDocuments | None = None
) -> dict[str, tuple[Manifest, ...]]:
    """Return the manifests of an opened package by their def-files, each under the identity that
    its object has in the cluster.

    :raises PackageError: a manifest is wrong, or an object is there twice.
    """
    files = placing.def_files or package.manifest_files()
    by_path = read_manifests(package, files, placing, known)
    refuse_none(by_path, package, placing.def_files)
    match.index(by_path)
    return by_path


def described_by(
    request: InstallRequest | TerminateRequest, options: Options
) -> tuple[Manifest, ...]:
    """Return the manifests of a request's package, as :func:`described_in`; none without one."""
    if request.package is None:
        return ()
    with csar.open_package(request.package, options=options) as opened:
        by_path = described_in(opened, request)
    return tuple(manifest for manifests in by_path.values() for manifest in manifests)


def named_namespaces(source: str, options: Options) -> frozenset[str]:
    """Return the namespaces that the manifests of a package name; '' among them: an object of a
    built-in kind names none. A custom resource that names none tells nothing: it may be in none.

    A chart is rendered for a namespace: it names none before. What is wrong in a package is left to
    the operation that reads it.
    """
    if options.render and rendering.is_chart(Path(source)):
        return frozenset({""})
    with suppress(PackageError), csar.open_package(source, options=options) as package:
        paths = package.manifest_files()
        if any(_NAMESPACE_FIELD in package.read(path) for path in paths):
            keys = (m.key for path in paths for m in package.manifests(path, ""))
            namespaced = (key for key in keys if (key.group, key.kind) not in CLUSTER_SCOPED)
            return frozenset(
                key.namespace for key in namespaced if key.namespace or is_built_in(key.group)
            )
    return frozenset({""})


def read_manifests(
    package: csar.Csar,
    paths: Iterable[str],
    request: Placing,
    known: ReadDocuments | None = None,
) -> dict[str, tuple[Manifest, ...]]:
    """Return the manifests of def-files, by their paths; log what their authors may not mean.

    :param known: what was read before for the same request, as in
        :func:`~container_update.package.manifests.parse`.
    """
    before = package.findings
    by_path = {
        path: tuple(
            place_manifest(manifest, request)
            for manifest in package.manifests(path, request.namespace, known)
        )
        for path in dict.fromkeys(paths)
    }
    for finding in package.findings[len(before) :]:
        if finding.severity is Severity.WARNING:
            place = f"{finding.file}:{finding.line} in {package.source}"
            LOG.warning("%s: %s: %s", place, finding.message, finding.advice)
    return by_path


def refuse_none(manifests: match.ByPath, package: csar.Csar, def_files: Sequence[str] = ()) -> None:
    """Raise PackageError where a package, or its named files, have no manifests."""
    if not any(manifests.values()):
        from container_update.package.tools import no_manifests  # noqa: PLC0415, for the error

        raise no_manifests.refusal(package, def_files)


def place_manifest(manifest: Manifest, request: Placing) -> Manifest:
    """Return the manifest with the namespace that its object really has."""
    if not (request.one_namespace and manifest.key.namespace):
        return manifest
    return replace(manifest, key=replace(manifest.key, namespace=request.namespace))


def check_packages(request: ChangeRequest, new: csar.Csar, old: csar.Csar | None) -> None:
    """Check that the new package is the one of the request, and that the scripts are there."""
    if new.vnfd_id and new.vnfd_id != request.vnfd_id:
        raise PackageError(
            f"vnfdId: expected {new.vnfd_id}, which the VNFD in {new.source} has, found "
            f"{request.vnfd_id}: this is not the package that the request asks for"
        )
    from container_update.engine.scripts.located import package_with_script  # noqa: PLC0415

    packages = {NEW: new, OLD: old} if old else {NEW: new}
    gates = ((NEW, script) for script in request.gate_scripts)
    for which, script in (*request.scripts.items(), *gates):
        package_with_script(script, which, packages)


def check_listed(paths: Iterable[str], package: csar.Csar) -> None:
    """Raise PackageError unless a package has the def-files that a request lists."""
    for path in paths:
        if not package.has(path):
            raise PackageError(
                f"{path} in {package.source}: no such file: correct the path, or add the file to "
                "the package",
                path=f"additionalParams.{DEF_FILES}",
            )


def _refuse_unknown_vdus(request: ChangeRequest, packages: Packages) -> None:
    workloads = {key.name for key in (*packages.new, *packages.kept) if is_workload(key)}
    request.check_vdus(packages.new_vdus, "kubernetes")
    for number, vdu in enumerate(request.vdu_params):
        name = packages.new_vdus[vdu.vdu_id]
        if name not in workloads:
            raise PackageError(
                f"{vdu.vdu_id} is run by {name}, which no def-file of the new package describes: "
                "correct the VDU's properties.name or the def-files",
                path=f"additionalParams.vdu_params[{number}].vdu_id",
            )


def stored_images(cluster: ReadOnlyCluster, bodies: Iterable[Json]) -> StoredImages:
    """Return live workloads' images as the server would store them; none where it refuses."""
    stored = {}
    for body in bodies:
        try:
            answer = cluster.dry_run("replace", body)
        except ClusterError as error:
            if error.transient:
                raise
            LOG.info("what the server makes of its images is not known: %s", error)
        else:
            stored[ObjectKey.of(body)] = pod_template.images(answer.body)
    return stored
