# SPDX-License-Identifier: Apache-2.0
"""INSTANTIATE and TERMINATE: create what the package describes, and delete it."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

from container_update.model.objects import merge_patch
from container_update.vnfm.lcm.infrastructure.vim import connected
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import NotYetError, OperationContext, VnfRecord
from container_update.vnfm.lcm.steps import WAIT
from container_update.vnfm.store.database import now, timestamp

LOG = logging.getLogger(__name__)
_GIVEN = ("extensions", "vnfConfigurableProperties")


def do_instantiate(context: OperationContext) -> VnfRecord:
    """Create the VNF and wait until it runs."""
    context = _in_its_vim(context)
    drivers = drivers_of(context)
    context = replace(context, record=drivers.call("instantiate_start", context.record))
    with connected(context) as vim:
        record = vim.instantiate()
    given = {name: context.request[name] for name in _GIVEN if context.request.get(name)}
    body = {
        **record.body,
        **{name: merge_patch(record.body.get(name), given[name]) for name in given},
    }
    record = replace(record, body=body)
    return drivers.call("instantiate_end", record)


def undo_instantiate(context: OperationContext) -> VnfRecord:
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


def do_terminate(context: OperationContext) -> VnfRecord:
    """Delete the VNF, and wait until it is gone."""
    drivers, record = drivers_of(context), context.record
    if context.waited:
        seconds = (now() - context.started()).total_seconds()
        context.steps.add("VNF", WAIT, "done", "", seconds)
    else:
        record = drivers.call("terminate_start", record)
        _leave_time_to_take_it_out_of_service(context)
    with connected(context) as vim:
        vim.terminate()
    record = drivers.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)


def _leave_time_to_take_it_out_of_service(context: OperationContext) -> None:
    """Leave the time that a GRACEFUL termination asks for, from when it was accepted on.

    SOL003, 5.5.2.8: the time to take the VNF out of service before it is shut down. Without a
    timeout nothing is waited for but the pods' own grace periods.

    :raises NotYetError: there is some of it left.
    """
    grace = timedelta(seconds=context.request.get("gracefulTerminationTimeout") or 0)
    due = min(context.started(), now()) + grace  # the clock may have been set back
    if due <= now():
        return
    LOG.info("VNF instance %s: terminated at %s, as requested", context.instance_id, timestamp(due))
    context.steps.add("VNF", WAIT, "running", f"until {timestamp(due)}, to take it out of service")
    raise NotYetError(due)
