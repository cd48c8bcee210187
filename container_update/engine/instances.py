# SPDX-License-Identifier: Apache-2.0
"""The VNF instances of a namespace, by what their operations have left there, and how they are."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

from container_update.cluster import uninstalled
from container_update.cluster.history import History, UntrustedError, kept_instances
from container_update.cluster.informer import Informer
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.journal import JournalReader
from container_update.cluster.operation import Result
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.model.cluster import ReadOnlyCluster, if_allowed
from container_update.model.errors import ContainerUpdateError, NotInstalledError, PlanError
from container_update.model.objects import Collection, Json, Manifest, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.plan import INSTALL
from container_update.model.requests import PackageIdentity
from container_update.planning.comparison.live_objects import manifest_name
from container_update.workloads import ownership, pod_status, pod_template, registry
from container_update.workloads.registry import is_workload, kind_of, known_kind

LOG = logging.getLogger(__name__)
MISSING = "is not in the cluster"
"""The trouble of a workload that the record of an instance has."""


def only_instance(
    cluster: ReadOnlyCluster,
    namespace: str,
    options: Options = Options(),  # noqa: B008
) -> str | None:
    """Return the id of the only instance of a namespace, for a request that names none.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     only_instance(cluster, "cnf")
    'upf'

    One whose installation was undone, and nothing since, does not count beside others.

    :returns: None where it has no id, or there is none, or the account may not look.
    :raises PlanError: there are several instances.
    """
    ids = _ids(cluster, namespace, options) or frozenset()
    if len(ids) > 1:
        reader = RetryingReader(cluster, options.retry_seconds)
        ids = frozenset(each for each in ids if not was_never_there(reader, namespace, each))
    named = sorted(each for each in ids if each)
    if len(ids) > 1:
        others = " and one without an id" if None in ids else ""
        empty = " ('' is the one without)" if others else ""
        raise PlanError(
            f"namespace {namespace} has the VNF instances {', '.join(named)}{others}: choose "
            f"one by its id{empty}"
        )
    return named[0] if named else None


def was_never_there(reader: RetryingReader, namespace: str, instance_id: str | None) -> bool:
    """Tell whether all operations that an instance had are installations that were undone."""
    try:
        ended = History(reader, namespace, instance_id).read()
        current = JournalReader(reader, namespace, instance_id).read()
    except ContainerUpdateError:  # they may be signed with the key of another host
        return False
    undone = (each.origin.kind == INSTALL and each.result is Result.UNDONE for each in ended)
    return bool(ended) and all(undone) and current is None


def _ids(
    cluster: ReadOnlyCluster, namespace: str, options: Options
) -> frozenset[str | None] | None:
    """Return the ids of the instances of a namespace; None where the account may not look."""
    retrying = RetryingReader(cluster, options.retry_seconds)
    found = if_allowed(partial(kept_instances, retrying, namespace), None)
    return None if found is None else frozenset(instance_id for _, instance_id in found)


def no_instance(cluster: ReadOnlyCluster, namespace: str, options: Options) -> str:
    """Return a sentence where a namespace does not know any instance, else ''."""
    if _ids(cluster, namespace, options) == frozenset():
        return f"No VNF instance is known in namespace {namespace}."
    return ""


def refuse_unknown(
    cluster: ReadOnlyCluster, namespace: str, instance_id: str | None, options: Options
) -> None:
    """Refuse an id that no operation, no uninstalled instance and no workload of a namespace has,
    where the namespace has other instances.

    :raises PlanError: names the instance whose id is similar, or else all.
    """
    ids = _ids(cluster, namespace, options) if instance_id else None
    if instance_id is None or not ids or instance_id in ids:
        return
    gone = uninstalled.read(RetryingReader(cluster, options.retry_seconds), namespace)
    if instance_id in {each for _, each, _ in gone}:
        return
    if workloads(cluster, namespace, instance_id, options):  # another program created it
        return
    known = sorted(each or "one without an id" for each in ids)
    near = difflib.get_close_matches(instance_id, known)
    found = f"the nearest name is {near[0]}" if near else f"it has {', '.join(known)}"
    raise PlanError(f"VNF instance {instance_id} is not known in namespace {namespace}: {found}")


def record_of(
    cluster: ReadOnlyCluster, namespace: str, instance_id: str | None, options: Options
) -> InstanceRecord:
    """Return the record of what an instance runs from.

    :raises NotInstalledError: there is none.
    :raises PlanError: its manifests were too large to be kept.
    """
    history = History(RetryingReader(cluster, options.retry_seconds), namespace, instance_id)
    record = history.instance()
    name = f"VNF instance {instance_id}" if instance_id else "a VNF instance"
    if record is None:
        refuse_if_known_missing(namespace, cluster)
        ids = _ids(cluster, namespace, options) or frozenset()
        others = ", ".join(sorted(filter(None, ids - {instance_id})))
        only = f", only of {others}" if others else ""
        why = (
            f"{name}: its first operation in namespace {namespace} was undone, or has not ended"
            if instance_id in ids
            else f"namespace {namespace} has no record of {name}{only}"
        )
        raise NotInstalledError(f"{why}: install it, or name the old package too")
    if not record.is_whole:
        raise PlanError(
            f"{name} in namespace {namespace}: its manifests are too large to be kept in its "
            "record: name the old package too"
        )
    return record


def recorded_package(
    cluster: ReadOnlyCluster, namespace: str, instance_id: str | None, options: Options
) -> PackageIdentity | None:
    """Return the package that an instance runs from by its record; None where that is not known."""
    retrying = RetryingReader(cluster, options.retry_seconds)
    try:
        record = if_allowed(History(retrying, namespace, instance_id).instance, None)
    except PlanError as error:  # who names the old package need not have a record that is read
        LOG.info("%s", error)
        return None
    return record.package if record else None


def manifests_in_record(
    cluster: RetryingReader, namespace: str, instance_id: str | None
) -> Mapping[ObjectKey, Manifest] | None:
    """Return the manifests that an instance runs from; None where no trusted record has them."""
    try:
        record = if_allowed(History(cluster, namespace, instance_id).instance, None)
    except UntrustedError as error:
        LOG.warning("%s", error)
        return None
    if record is None or not record.is_whole:
        return None
    return {manifest.key: manifest for manifest in record.manifests}


def refuse_absent(
    keys: Iterable[ObjectKey], live: Container[ObjectKey], package: str, namespace: str
) -> None:
    """Refuse a VNF of which nothing is there: most likely its namespace is another one."""
    own = [key for key in keys if key.namespace]  # others are perhaps another VNF's too
    workload = next(filter(is_workload, own), None)
    if workload is not None and not any(key in live for key in own):
        raise NotInstalledError(
            f"none of the {len(own)} objects of {package or 'the record'} is in namespace "
            f"{namespace}, not even {workload}: install the VNF, or name the namespace where it is"
        )


@dataclass(frozen=True)
class WorkloadState:
    """The state of a workload of an instance."""

    key: ObjectKey
    images: tuple[str, ...]
    desired: int
    """Pods that it should have."""
    ready: int
    updated: int
    """Pods with its present template."""
    created: str
    """When, in UTC (RFC 3339)."""
    trouble: str = ""
    """What prevents the first pod that has trouble from being ready."""

    def as_dict(self) -> Json:
        """Return the same as plain values."""
        values = {**asdict(self), "object": self.key.as_dict(), "images": list(self.images)}
        del values["key"]
        return values


def workloads(
    cluster: ReadOnlyCluster,
    namespace: str,
    instance_id: str | None,
    options: Options = Options(),  # noqa: B008
) -> tuple[WorkloadState, ...]:
    """Return how the workloads of an instance are: of what bears its label, or is in its record.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     for workload in workloads(cluster, "cnf", "upf"):
    ...         print(workload.key, f"{workload.ready}/{workload.desired}")
    Deployment cnf/web 2/2

    :raises ClusterError: the API server cannot be read.
    """
    retrying = RetryingReader(cluster, options.retry_seconds)
    history = History(retrying, namespace, instance_id)
    record = history.instance()
    recorded = {manifest.key: manifest.body for manifest in record.manifests} if record else {}
    newest = () if record else history.read()[:1]  # of a VNF that another program created
    keys = (*recorded, *(key for revision in newest for key in revision.objects))
    spaces = {namespace, *(key.namespace for key in keys if key.namespace)}
    scope = Scope(instance_id=instance_id) if instance_id else Scope(keys)
    with Informer(retrying, scope) as informer:
        listed = list_if_allowed(
            informer,
            {
                collection
                for space in spaces
                for kind in registry.installed_kinds().values()
                for collection in (
                    Collection(kind.group, kind.kind, space),
                    *kind.watched_collections(space),
                )
            },
        )
        live = informer.live
        own = sorted(key for key in live if _is_workload_of(live[key], instance_id, keys))
        there = {*own, *(replace(key, name=manifest_name(live[key])) for key in own)}
        gone = (
            _missing(key, body)
            for key, body in sorted(recorded.items())
            if key not in there and Collection.of(key) in listed and _stays(key, body)
        )
        return (*(_state(key, live[key], informer) for key in own), *gone)


def _stays(key: ObjectKey, manifest: Json) -> bool:
    """Tell whether a workload is there until it is deleted: no Job that has run."""
    kind = kind_of(key)
    return kind is not None and not kind.runs_to_completion and bool(manifest)


def _missing(key: ObjectKey, manifest: Json) -> WorkloadState:
    """Return the state of a workload that the record has and the cluster has not."""
    kind = known_kind(key)
    desired = 1 if kind.is_pod else kind.counts(manifest).desired
    images = tuple(dict.fromkeys(pod_template.images(manifest).values()))
    return WorkloadState(key, images, desired, ready=0, updated=0, created="", trouble=MISSING)


def _is_workload_of(body: Json, instance_id: str | None, keys: Container[ObjectKey]) -> bool:
    key, owner = ObjectKey.of(body), instance_of(body)
    if not is_workload(key) or ownership.controller(body):
        return False
    return owner == instance_id if owner else key in keys


def _state(key: ObjectKey, body: Json, informer: Informer) -> WorkloadState:
    kind = known_kind(key)
    desired = ready = updated = 1
    if not kind.runs_to_completion:
        counts = kind.counts(body)
        desired, ready, updated = counts.desired, counts.ready, counts.updated
    troubles = (pod_status.problem(pod) for pod in informer.pods_or_itself(body))
    images = tuple(dict.fromkeys(pod_template.images(body).values()))
    created = str(body["metadata"].get("creationTimestamp", ""))
    trouble = next(filter(None, troubles), "")
    return WorkloadState(key, images, desired, ready, updated, created, trouble)


def list_if_allowed(informer: Informer, collections: Iterable[Collection]) -> frozenset[Collection]:
    """List collections, but those that may not be listed or do not exist; return the listed."""

    def is_listed(collection: Collection) -> bool:
        informer.list({collection})
        return True

    return frozenset(
        collection
        for collection in informer.in_order(collections)
        if if_allowed(partial(is_listed, collection), False, if_missing=True)
    )
