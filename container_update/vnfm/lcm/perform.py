# SPDX-License-Identifier: Apache-2.0
"""Carries out an operation occurrence, from its row to its end. Start here.

STARTING -> PROCESSING -> what the operation does -> the instance's record and COMPLETED, in one
transaction; or FAILED_TEMP with the cause. A rollback likewise, from ROLLING_BACK. An operation
that is interrupted because the service ends stays in its state and is handed over, and so is one
that goes on at a later time: no worker waits for it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from container_update.drivers import v2_memory
from container_update.model.cancellation import CancelToken
from container_update.model.errors import (
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
)
from container_update.model.objects import Json
from container_update.model.reporter import reporter
from container_update.vnfm import instances, operations, vims
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.infrastructure import connect_vim
from container_update.vnfm.lcm.mgmt_drivers.driver_answer import ScriptError
from container_update.vnfm.lcm.operation_context import (
    NotYetError,
    OperationContext,
    ServiceEndsError,
    Steps,
    VnfRecord,
)
from container_update.vnfm.lcm.tasks import TASKS
from container_update.vnfm.problems import is_expected, problem_of, requests_of, without_folder
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import (
    BY_REQUEST,
    CANCELLED,
    HELD,
    PROMOTED,
    RUNNING,
    State,
    is_undoable,
    without_cancel,
)
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, OperationRow, lock_operation

LOG = logging.getLogger(__name__)
_PAUSE = 0.5


def perform(service: ServiceContext, operation_id: str, cancel: CancelToken) -> bool:
    """Carry an occurrence out, or back if its state says so, and store the result.

    :param cancel: requested when the service ends, or by a client.
    :returns: whether it waits for a time now.
    """
    lasting = service.database.lasting
    begun = lasting(lambda: _begin(service, operation_id, cancel))
    if begun is None:
        return False
    context, operation, state = begun
    if context.again:
        LOG.info("VNF instance %s: continuing what it began before", context.instance_id)
    task = TASKS[operation]
    try:
        if context.again and (
            context.record.instantiated or not v2_memory.is_untouched(context.kept)
        ):
            _wait_for_lease(context)
            context.steps.stop_scripts()
        if state is State.PROCESSING:
            after = task.do(context)
            before = replace(context.record, vims=context.recorded_vims)
            changed = task.changed(before, after)
            lasting(lambda: _end(context, state, State.COMPLETED, after, changed))
        else:
            assert task.undo is not None, f"{operation} is never rolled back"
            after = task.undo(context)
            lasting(lambda: _end(context, state, State.ROLLED_BACK, after))
    except NotYetError as wait:
        due = wait.due
        lasting(lambda: _hand_over(context, state, due))
        return True
    except Exception as error:  # noqa: BLE001 (whatever it is, the occurrence records it)
        failure, undoable = error, is_undoable(operation, context.kept)
        if _is_interrupted(context, error):
            lasting(lambda: _hand_over(context, state))
            LOG.warning(
                "VNF instance %s: interrupted, as the service ends; another service goes "
                "on with the operation, or the next start",
                context.instance_id,
            )
        else:
            lasting(lambda: _fail(context, state, failure, undoable=undoable))
    return False


def _begin(
    service: ServiceContext, operation_id: str, cancel: CancelToken
) -> tuple[OperationContext, str, State] | None:
    """Return the context of an occurrence, its operation and state; None if it is not ours."""
    with service.database.writing() as session:
        operation = session.get_one(OperationRow, operation_id)
        if operation.owner != service.process_lock.id or operation.state not in RUNNING:
            return None
        again = operation.state != State.STARTING.value
        if not again and not operations.enter(
            service, session, operation_id, State.STARTING, State.PROCESSING
        ):
            return None  # the operation was cancelled
        waited = operation.due is not None
        if not operations.end_wait(service, session, operation):
            return None  # it was cancelled while it waited
        instance = session.get_one(Instance, operation.instance_id)
        state, request = State(operation.state), service.vault.open(operation.sealed)
        recorded = instances.vims_of(service, instance)
        kept = without_cancel(operation.kept)
        if kept != (operation.kept or {}):
            cancel.request(BY_REQUEST)
        # where nothing was written, the request's credentials may be wrong: go back without them
        is_back_from_nothing = state is State.ROLLING_BACK and v2_memory.has_nothing_to_undo(kept)
        is_modified = not (is_back_from_nothing and instance.instantiated)
        wanted = vims.modify_connections(recorded, request) if is_modified else recorded
        context = OperationContext(
            service=service,
            operation_id=operation_id,
            instance_id=operation.instance_id,
            api=operation.api,
            request=request,
            record=VnfRecord.of(instance, wanted),
            recorded_vims=recorded,
            cancel=cancel,
            steps=Steps(service.database, operation_id, remember=state is State.PROCESSING),
            kept=v2_memory.for_another_try(kept) if state is State.PROCESSING else kept,
            why=operation.why,
            again=again,
            waited=waited,
        )
        return context, operation.operation, state


def _wait_for_lease(context: OperationContext) -> None:
    """Wait until the lease in the VIM is free: a service that was killed leaves one."""
    options, ending = context.service.options, context.service.ending
    deadline = time.monotonic() + options.timeout + options.lease_seconds
    with connect_vim(context) as vim:
        while (holder := vim.held_by()) is not None:
            if ending.is_set():
                raise ServiceEndsError("the service ended while another run held the VNF's lease")
            if context.cancel or time.monotonic() > deadline:
                raise UpdateInProgressError(holder)
            ending.wait(_PAUSE)


def _end(
    context: OperationContext,
    was: State,
    state: State,
    after: VnfRecord,
    changed: Json | None = None,
) -> None:
    vim = after.vims if state is State.COMPLETED else context.recorded_vims
    with context.service.database.reading() as session:
        after = records.with_connection(after, vims.connection_id(session, vim))
    changes = records.affected_resources(context.record, after)
    values: dict[str, Any] = {"changes": changes, "changed": changed, "owner": None}
    if state is State.COMPLETED:  # what was rolled back keeps why
        values["error"] = None
    with context.service.database.writing() as session:
        # the instance first, as in a request: two orders could wait for each other
        instance = session.get_one(Instance, context.instance_id, with_for_update=True)
        if operations.enter(context.service, session, context.operation_id, was, state, **values):
            _record(context, instance, state, after)
            LOG.info("VNF instance %s: %s", context.instance_id, state.value)
        else:
            LOG.warning("VNF instance %s: the operation was taken over meanwhile: its end is not "
                        "recorded", context.instance_id)  # fmt: skip


def _record(context: OperationContext, instance: Instance, state: State, after: VnfRecord) -> None:
    instance.vnfd_id = after.vnfd_id
    instance.instantiated = after.instantiated
    instance.body = after.body
    if state is State.COMPLETED:  # an operation that was undone leaves the VIMs as they were
        instance.sealed = context.service.vault.seal(after.vims) if after.vims else None


def _is_interrupted(context: OperationContext, error: Exception) -> bool:
    """Return whether an operation stopped as the service ends; its journal lets it go on."""
    if isinstance(error, ServiceEndsError):
        return True
    return context.cancel.keep_journal and isinstance(error, (UpdateInterruptedError, ScriptError))


def _hand_over(context: OperationContext, state: State, due: datetime | None = None) -> None:
    with context.service.database.writing() as session:
        operation = lock_operation(session, context.operation_id)
        before = operation.kept or {}
        kept = {**before, **context.kept}
        if operation.due is not None and before.get(PROMOTED):  # promoted in the meantime
            kept |= {name: before[name] for name in (HELD, PROMOTED)}
            due = operation.due
        if kept.get(HELD):  # a person decides: a cancel that has come meanwhile is too late
            kept = without_cancel(kept)
        elif due is not None and kept.get(CANCELLED):  # while its start was under way
            due = now()
        values = {"kept": kept, "due": due}
        operations.hand_over(context.service, session, context.operation_id, state, **values)


def _fail(context: OperationContext, was: State, error: Exception, *, undoable: bool) -> None:
    requests, undoing = requests_of(context.api, context.operation_id), was is State.ROLLING_BACK
    problem = problem_of(error, requests, undoing=undoing, undoable=undoable)
    problem["detail"] = without_folder(problem["detail"], context.service.settings.folder)
    if isinstance(error, UpdateFailedError):
        report = reporter(context.steps)
        for result in error.outcome.results:  # most steps are undone by now
            report(result)
    trace = None if is_expected(error) else error
    LOG.error("VNF instance %s: %s", context.instance_id, problem["detail"], exc_info=trace)
    with context.service.database.writing() as session:
        before = without_cancel(lock_operation(session, context.operation_id).kept)
        values = {"error": problem, "kept": {**before, **context.kept}, "owner": None}
        operations.enter(
            context.service, session, context.operation_id, was, State.FAILED_TEMP, **values
        )
