# SPDX-License-Identifier: Apache-2.0
"""MODIFY_INFO: changes the record; a Mgmt Driver may move the VNF to the new package.

The drivers are those of the old package. The record that they get at the end names the new one; it
is stored only if they succeed, so that a failure leaves the old record with the old VNF. What our
own driver would do at the end, this service does itself, in both APIs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from container_update.drivers import change_by_modify, v2_memory
from container_update.drivers.change_by_modify import Work
from container_update.drivers.way_back import go_back
from container_update.model.cluster import Cluster
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json, merge_patch
from container_update.model.plan import Plan
from container_update.model.requests import CONFIG_PATHS
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord

_MERGED = ("metadata", "extensions", "vnfConfigurableProperties")
_PLAIN = ("vnfInstanceName", "vnfInstanceDescription")


def do_modify(context: OperationContext) -> VnfRecord:
    """Change the record, and with a Mgmt Driver what runs."""
    if not context.record.instantiated:
        return modified(context, context.record)
    drivers = drivers_of(context)
    record = modified(context, drivers.call("modify_information_start", context.record))
    if drivers.is_ours:
        work = drivers.work(record)
        return record if work is None else _moved(context, record, work)
    new = context.package(record.vnfd_id) if context.request.get("vnfdId") else None
    return drivers.call(MODIFIED, record, new)


def undo_modify(context: OperationContext) -> VnfRecord:
    """Move the VNF back to the old package if a driver had begun to move it.

    :raises NoWayBackError: it was complete, and what was there before it is not kept.
    """
    if not context.record.instantiated:
        return context.record
    drivers = drivers_of(context)
    record = drivers.call("modify_information_rollback_start", context.record)
    ours = context.kept.get(v2_memory.OURS) or {}
    if ours and ours["state"] not in v2_memory.SETTLED:
        with context.cluster() as cluster:
            restarted = go_back(
                str(context.package(record.vnfd_id)),
                cluster,
                context.service.options,
                ours["state"],
                context.cancel,
                context.steps,
                namespace=record.namespace,
                instance_id=context.instance_id,
            )
            record = records.with_live_pods(context, record, cluster)
        record = replace(record, touched=restarted)
    return drivers.call("modify_information_rollback_end", record)


def modified(context: OperationContext, record: VnfRecord) -> VnfRecord:
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


def planned(context: OperationContext, cluster: Cluster, work: Work) -> Plan:
    """Return the plan of what our own driver would do; write nothing, raise the same errors."""
    instance = context.record.vnf_instance(context.instance_id)
    return work.preview(cluster, context.service.options, context.connection, instance)


def _moved(context: OperationContext, record: VnfRecord, work: Work) -> VnfRecord:
    """Do what our own driver does; return the record of what runs then."""
    instance = context.record.vnf_instance(context.instance_id)
    try:
        with context.cluster() as cluster:
            outcome, written = work.carry_out(
                cluster,
                context.service.options,
                context.connection,
                instance,
                context.cancel,
                context.steps,
            )
    except ContainerUpdateError as error:
        context.remember(v2_memory.after_failure(error))
        raise
    context.remember(v2_memory.after_success(outcome))
    if work.change is not None:  # its parameters may hold passwords
        metadata = change_by_modify.without_parameters(record.body.get("metadata"))
        record = replace(record, body={**record.body, "metadata": metadata})
    record = records.with_written(context, record, written)
    return replace(record, touched=written.restarted)
