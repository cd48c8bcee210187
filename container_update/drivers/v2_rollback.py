# SPDX-License-Identifier: Apache-2.0
"""Rolls a modify operation back to the old package.

A rollback is an update from the new package to the old one. It does not get the new package; for an
update that is the old package with the images that were recorded. Configuration needs neither: the
live objects are compared with the old package.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.cluster.history.instance_record import InstanceRecord
from container_update.drivers import v2_memory
from container_update.drivers.v2_records import (
    RESTARTED,
    cluster_of,
    is_replaced,
    request_of,
    with_live_pods,
)
from container_update.engine.read_packages import described_by
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import NoWayBackError, PackageError
from container_update.model.objects import Json, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.requests import UPGRADE_TYPE, UpdateRequest
from container_update.package.fetch import is_url
from container_update.planning.comparison.package_pair import Placing
from container_update.records.vnf_records import Records, set_images


def put_back(script: Json, output: Json) -> None:
    """Move the instance back to the old package.

    Does nothing if the failed update wrote nothing or an earlier step rolled it back. A change of
    the package looks for a journal also if the last try wrote nothing: one before may have been
    killed, and left it.

    :param output: gets the instance with its live pods.
    :raises ContainerUpdateError: it cannot be done.
    """
    ours, instance, request = v2_memory.recall(script), script["vnf_instance"], script["request"]
    change = (request.get("metadata") or {}).get(UPGRADE_TYPE)
    is_update = request.get("vnfdId") and not change
    if ours.get("state") in (v2_memory.SETTLED if is_update else {v2_memory.ROLLED_BACK}):
        return
    with cluster_of(instance) as (cluster, options):
        if is_update:
            old = script["tmp_csar_dir"]
            outcome = go_back(request_of(instance, old, old), cluster, options, ours)
            records = Records.of_update(outcome)
            after = records.applied(instance)
            output[RESTARTED] = sorted(records.restarted)
        else:
            undo_interrupted(instance, cluster, options, ours)
            if change and is_replaced(instance, cluster, ours.get("state")):
                raise _no_way_back(instance)
            after = with_live_pods(instance, cluster)
    v2_memory.remember(output, {"state": v2_memory.ROLLED_BACK})
    output["vnf_instance"] = after


def undo_interrupted(instance: Json, cluster: Cluster, options: Options, ours: Json) -> None:
    """Undo by its journal in the cluster what cannot be undone by an update to the old package.

    :raises NoWayBackError: it was complete; what was there before is nowhere any more.
    :raises ContainerUpdateError: something could not be put back.
    """
    from container_update.engine.recover import rollback  # noqa: PLC0415 (heavy)

    if ours.get("state") == v2_memory.UNDONE:
        return
    if ours.get("state") == v2_memory.UPDATED:
        raise _no_way_back(instance)
    namespace = (instance["instantiatedVnfInfo"].get("metadata") or {}).get("namespace")
    rollback(
        cluster,
        options,
        namespace=namespace or "default",
        instance_id=instance["id"],
    )


def _no_way_back(instance: Json) -> NoWayBackError:
    return NoWayBackError(
        f"VNF instance {instance['id']}: the operation was complete, only its record is missing:"
        " expected a journal to undo it by, and found none any more"
    )


def go_back(  # noqa: PLR0913
    request: UpdateRequest,
    cluster: Cluster,
    options: Options,
    ours: Json,
    *,
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Update the instance back to the old package, and delete what the update had created.

    :param request: from the old package to the old package.
    :param ours: what was remembered of the update (:mod:`container_update.drivers.v2_memory`).
    :raises ContainerUpdateError: it cannot be done.
    """
    from container_update.engine.goals.update import Update  # noqa: PLC0415 (heavy)
    from container_update.engine.run import run  # noqa: PLC0415 (heavy)

    images = v2_memory.images(ours)
    record = _as_updated(request, images, options) if images else None
    outcome = run(Update(request, options, record), cluster, options, cancel, progress)
    if ours.get("state") != v2_memory.UNDONE:
        for key in v2_memory.created(ours):
            cluster.delete(key)  # may be deleted already
    return outcome


def _as_updated(
    request: UpdateRequest, images: Mapping[ObjectKey, Mapping[str, str]], options: Options
) -> InstanceRecord:
    """Return what the instance runs from since the update: the old package with other images.

    :raises PackageError: no def-file in the package has one of the workloads. One at a URL may have
        the new images by now.
    """
    placing = Placing(request.def_files, request.namespace, one_namespace=request.one_namespace)
    described = described_by(request.old, placing, options)
    for manifest in described:
        set_images(manifest.body, images.get(manifest.key, {}))
    inside = {each.key for each in described if not is_url(each.source.path)}
    if missing := images.keys() - inside:
        names = ", ".join(sorted(map(str, missing)))
        raise PackageError(
            f"{names}: expected in a def-file inside the old package, found in none: a rollback"
            " cannot put back its image. Modify the instance to the old package, or heal it"
        )
    return InstanceRecord(None, described, request.def_files)
