"""SCALE: one aspect goes some levels out or in."""

from __future__ import annotations

from dataclasses import replace

from container_update.vnfm.lcm import levels
from container_update.vnfm.lcm.infrastructure.vim import connected
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import OperationContext, Record


def do_scale(context: OperationContext) -> Record:
    """Give the aspect's VDUs their numbers of VNFCs and wait until they run."""
    drivers = drivers_of(context)
    before = drivers.call("scale_start", context.record)
    info, numbers = levels.scaled(levels.scaling_of(context), before.info, context.request)
    with connected(context) as vim:
        vim.scale(numbers)
        record = vim.as_it_is(before)
    after = {**record.info, "scaleStatus": info["scaleStatus"]}
    record = replace(record, body={**record.body, "instantiatedVnfInfo": after})
    return drivers.call("scale_end", record)


def undo_scale(context: OperationContext) -> Record:
    """Undo by the journal what a scaling changed."""
    drivers = drivers_of(context)
    record = drivers.call("scale_rollback_start", context.record)
    _, numbers = levels.scaled(levels.scaling_of(context), record.info, context.request)
    now = levels.vnfcs_of(record.info)
    with connected(context) as vim:
        vim.undo_scale({vdu: now[vdu] for vdu in numbers})
        record = vim.as_it_is(record)
    return drivers.call("scale_rollback_end", record)
