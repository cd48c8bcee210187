# SPDX-License-Identifier: Apache-2.0
"""What a request would do to a VNF, as a plan: nothing is written, no script of a package runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from container_update.engine.goals.change_package import preview_change
from container_update.engine.progress import remarks, step_events
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.plan import Plan
from container_update.planning.summary import nothing_to_do, plan_sum
from container_update.vnfm import vim_clients, vims
from container_update.vnfm.lcm.change import job_of
from container_update.vnfm.lcm.infrastructure.vim import connected
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED
from container_update.vnfm.lcm.modification import modified, planned
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord
from container_update.vnfm.lcm.steps import Steps
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance

CHANGE = "CHANGE_VNFPKG"
_RECORD_ONLY = "only its record changes, nothing that runs"


def plan_of(
    service: ServiceContext, instance: Instance, recorded: Any, operation: str, request: Json
) -> Json:
    """Return the plan of a request that was checked.

    :param recorded: the instance's vimConnectionInfo, with credentials.
    :param operation: MODIFY_INFO or CHANGE_VNFPKG.
    :raises ProblemError: see :func:`.vim_clients.answered`.
    """
    context = _context(service, instance, recorded, request)
    with vim_clients.answered(service):
        if operation == CHANGE:
            return _shown(_change(context))
        plan = _modification(context)
        if isinstance(plan, Plan):
            return _shown(plan)
    named = f"VNF instance {instance.id}"
    remark = {"object": named, "kind": "note", "text": plan}
    return {"isEmpty": True, "summary": f"{named}: {plan}.", "steps": [], "remarks": [remark]}


def _context(
    service: ServiceContext, instance: Instance, recorded: Any, request: Json
) -> OperationContext:
    """Return the context of an operation that does not exist, with a VIM that is asked once."""
    impatient = replace(service, options=replace(service.options, retry_seconds=0))
    record = VnfRecord(
        vnfd_id=instance.vnfd_id,
        instantiated=instance.instantiated,
        body=instance.body,
        vims=vims.modified(recorded, request),
    )
    return OperationContext(
        service=impatient,
        operation_id="",
        instance_id=instance.id,
        api=instance.api,
        request=request,
        record=record,
        recorded_vims=recorded,
        cancel=CancelToken(),
        steps=Steps(service.database, "", remember=False),
        kept={},
    )


def _change(context: OperationContext) -> Plan:
    with connected(context) as vim:
        target = vim.target()
        return preview_change(job_of(context, target.vim_type), target)


def _modification(context: OperationContext) -> Plan | str:
    """Return the plan of our own driver; where it has nothing to do, what happens instead."""
    if not context.record.instantiated:
        return _RECORD_ONLY
    drivers = drivers_of(context)
    if not drivers.is_ours:
        script = drivers.scripts.get(MODIFIED)
        if script is None:
            return f"{_RECORD_ONLY}: its VNFD maps {MODIFIED} to no Mgmt Driver"
        return f"the package's own Mgmt Driver {script.implementation} decides what happens"
    work = drivers.work(modified(context, context.record))
    if work is None:
        return _RECORD_ONLY
    with context.cluster() as cluster:
        return planned(context, cluster, work)


def _shown(plan: Plan) -> Json:
    names = ("object", "action", "reasons", "diff")
    return {
        "isEmpty": plan.is_empty,
        "summary": nothing_to_do(plan) if plan.is_empty else plan_sum(plan),
        "steps": [{name: step[name] for name in names} for step in step_events(plan)],
        "remarks": list(_remarks(plan)),
    }


def _remarks(plan: Plan) -> Iterator[Json]:
    for remark in remarks(plan):
        yield {"object": remark["object"], "kind": remark["action"], "text": remark["message"]}
