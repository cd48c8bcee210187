# SPDX-License-Identifier: Apache-2.0
"""What each lifecycle operation does, how it is undone (:data:`TASKS`), and the plan of a request.

A failed operation stays as it is and the occurrence is FAILED_TEMP: a retry finishes it, a rollback
undoes it, mostly by the journal in the VIM.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from container_update.drivers import change_by_modify, v2_memory
from container_update.drivers.change_by_modify import Modification
from container_update.engine.goals.change_request import FromVnfm, Occurrence
from container_update.engine.progress import remarks, step_events
from container_update.engine.run import preview
from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json, merge_patch
from container_update.model.plan import Plan
from container_update.model.requests import CONFIG_PATHS, ChangePackageRequest
from container_update.planning.summary import nothing_to_do, plan_sum
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.infrastructure import connect_vim
from container_update.vnfm.lcm.mgmt_drivers import drivers_of
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED
from container_update.vnfm.lcm.operation_context import (
    WAIT,
    NotYetError,
    OperationContext,
    Steps,
    VnfRecord,
)
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import HELD, PROMOTED, STARTED
from container_update.vnfm.store.database import now, timestamp
from container_update.vnfm.store.rows import Instance, OperationRow

if TYPE_CHECKING:
    from container_update.vnfm.lcm.infrastructure import Vim


LOG = logging.getLogger(__name__)
_GIVEN = ("extensions", "vnfConfigurableProperties")


# --- INSTANTIATE and TERMINATE ------------------------------------------------------------------


def do_instantiate(context: OperationContext) -> VnfRecord:
    """Create the VNF and wait until it runs."""
    drivers = drivers_of(context)
    context = replace(context, record=drivers.call("instantiate_start", context.record))
    with connect_vim(context) as vim:
        record = vim.instantiate()
    given = {name: context.request[name] for name in _GIVEN if context.request.get(name)}
    return drivers.call("instantiate_end", replace(record, body=_merge(record.body, given)))


def undo_instantiate(context: OperationContext) -> VnfRecord:
    """Delete what was created so far."""
    return _undone(context, "instantiate", lambda vim, _: vim.undo_instantiate())


def _undone(
    context: OperationContext, event: str, undo: Callable[[Vim, VnfRecord], frozenset[str] | None]
) -> VnfRecord:
    """Undo an operation in the VIM, between the drivers of its rollback; return the record.

    The VIM of a VNF that is not instantiated is not asked where nothing was written: its
    credentials may be the cause of the failure.
    """
    drivers = drivers_of(context)
    record = drivers.call(f"{event}_rollback_start", context.record)
    is_touched = not v2_memory.is_untouched(context.kept)
    if is_touched or record.instantiated:
        with connect_vim(context) as vim:
            touched = undo(vim, record) if is_touched else None
            if record.instantiated:
                record = replace(vim.as_it_is(record), touched=touched or frozenset())
    return drivers.call(f"{event}_rollback_end", record)


def _merge(body: Json, patches: Mapping[str, Any]) -> Json:
    """Return attributes with JSON merge patches of some of them."""
    return {**body, **{name: merge_patch(body.get(name), patches[name]) for name in patches}}


def do_terminate(context: OperationContext) -> VnfRecord:
    """Delete the VNF, and wait until it is gone."""
    drivers, record = drivers_of(context), context.record
    if context.waited:
        seconds = (now() - context.start_time()).total_seconds()
        context.steps.add("VNF", WAIT, "done", "", seconds)
        record = _as_started(context)
    else:
        record = drivers.call("terminate_start", record)
        context.kept[STARTED] = record.body
        _leave_time_to_take_it_out_of_service(context)
    with connect_vim(context) as vim:
        vim.terminate()
    record = drivers.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)


def _as_started(context: OperationContext) -> VnfRecord:
    """Return the record as the driver of its start left an operation that has waited since then."""
    record = context.record
    return replace(record, body=context.kept.get(STARTED, record.body))


def _leave_time_to_take_it_out_of_service(context: OperationContext) -> None:
    """Raise NotYetError while a GRACEFUL termination has time left (SOL003, 5.5.2.8)."""
    grace = timedelta(seconds=context.request.get("gracefulTerminationTimeout") or 0)
    due = min(context.start_time(), now()) + grace  # the clock may have been set back
    if due <= now():
        return
    LOG.info("VNF instance %s: terminated at %s, as requested", context.instance_id, timestamp(due))
    context.steps.add("VNF", WAIT, "running", f"until {timestamp(due)}, to take it out of service")
    raise NotYetError(due)


# --- MODIFY_INFO --------------------------------------------------------------------------------
# A Mgmt Driver may move the VNF to the new package. The drivers are those of the old package. The
# record that they get at the end names the new one; it is stored only if they succeed, so that a
# failure leaves the old record with the old VNF. What our own driver would do at the end, this
# service does itself, in both APIs.


_MERGED = ("metadata", *_GIVEN)
_PLAIN = ("vnfInstanceName", "vnfInstanceDescription")


def do_modify(context: OperationContext) -> VnfRecord:
    """Change the record, and with a Mgmt Driver the CNF."""
    if not context.record.instantiated:
        return _modify(context, context.record)
    drivers = drivers_of(context)
    record = _modify(context, drivers.call("modify_information_start", context.record))
    if drivers.is_ours:
        request = drivers.work(record)
        return record if request is None else _move(context, record, request)
    new = context.package(record.vnfd_id) if context.request.get("vnfdId") else None
    return drivers.call(MODIFIED, record, new)


def undo_modify(context: OperationContext) -> VnfRecord:
    """Move the VNF back to the old package if a driver had begun to move it.

    :raises NoWayBackError: it was complete, and what was there before it is not kept.
    """
    if not context.record.instantiated:
        return context.record
    return _undone(context, "modify_information", lambda vim, _: vim.put_back())


def _modify(context: OperationContext, record: VnfRecord) -> VnfRecord:
    """Return the record as the request of an operation modifies it."""
    request, body = context.request, dict(record.body)
    body |= {name: request[name] for name in _PLAIN if name in request}
    given = {name: request[name] for name in _MERGED if request.get(name) is not None}
    if context.api == "v1" and "metadata" in given:  # as in Tacker, without the driver's list
        listed = given["metadata"].items()
        given["metadata"] = {name: value for name, value in listed if name != CONFIG_PATHS}
    body = _merge(body, given)
    vnfd_id = request.get("vnfdId") or record.vnfd_id
    if vnfd_id != record.vnfd_id:
        package = context.read(lambda session: packages.with_vnfd(session, vnfd_id))
        body |= instances.product_of(package)
        if context.api == "v1":
            body["vnfPkgId"] = package.id
    _modify_vnfcs(body, request)
    return replace(record, vnfd_id=vnfd_id, body=body)


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


def _move(context: OperationContext, record: VnfRecord, request: Modification) -> VnfRecord:
    """Do what our own driver does; return the new record."""
    options, connection = context.service.options, context.connection
    instance = context.record.vnf_instance(context.instance_id)
    try:
        with context.cluster() as cluster:
            outcome, written = change_by_modify.carry_out(
                request,
                cluster,
                options,
                connection,
                instance,
                context.cancel,
                context.steps,
                context.why,
            )
    except ContainerUpdateError as error:
        context.remember(v2_memory.after_failure(error))
        raise
    context.remember(v2_memory.after_success(outcome))
    if isinstance(request, ChangePackageRequest):  # its parameters may hold passwords
        metadata = change_by_modify.without_parameters(record.body.get("metadata"))
        record = replace(record, body={**record.body, "metadata": metadata})
    record = records.with_written(context, record, written)
    return replace(record, touched=written.restarted)


# --- HEAL and SCALE -----------------------------------------------------------------------------


def do_heal(context: OperationContext) -> VnfRecord:
    """Replace broken resources and wait until they work."""
    drivers = drivers_of(context)
    before = drivers.call("heal_start", context.record)
    asked = context.request.get("vnfcInstanceId") or ()
    entries = vnfc_entries(context.api, before.info)
    vnfcs = [entries[vnfc_id] for vnfc_id in asked if vnfc_id in entries]
    with connect_vim(context) as vim:
        vim.heal(vnfcs, with_storage=bool(context.params.get("all")))
        record = vim.as_it_is(before)
    handles = (entry["computeResource"] for entry in vnfcs or entries.values())
    touched = frozenset(str(handle.get("resourceId")) for handle in handles)
    return drivers.call("heal_end", replace(record, touched=touched))


def undo_heal(context: OperationContext) -> VnfRecord:
    """Undo what a heal changed, in a cluster; SOL003 leaves that to the VNFM, Tacker has none."""

    def undo(vim: Vim, _: VnfRecord) -> None:
        vim.undo()

    return _undone(context, "heal", undo)


def vnfc_entries(api: str, info: Json) -> Mapping[str, Json]:
    """Return the entries of vnfcResourceInfo by the ids that a request names.

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


def do_scale(context: OperationContext) -> VnfRecord:
    """Give the aspect's VDUs their numbers of VNFCs and wait until they run."""
    drivers = drivers_of(context)
    before = drivers.call("scale_start", context.record)
    info, numbers = records.scale_info(records.scaling_of(context), before.info, context.request)
    with connect_vim(context) as vim:
        vim.scale(numbers, context.operation_id)
        record = vim.as_it_is(before)
    after = {**record.info, "scaleStatus": info["scaleStatus"]}
    return drivers.call("scale_end", record.with_info(after))


def undo_scale(context: OperationContext) -> VnfRecord:
    """Undo a scaling by its journal, or by another scaling where it has come to its end."""

    def undo(vim: Vim, record: VnfRecord) -> None:
        _, numbers = records.scale_info(records.scaling_of(context), record.info, context.request)
        recorded = records.vnfcs_of(record.info)
        vim.scale({vdu: recorded[vdu] for vdu in numbers}, f"{context.operation_id} back")

    return _undone(context, "scale", undo)


# --- CHANGE_VNFPKG ------------------------------------------------------------------------------


_LOOK_AGAIN = timedelta(minutes=1)
"""How often to look at a change that waits for a person: the command may promote it too."""


def do_change(context: OperationContext) -> VnfRecord:
    """Change the package; all of the new one takes effect."""
    drivers, before = drivers_of(context), _as_started(context)
    if not (context.kept.get(HELD) or context.kept.get(PROMOTED)):
        before = drivers.call("change_current_package_start", before)
    context = replace(context, record=before)
    with connect_vim(context) as vim:
        request, vnfm = _requested_change(context)
        outcome, written = vim.change(request, vnfm)
        if written is None:
            assert outcome.held is not None, "a person decides"
            held = outcome.held.key.name
            context.kept |= {HELD: held, PROMOTED: "", STARTED: before.body}
            raise NotYetError(now() + _LOOK_AGAIN)
        body = written.apply_to({**context.record.body, "vnfdId": before.vnfd_id})
        vnfd_id = str(body.pop("vnfdId"))
        given = {name: context.request[name] for name in _GIVEN if context.request.get(name)}
        package = context.read(lambda session: packages.with_vnfd(session, vnfd_id))
        body = _merge(body, given) | instances.product_of(package)
        record = vim.record_change(
            replace(context.record, vnfd_id=vnfd_id, body=body), outcome, written
        )
    return drivers.call("change_current_package_end", record)


def undo_change(context: OperationContext) -> VnfRecord:
    """Undo what the change left in the VIM.

    :raises NoWayBackError: the old VNF is being deleted; or the change is complete but for its
        record, and the history does not have the state before it: it can only be finished.
    """
    event = "change_current_package"
    return _undone(context, event, lambda vim, _: vim.put_back(*_requested_change(context)))


def _requested_change(context: OperationContext) -> tuple[ChangePackageRequest, FromVnfm]:
    """Return the change that an operation requests, and what this service adds to it."""
    record, request = context.record, context.request
    root = f"{context.service.settings.base_url}/vnflcm/{context.api}"
    occurrence = Occurrence(
        context.operation_id,
        f"{root}/vnf_lcm_op_occs/{context.operation_id}",
        f"{root}/vnf_instances/{context.instance_id}",
    )
    return ChangePackageRequest(
        request,
        old=str(context.package(record.vnfd_id)),
        new=str(context.package(str(request["vnfdId"]))),
        instance_id=context.instance_id,
    ), FromVnfm(
        record.vnf_instance(context.instance_id),
        occurrence,
        promoted=context.kept.get(PROMOTED, ""),
    )


# --- an operation that is given up ---------------------------------------------------------------


def left_by(service: ServiceContext, operation: OperationRow) -> tuple[Json, Json | None] | None:
    """Return the attributes of the instance with its live resources after an operation that failed
    and is given up, and resourceChanges; None: both stay, as the VIM does not answer.

    What a scaling left is undone by the next one, which counts from what was recorded before.
    """
    with service.database.reading() as session:
        instance = session.get_one(Instance, operation.instance_id)
    if not instance.instantiated or operation.operation == "SCALE":
        return None
    hurried = replace(service, options=vims.impatient(service.options))
    try:
        with vims.explain_failures(service):
            recorded = instances.vims_of(service, instance)
            context = _context(hurried, instance, recorded, service.vault.open(operation.sealed))
            with connect_vim(context) as vim:
                live = vim.as_it_is(context.record)
    except ProblemError as error:
        LOG.warning("VNF instance %s: its live resources are not recorded: %s", instance.id, error)
        return None
    return live.body, records.affected_resources(context.record, live)


# --- the plan of a request: nothing is written, no script of a package runs ---------------------


_RECORD_ONLY = "only its record changes, nothing that runs"


def plan_of(
    service: ServiceContext, instance: Instance, recorded: Any, operation: str, request: Json
) -> Json:
    """Return the plan of a checked request; errors as in :func:`.vims.explain_failures`."""
    context = _context(service, instance, recorded, request)
    with vims.explain_failures(service):
        plan = (_change if operation == "CHANGE_VNFPKG" else _modification)(context)
    if isinstance(plan, Plan):
        return _represent(plan)
    named = f"VNF instance {instance.id}"
    remark = {"object": named, "kind": "note", "text": plan}
    return {"isEmpty": True, "summary": f"{named}: {plan}.", "steps": [], "remarks": [remark]}


def _context(
    service: ServiceContext, instance: Instance, recorded: Any, request: Json
) -> OperationContext:
    """Return the context of an operation that does not exist, with a VIM that is asked once."""
    impatient = replace(service, options=replace(service.options, retry_seconds=0))
    return OperationContext(
        service=impatient,
        operation_id="",
        instance_id=instance.id,
        api=instance.api,
        request=request,
        record=VnfRecord.of(instance, vims.modify_connections(recorded, request)),
        recorded_vims=recorded,
        cancel=CancelToken(),
        steps=Steps(service.database, "", remember=False),
        kept={},
    )


def _change(context: OperationContext) -> Plan:
    with connect_vim(context) as vim:
        return vim.preview(*_requested_change(context))


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
    request = drivers.work(_modify(context, context.record))
    if request is None:
        return _RECORD_ONLY
    options, connection = context.service.options, context.connection
    with context.cluster() as cluster:
        instance = context.record.vnf_instance(context.instance_id)
        goal = change_by_modify.goal_of(request, cluster, options, connection, instance)
        return preview(goal, cluster, options)


def _represent(plan: Plan) -> Json:
    names = ("object", "action", "reasons", "diff")
    return {
        "isEmpty": plan.is_empty,
        "summary": nothing_to_do(plan) if plan.is_empty else plan_sum(plan),
        "steps": [{name: step[name] for name in names} for step in step_events(plan)],
        "remarks": [
            {"object": remark["object"], "kind": remark["action"], "text": remark["message"]}
            for remark in remarks(plan)
        ],
    }


# --- all of them ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What an operation does."""

    do: Callable[[OperationContext], VnfRecord]
    """Do it; called again after it failed or was interrupted."""
    undo: Callable[[OperationContext], VnfRecord] | None
    """Undo what a try left; None if that is not possible."""
    changed: Callable[[VnfRecord, VnfRecord], Json | None] = lambda before, after: None  # noqa: ARG005
    """Return what it changed in the attributes of the instance."""


TASKS: Mapping[str, Task] = {
    "INSTANTIATE": Task(do_instantiate, undo_instantiate),
    "TERMINATE": Task(do_terminate, None),
    "MODIFY_INFO": Task(do_modify, undo_modify, records.modifications),
    "HEAL": Task(do_heal, undo_heal),
    "SCALE": Task(do_scale, undo_scale),
    "CHANGE_VNFPKG": Task(do_change, undo_change, records.triggered_by_package),
}
"""What each LcmOperationType does."""
