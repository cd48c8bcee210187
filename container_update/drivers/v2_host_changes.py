"""Around operations that Tacker's v2 API does with its own code: its RollingUpdate, and terminate.

At ``change_current_package_start`` and ``_end`` Tacker 16 runs the script of the *new* package,
which is ``tmp_csar_dir``; the old one is not at hand. At the end Tacker has instantiatedVnfInfo
made of the request's files alone: VDUs, def-files and attributes that do not change are missing.
What the start leaves in ``user_script_err_handling_data`` comes back at the end.

Source: Tacker 16, ``VnfLcmDriverV2.process`` and ``Kubernetes._change_vnfpkg``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from container_update.cluster.history.instance_record import InstanceRecord
from container_update.drivers import v2_memory
from container_update.drivers.v2_records import (
    cluster_of,
    recorded_workloads,
    request_of,
    with_live_pods,
)
from container_update.model.cluster import Cluster
from container_update.model.errors import NextStep, PlanError, UpdateInProgressError
from container_update.model.objects import Collection, Json, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.plan import Plan
from container_update.model.requests import DEF_FILES, UpdateRequest
from container_update.operations.change import KubernetesTarget
from container_update.operations.change_package import preview_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.job import ChangeJob
from container_update.operations.records.vnf_records import VDU_RESES
from container_update.operations.resume import status
from container_update.operations.uninstall import terminate
from container_update.package import csar
from container_update.planning.comparison import renames

LOG = logging.getLogger(__name__)


def check_change(script: Json, output: Json) -> None:
    """Check Tacker's RollingUpdate before anything is written.

    A VNFM that passes the old package here, as this project's own service does, checks by itself.

    :param output: gets what :func:`complete_records` needs.
    :raises PackageError: the request, or the new package, is wrong.
    :raises PlanError: what runs is in no state to be changed by Tacker.
    :raises UpdateInProgressError: an operation of this instance runs.
    :raises ClusterError: the VIM cannot be reached.
    """
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    body = {name: script["request"].get(name) for name in ("vnfdId", "additionalParams")}
    with cluster_of(instance) as (cluster, options):
        if not _is_of(body["vnfdId"], package, options):
            return
        request = ChangeRequest.of(body, "kubernetes")
        base = request_of(instance, package, package)
        _refuse_unfinished(base, cluster, options)
        plan = _preview(request, base, instance, cluster, options)
        _refuse_renamed(
            (manifest.body["metadata"]["name"], manifest.key) for manifest in plan.manifests
        )
    info = {
        name: value
        for name, value in instance["instantiatedVnfInfo"].items()
        if name not in ("vnfcResourceInfo", "vnfcInfo")
    }
    v2_memory.remember(output, {"state": v2_memory.UNTOUCHED, v2_memory.BEFORE: info})


def complete_records(script: Json, output: Json) -> None:
    """Bring the records of Tacker's RollingUpdate to the live pods; nothing may drop out of them.

    :param output: gets the instance.
    :raises ClusterError: the VIM cannot be reached.
    """
    before = v2_memory.recall(script).get(v2_memory.BEFORE)
    if before is None:
        return
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    after = instance["instantiatedVnfInfo"]
    old, new = (info.get("metadata") or {} for info in (before, after))
    with cluster_of(instance) as (cluster, options):
        metadata = {
            **old,
            **new,
            VDU_RESES: {**(old.get(VDU_RESES) or {}), **(new.get(VDU_RESES) or {})},
            DEF_FILES: _def_files(
                package, old.get(DEF_FILES) or (), new.get(DEF_FILES) or (), options
            ),
        }
        info = {**before, **after, "metadata": metadata}
        output["vnf_instance"] = with_live_pods({**instance, "instantiatedVnfInfo": info}, cluster)


def delete_renamed(script: Json, output: Json) -> None:  # noqa: ARG001 (has nothing to answer)
    """Delete the VNF before Tacker does, if a Blue-Green change gave a Deployment another name.

    Tacker deletes by the names in the package, and would leave that Deployment.

    :raises ClusterError: the VIM cannot be reached.
    :raises PlanError: something was not gone in time.
    """
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    base = request_of(instance, package, package)
    with cluster_of(instance) as (cluster, options):
        listing = cluster.list(Collection("apps", "Deployment", base.namespace))
        live = {
            ObjectKey("apps", "Deployment", base.namespace, body["metadata"]["name"]): body
            for body in listing.items
            if instance_of(body) == base.instance_id
        }
        if renames.live_names(live):
            terminate(
                package,
                cluster,
                instance_id=instance["id"],
                def_files=base.def_files,
                namespace=base.namespace,
                one_namespace=True,
                options=options,
            )


def _is_of(vnfd_id: str | None, package: str, options: Options) -> bool:
    with csar.open_package(package, options=options) as opened:
        return opened.vnfd_id in (None, "", vnfd_id)


def _preview(
    request: ChangeRequest, base: UpdateRequest, instance: Json, cluster: Cluster, options: Options
) -> Plan:
    """Return what a rolling update of ours would do, with the recorded workloads as old package."""
    record = InstanceRecord(None, tuple(recorded_workloads(instance).values()))
    if not record.manifests:
        return Plan(base.namespace, base.instance_id, ())
    target = KubernetesTarget(cluster, base.namespace, one_namespace=True, record=record)
    return preview_change(ChangeJob(request, "", base.new, base.instance_id, options), target)


def _refuse_unfinished(base: UpdateRequest, cluster: Cluster, options: Options) -> None:
    """Refuse while an operation of ours runs, or has left a journal: Tacker knows of neither."""
    found = status(cluster, options, namespace=base.namespace, instance_id=base.instance_id)
    if found.holder is not None and not found.expired:
        raise UpdateInProgressError(f"VNF instance {base.instance_id}: {found}")
    if found.record is not None:
        raise PlanError(
            f"VNF instance {base.instance_id}: an operation was interrupted and has left its"
            f" journal in the namespace {base.namespace}: finish or undo it first",
            next_step=NextStep.FIX_TARGET,
        )


def _refuse_renamed(names: Iterable[tuple[str, ObjectKey]]) -> None:
    for name, key in names:
        if key.name != name:
            raise PlanError(
                f"{key}: since a Blue-Green change this is the Deployment {name} of the package,"
                " under another name, which Tacker's RollingUpdate does not know: change the"
                " package by a modify request with upgrade_type in its metadata"
            )


def _def_files(
    package: str, before: Sequence[str], changed: Sequence[str], options: Options
) -> list[str]:
    """Return the def-files after a change: Tacker terminates by them, and from the new package."""
    with csar.open_package(package, options=options) as opened:
        kept = [path for path in before if urlsplit(path).scheme or opened.has(path)]
    for path in before:
        if path not in kept:
            LOG.warning("%s is not in the new package: no longer among the def-files", path)
    return list(dict.fromkeys((*kept, *changed)))
