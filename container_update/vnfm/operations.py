# SPDX-License-Identifier: Apache-2.0
"""Operation occurrences: their beginning, their states, and takeover from a service that died.

What an operation does is in :mod:`container_update.vnfm.lcm`. An occurrence is stored before its
request is answered, and only then given to a worker: what was acknowledged survives this process.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.engine import progress
from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.objects import Json
from container_update.model.outcome import StepState
from container_update.vnfm import states
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import (
    ProblemError,
    problem_of,
    requests_of,
    without_credentials,
)
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import RUNNING, Request, State
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import (
    Instance,
    OperationRow,
    StepRow,
    compare_and_set,
    lock_operation,
    package_title,
)


def begin(  # noqa: PLR0913
    service: ServiceContext,
    session: Session,
    instance: Instance,
    operation: str,
    request: Json,
    *,
    requested_by: str,
    hidden: Collection[str],
    why: str = "",
    batch_id: str | None = None,
) -> OperationRow:
    """Store a new operation; the caller commits, then queues it.

    :param hidden: attributes that are not shown, beside those that look like credentials.
    :raises ProblemError: 409: the instance has an operation that is not settled.
    """
    moment, instance_id = now(), instance.id
    old, new = (
        package_title(session, vnfd_id) for vnfd_id in (instance.vnfd_id, request.get("vnfdId"))
    )
    occurrence = OperationRow(
        id=str(uuid.uuid4()),
        api=instance.api,
        instance_id=instance_id,
        vnfd_id=request.get("vnfdId"),
        operation=operation,
        state=State.STARTING.value,
        started=moment,
        entered=moment,
        owner=service.process_lock.id,
        requested_by=requested_by,
        why=why,
        instance_name=instance.body.get("vnfInstanceName") or "",
        old_package=old,
        new_package=new,
        params=without_credentials(request, hidden),
        sealed=service.vault.seal(request),
        batch_id=batch_id,
    )
    session.add(occurrence)
    try:
        session.flush()
    except IntegrityError as error:
        raise ProblemError(
            409,
            f"VNF instance {instance_id}: another operation has not ended: wait until it ends; "
            "one that is FAILED_TEMP ends by a request to retry, rollback or fail",
        ) from error
    _publish(service, session, occurrence)
    return occurrence


def enter(
    service: ServiceContext,
    session: Session,
    operation_id: str,
    was: State,
    state: State,
    **values: Any,
) -> bool:
    """Move an occurrence of this service from one state to another, and set other columns with it.

    :returns: False if it is not in the state *was*, or another service took it over.
    """
    mine = OperationRow.owner == service.process_lock.id
    return _move(service, session, operation_id, was, state, mine, **values)


def apply_request(  # noqa: PLR0913
    service: ServiceContext,
    session: Session,
    operation: OperationRow,
    request: Request,
    *,
    left: tuple[Json, Json | None] | None = None,
    cancel_mode: str = "FORCEFUL",
) -> None:
    """Move an occurrence to the state that a client's request leads to; note a request to cancel
    for the worker that is at it.

    :param left: what to record of an operation that is given up: the instance's attributes and
        resourceChanges.
    :raises ProblemError: 409: the request is not allowed in its state.
    """
    operation = lock_operation(session, operation.id)  # its worker changes what it keeps, too
    was, kind, due = State(operation.state), operation.operation, operation.due
    state = states.allowed_to(operation).get(request)
    is_still = OperationRow.due.is_not_distinct_from(due)
    is_held = was is State.PROCESSING and states.is_held(operation.kept)
    if is_held:
        done = state is not None and _decide(service, session, operation, request, is_still)
    elif request is not Request.CANCEL:
        values: dict[str, Any] = {"owner": service.process_lock.id}
        if left is not None:
            session.get_one(Instance, operation.instance_id).body, values["changes"] = left
        done = state is not None and _move(service, session, operation.id, was, state, **values)
    elif was is State.PROCESSING and due is None:
        same = (OperationRow.id == operation.id, OperationRow.state == operation.state, is_still)
        noted = {**(operation.kept or {}), states.CANCELLED: cancel_mode}  # its worker sees it
        done = compare_and_set(session, OperationRow, *same, kept=noted)
    else:
        values = {"owner": None, "due": None, "error": _cancel(operation, state)}
        done = state is not None and _move(
            service, session, operation.id, was, state, is_still, **values
        )
        wait = (StepRow.operation_id == operation.id, StepRow.state == progress.RUNNING)
        stopped = {"state": StepState.STOPPED.value, "message": "cancelled"}
        if done:
            session.execute(update(StepRow).where(*wait).values(**stopped))
    if not done:
        now_in = session.get_one(OperationRow, operation.id, populate_existing=True)
        # another request may be the first
        refusal = _refusal(request, kind, State(now_in.state), is_held=is_held)
        raise ProblemError(409, f"operation {operation.id}: {refusal}")


def _decide(
    service: ServiceContext,
    session: Session,
    operation: OperationRow,
    request: Request,
    is_still: ColumnElement[bool],
) -> bool:
    """Let an occurrence go on that waits for a person, or undo it."""
    kept = dict(operation.kept or {})
    mine: dict[str, Any] = {"owner": service.process_lock.id}
    if request is Request.PROMOTE:
        same = (OperationRow.id == operation.id, OperationRow.state == operation.state, is_still)
        kept |= {states.PROMOTED: kept[states.HELD], states.HELD: ""}
        return compare_and_set(session, OperationRow, *same, kept=kept, due=now(), **mine)
    kept |= {states.HELD: ""}
    mine |= {"kept": kept, "due": None}
    mine["error"] = _end_reason("aborted while it waited for a person to promote or abort it")
    steps = ((State.PROCESSING, State.FAILED_TEMP), (State.FAILED_TEMP, State.ROLLING_BACK))
    return all(_move(service, session, operation.id, was, to, **mine) for was, to in steps)


def _cancel(operation: OperationRow, state: State | None) -> Json:
    detail = "cancelled while it waited, before anything was changed"
    if state is State.FAILED_TEMP:
        requests = requests_of(operation.api, operation.id)
        detail += f". Go on with it: {requests.retry}; or give it up: {requests.fail}"
    return _end_reason(detail)


def _end_reason(detail: str) -> Json:
    """Return why an operation ended that a client has stopped."""
    return ProblemError(409, detail, title="The operation was cancelled").as_dict()


def _refusal(request: Request, kind: str, state: State, *, is_held: bool) -> str:
    """Return why a request is refused, and which ones are possible instead."""
    if is_held:
        return (
            f"{request.value} is not possible while it waits for a person: send a request to "
            "promote or abort it"
        )
    if request is Request.CANCEL:
        return f"cancel is possible only in STARTING and PROCESSING, found {state.value}"
    if request in (Request.PROMOTE, Request.ABORT):
        return f"{request.value} is possible only where it waits for a person"
    if request is Request.ROLLBACK and state is State.FAILED_TEMP:
        return f"{kind} cannot be rolled back: send a request to retry or fail"
    return f"{request.value} is possible only in FAILED_TEMP, found {state.value}"


def _move(
    service: ServiceContext,
    session: Session,
    operation_id: str,
    was: State,
    state: State,
    *conditions: ColumnElement[bool],
    **values: Any,
) -> bool:
    is_in_state = (OperationRow.id == operation_id, OperationRow.state == was.value)
    changed = {"state": state.value, "entered": now(), **values}
    if not compare_and_set(session, OperationRow, *is_in_state, *conditions, **changed):
        return False
    operation = session.get_one(OperationRow, operation_id, populate_existing=True)
    _publish(service, session, operation)
    return True


def _publish(service: ServiceContext, session: Session, operation: OperationRow) -> None:
    """Notify subscribers of the state that an occurrence entered, and count it."""
    outbox.add_state_change(session, operation, service.settings.base_url)
    seconds = (operation.entered - operation.started).total_seconds()
    service.metrics.count_state(operation.operation, operation.state, seconds)


# --- occurrences that wait ----------------------------------------------------------------------
# One that waits for a time has no owner, and the time in its row: no worker waits with it.


def end_wait(service: ServiceContext, session: Session, operation: OperationRow) -> bool:
    """End the wait of our occurrence, if it waited; return False if it was cancelled meanwhile."""
    if operation.due is None:
        return True
    mine = (OperationRow.id == operation.id, OperationRow.owner == service.process_lock.id)
    waits = (OperationRow.state == operation.state, OperationRow.due.is_not(None))
    return compare_and_set(session, OperationRow, *mine, *waits, due=None)


def next_due(service: ServiceContext) -> datetime | None:
    """Return when the first of the occurrences goes on that wait; None if none does."""
    waits = (OperationRow.owner.is_(None), OperationRow.state.in_(RUNNING))
    with service.database.reading() as session:
        return session.scalar(select(func.min(OperationRow.due)).where(*waits))


# --- services that end --------------------------------------------------------------------------
# An occurrence that is at work and has no owner was handed over: the first service to own it
# goes on with it, another service or the next one that starts.


def hand_over(
    service: ServiceContext, session: Session, operation_id: str, was: State, **values: Any
) -> bool:
    """Give up an occurrence that this service has stopped to work at; set other columns with it.

    :returns: False if it is not in the state *was*, or another service took it over.
    """
    mine = (OperationRow.id == operation_id, OperationRow.owner == service.process_lock.id)
    in_state = OperationRow.state == was.value
    return compare_and_set(session, OperationRow, *mine, in_state, owner=None, **values)


def hand_over_all(service: ServiceContext, at_work: Collection[str]) -> None:
    """Give up the occurrences that this service has not begun, or not begun again."""
    left = (
        OperationRow.owner == service.process_lock.id,
        OperationRow.state.in_(RUNNING),
        OperationRow.id.not_in(at_work),
    )
    with service.database.writing() as session:
        session.execute(update(OperationRow).where(*left).values(owner=None))


def _take_handed_over(service: ServiceContext) -> list[str]:
    """Own what was handed over and waits no longer; return the occurrences, to be queued."""
    waits_no_longer = or_(OperationRow.due.is_(None), OperationRow.due <= now())
    is_free = (OperationRow.owner.is_(None), OperationRow.state.in_(RUNNING), waits_no_longer)
    with service.database.reading() as session:  # few looks find anything to write
        free = session.scalars(select(OperationRow.id).where(*is_free)).all()
    taken: list[str] = []
    for operation_id in free:
        if service.ending.is_set():  # it may be one of its own
            break
        with service.database.writing() as session:
            mine = {"owner": service.process_lock.id}
            if compare_and_set(
                session, OperationRow, OperationRow.id == operation_id, *is_free, **mine
            ):
                taken.append(operation_id)
    return taken


# --- services that died -------------------------------------------------------------------------


def take_over(service: ServiceContext) -> list[str]:
    """Settle the operations of services that died, and own those that were handed over.

    :returns: the occurrences that were handed over or had not begun: this service owns them now
        and has to queue them.
    """
    with service.database.reading() as session:
        owners = session.scalars(
            select(OperationRow.owner)
            .where(OperationRow.state.in_(RUNNING), OperationRow.owner != service.process_lock.id)
            .distinct()
        ).all()
    taken = _take_handed_over(service)
    for owner in owners:
        with service.process_lock.dead(str(owner)) as dead:
            if dead:
                taken += _settle(service, str(owner))
    return taken


def find_cancelled(service: ServiceContext, at_work: Collection[str]) -> list[str]:
    """Return those of the occurrences at work that a client asked to cancel."""
    with service.database.reading() as session:
        begun = (OperationRow.id.in_(at_work), OperationRow.state == State.PROCESSING.value)
        kept = session.execute(select(OperationRow.id, OperationRow.kept).where(*begun))
        return [operation_id for operation_id, left in kept if (left or {}).get(states.CANCELLED)]


def settle_forgotten(
    service: ServiceContext, at_work: Collection[str], before: datetime
) -> list[str]:
    """Settle the operations that this service owns and no thread carries out.

    :param before: only occurrences that entered their state before this time.
    :returns: the occurrences that had not begun, to be queued.
    """
    own = service.process_lock.id
    with service.database.reading() as session:  # few looks find anything to write
        forgotten = session.scalars(
            select(OperationRow.id).where(
                OperationRow.owner == own,
                OperationRow.state.in_(RUNNING),
                OperationRow.entered < before,
                OperationRow.id.not_in(at_work),
            )
        ).all()
    return _settle(service, own, OperationRow.id.in_(forgotten)) if forgotten else []


def _settle(service: ServiceContext, owner: str, *conditions: ColumnElement[bool]) -> list[str]:
    """Take over what *owner* had to begin or to go on with; set what it did to FAILED_TEMP."""
    taken: list[str] = []
    with service.database.writing() as session:
        left = session.scalars(
            select(OperationRow).where(
                OperationRow.owner == owner, OperationRow.state.in_(RUNNING), *conditions
            )
        )
        for operation in left.all():
            if operation.state == State.STARTING.value or operation.due is not None:
                operation.owner = service.process_lock.id
                taken.append(operation.id)
                continue
            operation.state, operation.entered = State.FAILED_TEMP.value, now()
            operation.error, operation.owner = _interrupt(operation), None
            operation.kept = states.without_cancel(operation.kept)
            _publish(service, session, operation)
    return taken


def _interrupt(operation: OperationRow) -> Json:
    error = ContainerUpdateError(
        "the service that carried out this operation ended before the operation did; the VIM has "
        "a journal of what was written",
        next_step=NextStep.RESUME_OR_ROLLBACK,
    )
    return problem_of(
        error,
        requests_of(operation.api, operation.id),
        undoable=states.is_undoable(operation.operation, operation.kept),
        title="The service was stopped",
    )
