"""INSTANTIATE and TERMINATE: make what the package describes, and delete it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from container_update.vnfm.lcm import drivers
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.vnfm.lcm.vim import connected


def do_instantiate(context: OperationContext) -> Record:
    """Make the VNF and wait until it runs."""
    context = _in_its_vim(context)
    chosen = drivers.of_package(context, context.record.vnfd_id, context.request.get("flavourId"))
    context = replace(context, record=chosen.call("instantiate_start", context.record))
    with connected(context) as vim:
        record = vim.instantiate()
    return chosen.call("instantiate_end", record)


def undo_instantiate(context: OperationContext) -> Record:
    """Delete what was made so far."""
    with connected(_in_its_vim(context)) as vim:
        vim.undo_instantiate()
    return context.record


def _in_its_vim(context: OperationContext) -> OperationContext:
    """Return the same work, in the VIM that the request names, or in the default one: it stays
    there when another becomes the default."""
    vims: Any = context.request.get("vimConnectionInfo")
    if not vims:
        entry = {name: context.connection[name] for name in ("vimId", "vimType")}
        vims = [{"id": "default", **entry}] if context.api == "v1" else {"default": entry}
    return replace(context, record=replace(context.record, vims=vims))


def do_terminate(context: OperationContext) -> Record:
    """Delete the VNF, and wait until it is gone."""
    record = context.record
    chosen = drivers.of_package(context, record.vnfd_id, record.flavour_id)
    record = chosen.call("terminate_start", record)
    with connected(context) as vim:
        vim.terminate()
    record = chosen.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)
