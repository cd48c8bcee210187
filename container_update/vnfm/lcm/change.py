# SPDX-License-Identifier: Apache-2.0
"""CHANGE_VNFPKG: Blue-Green or rolling, by the strategies of ``container_update.engine.goals``.

A failed change stays as it is and the occurrence is FAILED_TEMP: a retry finishes it, a rollback
undoes it, both by the journal in the VIM.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from container_update.drivers import v2_memory
from container_update.engine.goals.change_package import (
    coordination_of,
    preview_change,
    run_change,
)
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.job import ChangeJob, Occurrence
from container_update.model.errors import NoWayBackError
from container_update.model.objects import merge_patch
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm.infrastructure.vim import connected
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.operation_context import NotYetError, OperationContext, VnfRecord
from container_update.vnfm.states import HELD, PROMOTED
from container_update.vnfm.store.database import now

_LOOK_AGAIN = timedelta(minutes=1)
"""A change that waits for a person is looked at so often: somebody may promote it by the command.
"""


def do_change(context: OperationContext) -> VnfRecord:
    """Change the package; all of the new one takes effect."""
    before = context.record
    drivers, is_held = drivers_of(context), HELD in context.kept
    if not is_held:
        before = drivers.call("change_current_package_start", before)
    context = replace(context, record=before)
    with connected(context) as vim:
        target = vim.target()
        job = job_of(context, target.vim_type)
        scripts = coordination_of(job, target, context.cancel)
        changed = run_change(job, target, context.cancel, context.steps, scripts)
        if changed.outcome.held is not None:
            context.kept |= {HELD: changed.outcome.held.key.name, PROMOTED: ""}
            raise NotYetError(now() + _LOOK_AGAIN)
        body = changed.records.applied({**context.record.body, "vnfdId": before.vnfd_id})
        vnfd_id = str(body.pop("vnfdId"))
        patches = {
            "extensions": job.request.extensions,
            "vnfConfigurableProperties": job.request.vnf_configurable_properties,
        }
        body |= {
            name: merge_patch(body.get(name), patch) for name, patch in patches.items() if patch
        }
        body |= instances.product_of(
            context.read(lambda session: packages.of_vnfd(session, vnfd_id))
        )
        record = vim.changed(replace(context.record, vnfd_id=vnfd_id, body=body), changed)
    return drivers.call("change_current_package_end", record)


def undo_change(context: OperationContext) -> VnfRecord:
    """Undo by the journal what the change left in the VIM.

    :raises NoWayBackError: what is old is being deleted, or the change is complete and only its
        record is missing: it can only be finished.
    """
    drivers = drivers_of(context)
    record = drivers.call("change_current_package_rollback_start", context.record)
    with connected(context) as vim:
        job = job_of(context, vim.target().vim_type)
        undone = vim.undo_change(job)
        was_planned = v2_memory.OURS in context.kept  # else nothing was written
        if undone is None and was_planned and preview_change(job, vim.target()).is_empty:
            raise NoWayBackError(
                "the change was complete when the service ended, only its record is missing: it "
                "cannot be undone any more"
            )
        record = vim.as_it_is(record)
    return drivers.call("change_current_package_rollback_end", record)


def job_of(context: OperationContext, vim_type: str) -> ChangeJob:
    """Return the change that an operation requests."""
    record, request = context.record, ChangeRequest.of(context.request, vim_type)
    root = f"{context.service.settings.base_url}/vnflcm/{context.api}"
    return ChangeJob(
        request=request,
        old=str(context.package(record.vnfd_id)),
        new=str(context.package(request.vnfd_id)),
        instance_id=context.instance_id,
        options=context.service.options,
        leave_failed=True,
        promote=context.kept.get(PROMOTED, ""),
        instance=record.vnf_instance(context.instance_id),
        occurrence=Occurrence(
            context.operation_id,
            f"{root}/vnf_lcm_op_occs/{context.operation_id}",
            f"{root}/vnf_instances/{context.instance_id}",
        ),
    )
