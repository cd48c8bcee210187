"""Delete what was created for a VNF instance, and wait until it is gone.

What a VNFM does at the end: for the service and small sites; Tacker terminates by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import PlanError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options
from container_update.operations.install import described_by, instance_of
from container_update.planning.update import collections
from container_update.workloads.readiness import DONE, Readiness, State
from container_update.workloads.registry import is_workload


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

    :param package: what the instance runs from. It says which kinds and namespaces are looked
        through, so that what an update added or renamed is found too.
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
    deadline = time.monotonic() + options.timeout
    with Informer(cluster, watch_seconds=options.watch_seconds) as informer:
        informer.list(followed)
        order = {key: number for number, key in enumerate(keys)}
        doomed = sorted(
            (key for key, live in informer.live.items() if instance_of(live) == instance_id),
            key=lambda key: order.get(key, len(keys)),
            reverse=True,
        )
        workloads = [informer.live[key] for key in doomed if is_workload(key)]
        pods = [ObjectKey.of(pod) for live in workloads for pod in informer.pods_of(live)]
        for key in doomed:
            cluster.delete(key, uid=informer.live[key]["metadata"]["uid"])
        informer.watch(followed)
        _wait([*doomed, *pods], informer, deadline, followed, options)
        return tuple(doomed)


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
