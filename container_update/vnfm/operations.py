"""Operation occurrences: their beginning, their states, and takeover from a service that died.

What an operation does is in :mod:`container_update.vnfm.lcm`. An occurrence is stored before its
request is answered, and only then given to a worker: what was acknowledged survives this process.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.objects import Json
from container_update.vnfm.http import redaction
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import ProblemError, problem_of, requests_of
from container_update.vnfm.queries import compare_and_set
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import (
    RUNNING,
    TRANSITIONS,
    UNSETTLED,
    Request,
    State,
    allowed,
    is_undoable,
)
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, Operation

_AT_ONCE = 500
"""Maximum number of operations that one transaction deletes."""


def begin(  # noqa: PLR0913
    service: ServiceContext,
    session: Session,
    instance: Instance,
    operation: str,
    request: Json,
    *,
    hidden: Collection[str],
) -> Operation:
    """Store a new operation; the caller commits, then queues it.

    :param hidden: attributes that are not shown, beside those that look like credentials.
    :raises ProblemError: 409: the instance has an operation that is not settled.
    """
    moment, instance_id = now(), instance.id
    occurrence = Operation(
        id=str(uuid.uuid4()),
        api=instance.api,
        instance_id=instance_id,
        vnfd_id=request.get("vnfdId"),
        operation=operation,
        state=State.STARTING.value,
        started=moment,
        entered=moment,
        owner=service.process_lock.id,
        params=redaction.without(request, hidden),
        sealed=service.vault.seal(request),
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
    assert state in TRANSITIONS[was], f"{was} -> {state}"
    mine = Operation.owner == service.process_lock.id
    return _move(service, session, operation_id, was, state, mine, **values)


def apply_request(
    service: ServiceContext, session: Session, operation: Operation, request: Request
) -> None:
    """Move an occurrence to the state that a client's request leads to.

    :raises ProblemError: 409: the request is not allowed in its state.
    """
    was, kind = State(operation.state), operation.operation
    state = allowed(was, undoable=is_undoable(kind, operation.kept)).get(request)
    owner = None if request is Request.CANCEL else service.process_lock.id
    if state is None or not _move(service, session, operation.id, was, state, owner=owner):
        now_in = session.get_one(Operation, operation.id, populate_existing=True)
        refusal = _refusal(request, kind, State(now_in.state))  # another request may be the first
        raise ProblemError(409, f"operation {operation.id}: {refusal}")


def _refusal(request: Request, kind: str, found: State) -> str:
    """Return why a request is refused, and what is possible instead."""
    if request is Request.CANCEL:
        return (
            f"cancel is possible only before it has begun (STARTING), found {found.value}: wait "
            "until it ends; one that failed can be rolled back"
        )
    if request is Request.ROLLBACK and found is State.FAILED_TEMP:
        return f"{kind} cannot be rolled back: send a request to retry or fail"
    return f"{request.value} is possible only in FAILED_TEMP, found {found.value}"


def _move(
    service: ServiceContext,
    session: Session,
    operation_id: str,
    was: State,
    state: State,
    *conditions: ColumnElement[bool],
    **values: Any,
) -> bool:
    is_in_state = (Operation.id == operation_id, Operation.state == was.value)
    changed = {"state": state.value, "entered": now(), **values}
    if not compare_and_set(session, Operation, *is_in_state, *conditions, **changed):
        return False
    operation = session.get_one(Operation, operation_id, populate_existing=True)
    _publish(service, session, operation)
    return True


def _publish(service: ServiceContext, session: Session, operation: Operation) -> None:
    """Notify subscribers of the state that an occurrence entered, and count it."""
    outbox.add_state_change(session, operation, service.settings.base_url)
    seconds = (operation.entered - operation.started).total_seconds()
    service.metrics.entered(operation.operation, operation.state, seconds)


def forget(service: ServiceContext) -> None:
    """Delete the operations that ended longer ago than they are kept, with their steps.

    The last operation of an instance stays as long as the instance, and so does every one that is
    not settled: a retry or a rollback needs it.
    """
    seconds = service.settings.operation_seconds
    if not seconds:
        return
    later = aliased(Operation)
    is_last = ~exists().where(
        later.instance_id == Operation.instance_id, later.started > Operation.started
    )
    old = (
        select(Operation.id)
        .where(
            Operation.state.not_in(UNSETTLED),
            Operation.entered < now() - timedelta(seconds=seconds),
            ~and_(is_last, exists().where(Instance.id == Operation.instance_id)),
        )
        .limit(_AT_ONCE)
    )
    deleted = _AT_ONCE
    while deleted == _AT_ONCE:  # one short transaction after the other
        with service.database.writing() as session:
            ids = session.scalars(old).all()
            session.execute(delete(Operation).where(Operation.id.in_(ids)))
        deleted = len(ids)


# --- services that died -------------------------------------------------------------------------


def take_over(service: ServiceContext) -> list[str]:
    """Settle the operations of services that died.

    :returns: the occurrences that had not begun: this service owns them now and has to queue them.
    """
    with service.database.reading() as session:
        owners = session.scalars(
            select(Operation.owner)
            .where(Operation.state.in_(RUNNING), Operation.owner != service.process_lock.id)
            .distinct()
        ).all()
    taken: list[str] = []
    for owner in owners:
        with service.process_lock.dead(str(owner)) as dead:
            if dead:
                taken += _settle(service, str(owner))
    return taken


def settle_forgotten(
    service: ServiceContext, at_work: Collection[str], before: datetime
) -> list[str]:
    """Settle the operations that this service owns and no thread carries out.

    :param at_work: the occurrences that threads carry out.
    :param before: only occurrences that entered their state before this time.
    :returns: the occurrences that had not begun, to be queued.
    """
    own = service.process_lock.id
    with service.database.reading() as session:  # few looks find anything to write
        forgotten = session.scalars(
            select(Operation.id).where(
                Operation.owner == own,
                Operation.state.in_(RUNNING),
                Operation.entered < before,
                Operation.id.not_in(at_work),
            )
        ).all()
    return _settle(service, own, Operation.id.in_(forgotten)) if forgotten else []


def _settle(service: ServiceContext, owner: str, *conditions: ColumnElement[bool]) -> list[str]:
    """Take over what *owner* had not begun; set what was interrupted to FAILED_TEMP."""
    taken: list[str] = []
    with service.database.writing() as session:
        left = session.scalars(
            select(Operation).where(
                Operation.owner == owner, Operation.state.in_(RUNNING), *conditions
            )
        )
        for operation in left.all():
            if operation.state == State.STARTING.value:
                operation.owner = service.process_lock.id
                taken.append(operation.id)
                continue
            operation.state, operation.entered = State.FAILED_TEMP.value, now()
            operation.error, operation.owner = _interrupted(operation), None
            _publish(service, session, operation)
    return taken


def _interrupted(operation: Operation) -> Json:
    error = ContainerUpdateError(
        "the service that carried out this operation ended before the operation did; the VIM has "
        "a journal of what was written",
        next_step=NextStep.RESUME_OR_ROLLBACK,
    )
    return problem_of(
        error,
        requests_of(operation.api, operation.id),
        undoable=is_undoable(operation.operation, operation.kept),
        title="The service was stopped",
    )
