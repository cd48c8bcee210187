"""Delete what was created for a VNF instance, and wait until it is gone.

What a VNFM does at the end: for the service and small sites; Tacker terminates by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container, Iterable, Sequence
from functools import partial

from container_update.cluster.history.store import History
from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options
from container_update.operations.install import described_by, instance_of
from container_update.planning.update import collections
from container_update.workloads import registry
from container_update.workloads.readiness import DONE, Readiness, State
from container_update.workloads.registry import is_workload

LOG = logging.getLogger(__name__)


def terminate(  # noqa: PLR0913
    package: str,
    cluster: Cluster,
    *,
    instance_id: str,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    options: Options = Options(),  # noqa: B008
) -> tuple[ObjectKey, ...]:
    """Delete every object that bears the instance's label, last created first.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     terminate("packages/v1", cluster, namespace="cnf", instance_id="vnf-1")

    :param package: what the instance runs from. Its kinds are looked through, and what a change may
        have left that the package does not describe: workloads and what belongs to them.
    :param cluster: where to delete them.
    :param instance_id: the VNF instance, as it was installed.
    :param def_files: paths in the package; empty: every manifest that it lists.
    :param namespace: of the objects whose manifests name none.
    :param one_namespace: all objects are in *namespace*, whatever their manifests say.
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
    with Informer(cluster, watch_seconds=options.watch_seconds) as informer:
        informer.list(followed)
        others = _list_others(informer, {*namespaces, namespace}, followed)
        order = {key: number for number, key in enumerate(keys)}
        doomed = sorted(
            (key for key, live in informer.live.items() if instance_of(live) == instance_id),
            key=lambda key: order.get(key, len(keys)),
            reverse=True,
        )
        followed |= others & (collections(doomed) | {Collection.of(key) for key in doomed})
        workloads = [informer.live[key] for key in doomed if is_workload(key)]
        pods = [ObjectKey.of(pod) for live in workloads for pod in informer.pods_of(live)]
        for key in doomed:
            cluster.delete(key, uid=informer.live[key]["metadata"]["uid"])
        informer.watch(followed)
        _wait([*doomed, *pods], informer, deadline, followed, options)
        _clear_history(cluster, namespace, instance_id)
        return tuple(doomed)


def _clear_history(cluster: Cluster, namespace: str, instance_id: str) -> None:
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


def _wait(
    keys: Sequence[ObjectKey],
    informer: Informer,
    deadline: float,
    followed: Iterable[Collection],
    options: Options,
) -> None:
    uids = {key: live["metadata"]["uid"] for key in keys if (live := informer.get(key))}
    waiter = Waiter(informer, options.grace_period)

    def gone(key: ObjectKey) -> Readiness:
        live = informer.get(key)
        if live is None or live["metadata"]["uid"] != uids.get(key):
            return DONE
        return Readiness(State.PROGRESSING, f"{key} is there still")

    for key in keys:
        try:
            waiter.until_done(partial(gone, key), deadline, followed)
        except NotReadyError as error:
            raise PlanError(f"{key}: not gone after its deletion: {error}") from error
