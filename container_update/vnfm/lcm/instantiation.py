"""INSTANTIATE and TERMINATE: create what the package describes, and delete it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.vnfm.lcm.vim import connected


def do_instantiate(context: OperationContext) -> Record:
    """Create the VNF and wait until it runs."""
    context = _in_its_vim(context)
    drivers = drivers_of(context)
    context = replace(context, record=drivers.call("instantiate_start", context.record))
    with connected(context) as vim:
        record = vim.instantiate()
    return drivers.call("instantiate_end", record)


def undo_instantiate(context: OperationContext) -> Record:
    """Delete what was created so far."""
    with connected(_in_its_vim(context)) as vim:
        vim.undo_instantiate()
    return context.record


def _in_its_vim(context: OperationContext) -> OperationContext:
    """Return the operation in the VIM that the request names, else in the default one, which is
    recorded: the VNF stays there when another VIM becomes the default."""
    vims: Any = context.request.get("vimConnectionInfo")
    if not vims:
        entry = {name: context.connection[name] for name in ("vimId", "vimType")}
        vims = [{"id": "default", **entry}] if context.api == "v1" else {"default": entry}
    return replace(context, record=replace(context.record, vims=vims))


def do_terminate(context: OperationContext) -> Record:
    """Delete the VNF, and wait until it is gone."""
    drivers = drivers_of(context)
    record = drivers.call("terminate_start", context.record)
    with connected(context) as vim:
        vim.terminate()
    record = drivers.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)
