# SPDX-License-Identifier: Apache-2.0
"""Around what Tacker's v2 API does with its own code: instantiate, RollingUpdate, heal, terminate.

At ``change_current_package_start`` and ``_end`` Tacker 16 runs the script of the *new* package,
which is ``tmp_csar_dir``; the old one is not at hand. At the end Tacker has instantiatedVnfInfo
made of the request's files alone: VDUs, def-files and attributes that do not change are missing.
What the start leaves in ``user_script_err_handling_data`` comes back at the end.

Source: Tacker 16, ``VnfLcmDriverV2.process`` and ``Kubernetes._change_vnfpkg``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from container_update.cluster.history import HistoryWriter
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.lease import refuse_frozen
from container_update.drivers import v2_memory
from container_update.drivers.v2_process import NEXT_STEP
from container_update.drivers.v2_records import (
    cluster_of,
    recorded_workloads,
    request_of,
    with_live_pods,
    with_records,
)
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.install import Install
from container_update.engine.goals.uninstall import Uninstall
from container_update.engine.goals.upkeep import Heal
from container_update.engine.read_packages import described_by, read_manifests
from container_update.engine.resume import status
from container_update.engine.run import preview, run
from container_update.model import errors
from container_update.model.cluster import Cluster, if_allowed
from container_update.model.objects import Collection, Json, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.requests import (
    DEF_FILES,
    ChangePackageRequest,
    HealRequest,
    InstallRequest,
    TerminateRequest,
    UpdateRequest,
)
from container_update.package import csar
from container_update.package.fetch import is_url
from container_update.planning.comparison import live_objects
from container_update.records.vnf_records import VDU_RESES, Records, workloads_of

LOG = logging.getLogger(__name__)

TACKERS_KINDS = frozenset({
    "ConfigMap", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "Namespace",
    "NetworkPolicy", "PersistentVolumeClaim", "Pod", "ReplicaSet", "Role", "RoleBinding", "Secret",
    "Service", "ServiceAccount", "StatefulSet",
})  # fmt: skip
"""Kinds that Tacker creates and deletes; it ignores objects of most other kinds silently."""


def check_change(script: Json, output: Json) -> None:
    """Check Tacker's RollingUpdate before anything is written.

    A VNFM that passes the old package here, as this project's own service does, checks by itself.

    :param output: gets what :func:`complete_records` needs.
    :raises PackageError: the request, or the new package, is wrong.
    :raises PlanError: the live objects are in no state to be changed by Tacker.
    :raises UpdateInProgressError: an operation of this instance runs.
    :raises ClusterError: the VIM cannot be reached.
    """
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    body = {name: script["request"].get(name) for name in ("vnfdId", "additionalParams")}
    with cluster_of(instance) as (cluster, options):
        if not _is_of(body["vnfdId"], package, options):
            return
        ChangeRequest.of(body, "kubernetes")  # the record may have nothing to plan with
        base = request_of(instance, package, package)
        _refuse_unfinished(base, cluster, options)
        _check_plan(body, base, instance, cluster, options)
    info = {
        name: value
        for name, value in instance["instantiatedVnfInfo"].items()
        if name not in ("vnfcResourceInfo", "vnfcInfo")
    }
    v2_memory.remember(output, {"state": v2_memory.UNTOUCHED, v2_memory.BEFORE: info})


def complete_records(script: Json, output: Json) -> None:
    """Bring the records of Tacker's RollingUpdate to the live pods; nothing may drop out of them.

    :raises ClusterError: the VIM cannot be reached.
    """
    before = v2_memory.recall(script).get(v2_memory.BEFORE)
    if before is None:
        return
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    base, after = request_of(instance, package, package), instance["instantiatedVnfInfo"]
    old, new = (info.get("metadata") or {} for info in (before, after))
    with cluster_of(instance) as (cluster, options):
        metadata = {
            **old,
            **new,
            VDU_RESES: {**(old.get(VDU_RESES) or {}), **(new.get(VDU_RESES) or {})},
            DEF_FILES: _def_files(base, old.get(DEF_FILES) or (), cluster, options),
        }
        info = {**before, **after, "metadata": metadata}
        output["vnf_instance"] = with_live_pods({**instance, "instantiatedVnfInfo": info}, cluster)


def heal_vnf(script: Json, output: Json) -> None:
    """Heal the whole VNF: all of its package takes effect, also what an update left out.

    At ``heal_start`` the pods are replaced in our way, and Tacker, which only deletes pods, finds
    none of the old names. At ``heal_end`` the same is done unless it was. Of VNFCs that the request
    names Tacker replaces the pods, which is all that there is to do; this project's own service
    heals by itself.

    :raises ContainerUpdateError: it failed and was undone.
    """
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    if script["request"].get("vnfcInstanceId") or NEXT_STEP in script:
        return
    with cluster_of(instance) as (cluster, options):
        if (
            script["operation"] == "heal_end"
            and v2_memory.recall(script).get("state") == v2_memory.UPDATED
        ):
            output["vnf_instance"] = with_live_pods(instance, cluster)
            return
        base = request_of(instance, package, package)
        heal_id = (script.get("grant_request") or {}).get("vnfLcmOpOccId") or ""
        goal = Heal(HealRequest(package, **base.placing, request_id=heal_id), options)
        outcome = run(goal, cluster, options)
    records = replace(
        Records.of_update(outcome),
        workloads=workloads_of(outcome.plan.vdus, outcome.plan.manifests),
    )
    v2_memory.remember(output, {"state": v2_memory.UPDATED})
    output["vnf_instance"] = with_records(records, instance)


def create_others(script: Json, output: Json) -> None:
    """Create what Tacker leaves out: objects of kinds that it does not know, custom resources too.

    This project's own service has created them by itself.

    :raises ContainerUpdateError: it failed and was undone.
    """
    instance, package = script["vnf_instance"], script["tmp_csar_dir"]
    if NEXT_STEP in script:
        return
    base = request_of(instance, package, package)
    with cluster_of(instance) as (cluster, options):
        goal = Install(InstallRequest(package, **base.placing), options)
        outcome = run(goal, cluster, options)
    workloads = workloads_of(outcome.plan.vdus, outcome.plan.manifests)
    tackers = {vdu: each.body for vdu, each in recorded_workloads(instance).items()}
    records = replace(Records.of_update(outcome), workloads={**workloads, **tackers})
    output["vnf_instance"] = with_records(records, instance)


def delete_others(script: Json, output: Json) -> None:  # noqa: ARG001 (has nothing to answer)
    """Delete the VNF before Tacker does, if Tacker would leave something of it.

    That is a Deployment to which an unfinished Blue-Green change gave a passing name, and
    what :func:`create_others` created, and the history. The claims of a StatefulSet go with it:
    Tacker deletes them together with the set, which it does not find any more, and then waits for
    their volumes.

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
        request = TerminateRequest(package, **base.placing, delete_data=True)
        if live_objects.live_names(live) or _has_others(request, options):
            run(Uninstall(request, options, is_recorded=True), cluster, options)
        HistoryWriter(cluster, base.namespace, instance["id"]).clear()


def _has_others(request: TerminateRequest, options: Options) -> bool:
    """Tell whether a package describes objects that Tacker leaves out."""
    try:
        described = described_by(request, options)
    except errors.PackageError as error:  # Tacker, which is less strict, may be able to terminate
        LOG.warning("the termination is left to Tacker: %s", error)
        return False
    return any(manifest.key.kind not in TACKERS_KINDS for manifest in described)


def _is_of(vnfd_id: str | None, package: str, options: Options) -> bool:
    with csar.open_package(package, options=options) as opened:
        return opened.vnfd_id in (None, "", vnfd_id)


def _check_plan(
    body: Json, base: UpdateRequest, instance: Json, cluster: Cluster, options: Options
) -> None:
    """Plan a rolling update of ours, with the recorded workloads as old package."""
    record = InstanceRecord(None, tuple(recorded_workloads(instance).values()))
    if not record.manifests:
        return
    request = ChangePackageRequest(
        body,
        "",
        base.new,
        namespace=base.namespace,
        one_namespace=True,
        instance_id=base.instance_id,
    )
    preview(PackageChange(request, cluster, options, record=record), cluster, options)


def _refuse_unfinished(base: UpdateRequest, cluster: Cluster, options: Options) -> None:
    """Refuse while it is frozen, or has an operation or a journal: Tacker knows of none of them."""
    current = status(cluster, options, namespace=base.namespace, instance_id=base.instance_id)
    refuse_frozen(current.frozen, base.namespace, base.instance_id)
    if current.holder is not None and not current.expired:
        raise errors.UpdateInProgressError(f"VNF instance {base.instance_id}: {current}")
    if current.record is not None:
        raise errors.PlanError(
            f"VNF instance {base.instance_id}: an operation was interrupted and has left its"
            f" journal in the namespace {base.namespace}: finish or undo it first",
            next_step=errors.NextStep.FIX_TARGET,
        )


def _def_files(
    base: UpdateRequest, before: Iterable[str], cluster: Cluster, options: Options
) -> list[str]:
    """Return the def-files after a change, for Tacker's termination; moved objects are followed."""
    placing = replace(base, def_files=())
    with csar.open_package(base.new, options=options) as opened:
        kept = [path for path in before if is_url(path) or opened.has(path)]
        files = list(dict.fromkeys((*kept, *base.def_files)))
        inside = [path for path in files if not is_url(path)]
        listed = read_manifests(opened, inside, placing)
        unlisted = (path for path in opened.manifest_files() if path not in inside)
        others = read_manifests(opened, unlisted, placing)
    described = {manifest.key for manifests in listed.values() for manifest in manifests}
    for path, manifests in others.items():
        keys = {manifest.key for manifest in manifests} - described
        lives = (if_allowed(partial(cluster.get, key), None) for key in keys)
        if any(live and instance_of(live) == base.instance_id for live in lives):
            files.append(path)
            described |= keys
    return files
