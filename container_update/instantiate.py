"""Create what a package describes and wait until it is Ready: what a VNFM does before an update.

For the demo, the tests and small sites; Tacker instantiates by itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from container_update import csar, edits, manifests, readiness
from container_update.config import Options
from container_update.errors import PlanError
from container_update.informer import Informer
from container_update.model import INSTANCE_LABEL, Cluster, Json, Manifest, ObjectKey
from container_update.plan import collections
from container_update.readiness import Baseline, Readiness, State
from container_update.waiting import NotReadyError, Waiter


def instantiate(  # noqa: PLR0913
    package: str,
    cluster: Cluster,
    *,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    instance_id: str | None = None,
    options: Options = Options(),  # noqa: B008
) -> tuple[Manifest, ...]:
    """Create every object of the def-files, in their order, and wait for the workloads.

    :param package: a folder, a CSAR zip, or an unpacked package.
    :param def_files: paths in it; empty: every manifest it lists.
    :param instance_id: becomes the label that Tacker puts on what it creates.
    :returns: the manifests created.
    :raises PackageError: the package is wrong.
    :raises ClusterError: an object could not be created, there is one already for example.
    :raises PlanError: a workload did not get ready.
    """
    with csar.open_package(package, settings=csar.Settings.of(options)) as opened:
        created = [
            manifest
            for path in def_files or opened.manifest_files()
            for manifest in manifests.parse(
                opened.read(path), path, namespace, limits=opened.settings.yaml
            )
        ]
    labels = {INSTANCE_LABEL: instance_id} if instance_id else {}
    for manifest in created:
        cluster.create(edits.new_object(manifest.body, manifest.key.namespace, labels))
    _wait(cluster, [manifest.key for manifest in created if manifest.key.is_workload], options)
    return tuple(created)


def _wait(cluster: Cluster, keys: Sequence[ObjectKey], options: Options) -> None:
    followed = collections(keys)
    deadline = time.monotonic() + options.timeout
    with Informer(cluster, watch_seconds=options.watch_seconds) as informer:
        informer.list(followed)
        informer.watch(followed)
        waiter = Waiter(informer, options.grace_period)
        for key in keys:
            try:
                waiter.until_done(lambda key=key: _judge(informer, key), deadline, followed)  # type: ignore[misc]
            except NotReadyError as error:
                raise PlanError(f"{key}: not Ready after instantiation: {error}") from error


def _judge(informer: Informer, key: ObjectKey) -> Readiness:
    live = informer.get(key)
    if key.kind == "Pod":
        return readiness.pod_recreated(live, Baseline())
    if live is None:
        return Readiness(State.PROGRESSING, f"{key} is not there yet")
    judge = readiness.CONTROLLERS.get(key.kind)
    return readiness.DONE if judge is None else judge(live, _pods(informer, live), Baseline())


def _pods(informer: Informer, live: Json) -> tuple[Json, ...]:
    return informer.pods_of(live)
