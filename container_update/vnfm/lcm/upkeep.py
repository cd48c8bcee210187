# SPDX-License-Identifier: Apache-2.0
"""HEAL and SCALE: a VNF is brought to what its package says, or an aspect goes levels out or in.

A heal that failed stays as it is: a retry finishes it. A rollback undoes it in a cluster, by the
journal; SOL003 leaves that to the VNFM, and Tacker has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from container_update.model.objects import Json
from container_update.vnfm.lcm import levels
from container_update.vnfm.lcm.infrastructure.vim import connected
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord


def do_heal(context: OperationContext) -> VnfRecord:
    """Replace what is broken and wait until it works."""
    drivers = drivers_of(context)
    before = drivers.call("heal_start", context.record)
    asked = context.request.get("vnfcInstanceId") or ()
    entries = vnfc_entries(context.api, before.info)
    vnfcs = [entries[vnfc_id] for vnfc_id in asked if vnfc_id in entries]
    with connected(context) as vim:
        vim.heal(vnfcs, with_storage=bool(context.params.get("all")))
        record = vim.as_it_is(before)
    touched = frozenset(_resource_id(entry) for entry in vnfcs or entries.values())
    return drivers.call("heal_end", replace(record, touched=touched))


def undo_heal(context: OperationContext) -> VnfRecord:
    """Undo by the journal what a heal changed."""
    drivers = drivers_of(context)
    record = drivers.call("heal_rollback_start", context.record)
    with connected(context) as vim:
        vim.undo()
        record = vim.as_it_is(record)
    return drivers.call("heal_rollback_end", record)


def vnfc_entries(api: str, info: Json) -> Mapping[str, Json]:
    """Return the entries of vnfcResourceInfo by the ids that a request names.

    :param info: instantiatedVnfInfo.
    :returns: in v1 by their own ids, in v2 by those of vnfcInfo, as in Tacker.
    """
    entries = {str(entry["id"]): entry for entry in info.get("vnfcResourceInfo") or ()}
    if api == "v1":
        return entries
    return {
        str(vnfc["id"]): entries[vnfc["vnfcResourceInfoId"]]
        for vnfc in info.get("vnfcInfo") or ()
        if vnfc.get("vnfcResourceInfoId") in entries
    }


def _resource_id(entry: Json) -> str:
    return str(entry["computeResource"].get("resourceId"))


def do_scale(context: OperationContext) -> VnfRecord:
    """Give the aspect's VDUs their numbers of VNFCs and wait until they run."""
    drivers = drivers_of(context)
    before = drivers.call("scale_start", context.record)
    info, numbers = levels.scaled(levels.scaling_of(context), before.info, context.request)
    with connected(context) as vim:
        vim.scale(numbers, context.operation_id)
        record = vim.as_it_is(before)
    after = {**record.info, "scaleStatus": info["scaleStatus"]}
    record = replace(record, body={**record.body, "instantiatedVnfInfo": after})
    return drivers.call("scale_end", record)


def undo_scale(context: OperationContext) -> VnfRecord:
    """Undo a scaling by its journal, or by another scaling where it has come to its end."""
    drivers = drivers_of(context)
    record = drivers.call("scale_rollback_start", context.record)
    _, numbers = levels.scaled(levels.scaling_of(context), record.info, context.request)
    now = levels.vnfcs_of(record.info)
    with connected(context) as vim:
        vim.scale({vdu: now[vdu] for vdu in numbers}, f"{context.operation_id} back")
        record = vim.as_it_is(record)
    return drivers.call("scale_rollback_end", record)
