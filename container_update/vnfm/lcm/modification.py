"""MODIFY_INFO: the record is changed as the request says; a Mgmt Driver may move the VNF to the new
package on the way.

The drivers are those of the old package. The record that they see at the end names the new one; it
is kept only when they have succeeded, so that a failure leaves the old record with the old VNF.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from container_update.drivers import v2_memory
from container_update.drivers.v2_rollback import go_back
from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.model.requests import UpdateRequest
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm import drivers, records
from container_update.vnfm.lcm.operation_context import OperationContext, Record, merged

_MERGED = ("metadata", "extensions", "vnfConfigurableProperties")
_PLAIN = ("vnfInstanceName", "vnfInstanceDescription")


def do_modify(context: OperationContext) -> Record:
    """Change the record, and with a Mgmt Driver what runs."""
    before, request = context.record, context.request
    if not before.instantiated:
        return _modified(context, before)
    chosen = drivers.of_package(context, before.vnfd_id, before.flavour_id)
    started = chosen.call("modify_information_start", before)
    changed = _modified(context, started)
    new = context.package(changed.vnfd_id) if request.get("vnfdId") else None
    return chosen.call("modify_information_end", changed, new)


def undo_modify(context: OperationContext) -> Record:
    """Bring the cluster to what the old package says, where a driver had begun to move it."""
    before = context.record
    if not before.instantiated or not context.request.get("vnfdId"):
        return before
    chosen = drivers.of_package(context, before.vnfd_id, before.flavour_id)
    record = chosen.call("modify_information_rollback_start", before)
    if context.api == "v1" and v2_memory.OURS in context.kept:
        record = _put_back(context)
    return chosen.call("modify_information_rollback_end", record)


def _modified(context: OperationContext, record: Record) -> Record:
    request, body = context.request, dict(record.body)
    body |= {name: request[name] for name in _PLAIN if name in request}
    body |= {
        name: merged(body.get(name), request[name])
        for name in _MERGED
        if request.get(name) is not None
    }
    vnfd_id = request.get("vnfdId") or record.vnfd_id
    if vnfd_id != record.vnfd_id:
        with context.service.database.reading() as session:
            package = packages.of_vnfd(session, vnfd_id)
            body |= instances.product_of(package)
            if context.api == "v1":
                body["vnfPkgId"] = package.id
    _modify_vnfcs(body, request)
    vims = joined_vims(record.vims, request.get("vimConnectionInfo"))
    return replace(record, vnfd_id=vnfd_id, body=body, vims=vims)


def _modify_vnfcs(body: Json, request: Mapping[str, Any]) -> None:
    """vnfcInfoModifications: properties of single VNFCs."""
    wanted = {
        entry.get("id"): entry.get("vnfcConfigurableProperties")
        for entry in request.get("vnfcInfoModifications") or ()
    }
    info = body.get("instantiatedVnfInfo") or {}
    if not wanted or not info:
        return
    entries = [
        {
            **entry,
            "vnfcConfigurableProperties": merged(
                entry.get("vnfcConfigurableProperties"), wanted[entry["id"]]
            ),
        }
        if entry["id"] in wanted
        else entry
        for entry in info.get("vnfcInfo") or ()
    ]
    body["instantiatedVnfInfo"] = {**info, "vnfcInfo": entries}


def joined_vims(recorded: Any, given: Any) -> Any:
    """vimConnectionInfo with a request's laid over it: by name in v2, by id in v1."""
    if not given:
        return recorded
    if isinstance(given, Mapping):
        return merged(recorded, given)
    by_id = {entry.get("id"): entry for entry in recorded or ()}
    for entry in given:
        by_id[entry.get("id")] = merged(by_id.get(entry.get("id")), entry)
    return list(by_id.values())


def _put_back(context: OperationContext) -> Record:
    """Return an update back to the old package."""
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
    with context.cluster() as cluster:
        outcome = go_back(
            request,
            cluster,
            context.service.options,
            ours,
            cancel=context.cancel,
            progress=context.steps,
        )
    return records.with_vnfcs(
        context, record, outcome.vnfcs, outcome.plan.manifests, record.def_files
    )
