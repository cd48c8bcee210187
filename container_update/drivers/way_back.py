# SPDX-License-Identifier: Apache-2.0
"""The way back from a modification, or from a change of the package: its journal if it was
interrupted, else its revision.

Neither needs the new package, which a rollback does not get, nor what the operation may have left
with the VNFM: it may have been killed before it could answer.
"""

from __future__ import annotations

from container_update.cluster.operation import Result, Revision
from container_update.drivers import v2_memory
from container_update.drivers.v2_records import RESTARTED, cluster_of, with_live_pods
from container_update.engine.goals.go_back import GoBack, history
from container_update.engine.resume import rollback
from container_update.engine.run import run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import NoWayBackError, PlanError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Progress
from container_update.model.requests import UndoRequest
from container_update.package import csar
from container_update.records.vnf_records import Records


def put_back(script: Json, output: Json) -> None:
    """Roll a modification back for Tacker, or raise; also where the last try wrote nothing: one
    before may have been killed."""
    instance, state = script["vnf_instance"], v2_memory.recall(script).get("state")
    if state == v2_memory.ROLLED_BACK:
        return
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    with cluster_of(instance) as (cluster, options):
        restarted = go_back(
            script["tmp_csar_dir"],
            cluster,
            options,
            state,
            namespace=metadata.get("namespace") or "default",
            instance_id=instance["id"],
        )
        after = with_live_pods(instance, cluster)
    v2_memory.remember(output, {"state": v2_memory.ROLLED_BACK})
    output |= {RESTARTED: sorted(restarted), "vnf_instance": after}


def go_back(  # noqa: PLR0913, PLR0917
    old: str,
    cluster: Cluster,
    options: Options,
    state: str | None,
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    namespace: str,
    instance_id: str,
) -> frozenset[str]:
    """Undo what an operation did, by the goal of the commands ``rollback`` and ``undo``.

    :param old: the package that the instance runs from by its record.
    :param state: how the operation ended, as far as that is known (:mod:`.v2_memory`).
    :returns: the resourceIds of VNFCs that run anew under the name that they had.
    :raises NoWayBackError: it was complete, and what was there before it is not kept.
    :raises ContainerUpdateError: something could not be put back.
    """
    where = {"namespace": namespace, "instance_id": instance_id}
    undone = rollback(cluster, options, cancel, progress, **where)
    revision = _led_away(old, cluster, options, **where) if options.history else None
    why = _why_not(revision, options)
    if revision is not None and not why:
        request = UndoRequest(revision.number, (), namespace, instance_id)
        try:
            goal = GoBack(request, cluster, options)
            return Records.of_update(run(goal, cluster, options, cancel, progress)).restarted
        except PlanError as error:
            why = str(error)
    is_unknown = state in (None, v2_memory.UNKNOWN) and undone is None and not options.history
    if revision is not None or is_unknown or state == v2_memory.UPDATED:
        was = "may have been" if is_unknown else "was"
        raise NoWayBackError(
            f"VNF instance {instance_id} in namespace {namespace}: the operation {was} complete, "
            "only its record is missing: expected what was there before it in the history, but "
            f"{why}: once it is finished, change to the package that it came from"
        )
    return frozenset()


def _led_away(
    old: str, cluster: Cluster, options: Options, *, namespace: str, instance_id: str
) -> Revision | None:
    """Return the newest revision if it led from the old package to another one."""
    revisions = history(cluster, options, namespace=namespace, instance_id=instance_id)
    newest = next((each for each in revisions if each.result is Result.DONE), None)
    if newest is None:
        return None
    with csar.open_package(old, options=options) as package:
        here = package.sha256()
    before, *after = [each.sha256 for each in newest.origin.packages] or [""]
    return newest if before == here and after not in ([], [here]) else None


def _why_not(revision: Revision | None, options: Options) -> str:
    """Return why a revision cannot be undone; '' where it can."""
    if not options.history:
        return "the option history is 0, so that none is kept"
    if revision is None:
        return "no revision of it is there"
    if revision.origin.scripts:
        return f"the scripts of a change by {revision.origin.kind} need what only a request says"
    if not revision.can_be_undone:
        return f"what revision {revision.number} needs for it was too large, or was deleted"
    return ""
