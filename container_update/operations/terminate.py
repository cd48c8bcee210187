"""Delete what was created for a VNF instance, and wait until it is gone.

What a VNFM does at the end: for the service and small sites; Tacker terminates by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

from container_update.cluster.history.store import History
from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import Collection, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.outcome import Progress, StepResult, StepState
from container_update.model.plan import Action, Plan
from container_update.model.reporter import reporter
from container_update.operations.install import described_by
from container_update.planning.steps import ManifestStep
from container_update.planning.update import collections
from container_update.workloads import registry
from container_update.workloads.readiness import DONE, Readiness, State
from container_update.workloads.registry import is_workload

LOG = logging.getLogger(__name__)


def terminate(  # noqa: PLR0913
    package: str,
    cluster: Cluster,
    *,
    instance_id: str | None,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    options: Options = Options(),  # noqa: B008
    progress: Progress = lambda _: None,
) -> tuple[ObjectKey, ...]:
    """Delete every object that bears the instance's label, last created first.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     terminate("packages/v1", cluster, namespace="cnf", instance_id="vnf-1")

    :param package: what the instance runs from. Its kinds are looked through, and what a change may
        have left that the package does not describe: workloads and what belongs to them.
    :param cluster: where to delete them.
    :param instance_id: the VNF instance, as it was installed. None: it was installed without one,
        what the package describes and bears no instance's label is deleted.
    :param def_files: paths in the package; empty: every manifest that it lists.
    :param namespace: of the objects whose manifests name none.
    :param one_namespace: all objects are in *namespace*, whatever their manifests say.
    :param progress: called with the plan, which it may refuse, and with each step's result; see
        :data:`~container_update.model.outcome.Progress`.
    :returns: what was deleted.
    :raises PackageError: the package is wrong; nothing was deleted.
    :raises ClusterError: the API server cannot be asked.
    :raises PlanError: something was not gone in time.
    """
    described = described_by(
        package, def_files, namespace, one_namespace=one_namespace, options=options
    )
    keys = [manifest.key for manifest in described]
    followed = collections(keys) | {Collection.of(key) for key in keys}
    namespaces = {key.namespace for key in keys if key.namespace}
    deadline = time.monotonic() + options.timeout
    scope = Scope(instance_id=instance_id) if instance_id else Scope(keys)
    with Informer(cluster, scope, watch_seconds=options.watch_seconds) as informer:
        informer.list(followed)
        spaces = {*namespaces, namespace} if instance_id else ()
        others = _list_others(informer, spaces, followed)
        order = {key: number for number, key in enumerate(keys)}
        doomed = sorted(
            (
                key
                for key, live in informer.live.items()
                if instance_of(live) == instance_id and (instance_id or key in order)
            ),
            key=lambda key: order.get(key, len(keys)),
            reverse=True,
        )
        followed |= others & (collections(doomed) | {Collection.of(key) for key in doomed})
        report, steps = reporter(progress), [_deletion(key, informer) for key in doomed]
        report(Plan(namespace, instance_id, tuple(steps)))
        workloads = [informer.live[key] for key in doomed if is_workload(key)]
        pods = [ObjectKey.of(pod) for live in workloads for pod in informer.pods_of(live)]
        uids = {key: informer.live[key]["metadata"]["uid"] for key in (*doomed, *pods)}
        for step in steps:
            report(step)
            cluster.delete(step.key, uid=uids[step.key])
        informer.watch(followed)
        wait = partial(_wait, uids, informer, deadline, followed, options)
        for step in steps:
            wait(step.key)
            report(StepResult(step, StepState.DONE))
        for key in pods:
            wait(key)
        _clear_history(cluster, namespace, instance_id)
        return tuple(doomed)


def _deletion(key: ObjectKey, informer: Informer) -> ManifestStep:
    return ManifestStep(key, Action.DELETE, informer.live[key])


def _clear_history(cluster: Cluster, namespace: str, instance_id: str | None) -> None:
    """Delete the history of an instance that is no more, where the account may."""
    try:
        History(cluster, namespace, instance_id).clear()
    except ClusterError as error:
        LOG.warning("the history of the VNF instance stays: %s", error)


_OTHERS = (("", "ConfigMap"), ("", "PersistentVolumeClaim"), ("", "Secret"), ("", "Service"))
"""(group, kind) of what belongs to workloads."""


def _list_others(
    informer: Informer, namespaces: Iterable[str], listed: Container[Collection]
) -> frozenset[Collection]:
    """List the kinds that the package does not describe, where the account may and they exist."""
    found = set()
    for namespace in sorted(namespaces):
        for group, kind in (*registry.installed(), *_OTHERS):
            collection = Collection(group, kind, namespace)
            if collection in listed:
                continue
            try:
                informer.list({collection})
            except ClusterError as error:
                if error.status not in (403, 404):
                    raise
                LOG.debug("%s are not looked through: %s", collection, error)
            else:
                found.add(collection)
    return frozenset(found)


def _wait(  # noqa: PLR0913, PLR0917
    uids: Mapping[ObjectKey, str],
    informer: Informer,
    deadline: float,
    followed: Iterable[Collection],
    options: Options,
    key: ObjectKey,
) -> None:
    def gone() -> Readiness:
        live = informer.get(key)
        if live is None or live["metadata"]["uid"] != uids.get(key):
            return DONE
        return Readiness(State.PROGRESSING, f"{key} is there still")

    try:
        Waiter(informer, options.grace_period).until_done(gone, deadline, followed)
    except NotReadyError as error:
        raise PlanError(f"{key}: not gone after its deletion: {error}") from error
