"""MODIFY_INFO: changes the record; a Mgmt Driver may move the VNF to the new package.

The drivers are those of the old package. The record that they get at the end names the new one; it
is stored only if they succeed, so that a failure leaves the old record with the old VNF.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from container_update.drivers import v2_memory
from container_update.drivers.v2_rollback import go_back
from container_update.model.errors import PackageError
from container_update.model.objects import Json, merge_patch
from container_update.model.requests import CONFIG_PATHS, UPGRADE_TYPE, UpdateRequest
from container_update.operations.records.vnf_records import Records
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import OperationContext, Record

_MERGED = ("metadata", "extensions", "vnfConfigurableProperties")
_PLAIN = ("vnfInstanceName", "vnfInstanceDescription")


def do_modify(context: OperationContext) -> Record:
    """Change the record, and with a Mgmt Driver what runs."""
    if not context.record.instantiated:
        return modified(context, context.record)
    drivers = drivers_of(context)
    record = modified(context, drivers.call("modify_information_start", context.record))
    new = context.package(record.vnfd_id) if context.request.get("vnfdId") else None
    return drivers.call("modify_information_end", record, new)


def undo_modify(context: OperationContext) -> Record:
    """Move the VNF back to the old package if a driver had begun to move it."""
    if not context.record.instantiated:
        return context.record
    drivers = drivers_of(context)
    record = drivers.call("modify_information_rollback_start", context.record)
    if context.api == "v1" and v2_memory.OURS in context.kept:
        metadata = context.request.get("metadata") or {}
        is_update = context.request.get("vnfdId") and not metadata.get(UPGRADE_TYPE)
        record = _moved_back(context) if is_update else _undone(context)
    return drivers.call("modify_information_rollback_end", record)


def modified(context: OperationContext, record: Record) -> Record:
    """Return the record as the request of an operation modifies it."""
    request, body = context.request, dict(record.body)
    body |= {name: request[name] for name in _PLAIN if name in request}
    body |= {
        name: merge_patch(body.get(name), _stored(name, request[name], context.api))
        for name in _MERGED
        if request.get(name) is not None
    }
    vnfd_id = request.get("vnfdId") or record.vnfd_id
    if vnfd_id != record.vnfd_id:
        package = context.read(lambda session: packages.of_vnfd(session, vnfd_id))
        body |= instances.product_of(package)
        if context.api == "v1":
            body["vnfPkgId"] = package.id
    _modify_vnfcs(body, request)
    return replace(record, vnfd_id=vnfd_id, body=body)


def _stored(name: str, patch: Any, api: str) -> Any:
    """Return what of a request's attribute is stored: Tacker's v1 leaves the driver's list out."""
    if name != "metadata" or api != "v1":
        return patch
    return {key: value for key, value in patch.items() if key != CONFIG_PATHS}


def _modify_vnfcs(body: Json, request: Mapping[str, Any]) -> None:
    """Apply vnfcInfoModifications: properties of single VNFCs."""
    name = "vnfcConfigurableProperties"
    patches = {
        entry.get("id"): entry.get(name) for entry in request.get("vnfcInfoModifications") or ()
    }
    info = body.get("instantiatedVnfInfo") or {}
    if patches and info:
        entries = [
            {**entry, name: merge_patch(entry.get(name), patches[entry["id"]])}
            if entry["id"] in patches
            else entry
            for entry in info.get("vnfcInfo") or ()
        ]
        body["instantiatedVnfInfo"] = {**info, "vnfcInfo": entries}


def _undone(context: OperationContext) -> Record:
    """Undo by its journal in the cluster what was interrupted; return the record of what runs."""
    with context.cluster() as cluster:
        context.journalled(cluster).recover(back=True, cancel=context.cancel)
        return records.with_live_pods(context, context.record, cluster)


def _moved_back(context: OperationContext) -> Record:
    """Update the VNF back to the old package; return its record."""
    record, old = context.record, str(context.package(context.record.vnfd_id))
    if not record.def_files:
        raise PackageError(f"VNF instance {context.instance_id}: it has no def-files to go back to")
    request = UpdateRequest(
        old=old,
        new=old,
        def_files=record.def_files,
        namespace=record.namespace,
        one_namespace=True,
        instance_id=context.instance_id,
    )
    ours = context.kept.get(v2_memory.OURS) or {}
    options, cancel, progress = context.service.options, context.cancel, context.steps
    with context.cluster() as cluster:
        outcome = go_back(request, cluster, options, ours, cancel=cancel, progress=progress)
    manifests = outcome.plan.manifests
    record = records.with_vnfcs(context, record, outcome.vnfcs, manifests, record.def_files)
    return replace(record, touched=Records.of_update(outcome).restarted)
