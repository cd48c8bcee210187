"""Operation occurrences: how one begins, goes from state to state, and is taken over from a service
that died. What one does is in :mod:`container_update.vnfm.lcm`.

An occurrence is written before its request is answered, and only then given to a worker: what was
acknowledged is in the database, whatever becomes of this process.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import CursorResult, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.objects import Json
from container_update.vnfm.http import redaction
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import ProblemError, problem_of, requests_of
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import RUNNING, TRANSITIONS, UNSETTLED, Request, State, after
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, Operation


def begin(  # noqa: PLR0913
    service: ServiceContext,
    session: Session,
    instance: Instance,
    operation: str,
    *,
    request: Json,
    vnfd_id: str | None = None,
    hidden: Collection[str] = (),
) -> Operation:
    """Write down that an operation is to be done; the caller commits, then queues it.

    :param vnfd_id: the package that it leads to, where it leads to another.
    :param hidden: attributes that are not to be shown, beside those that look like it.
    :raises ProblemError: 409: the instance has an operation that is not settled.
    """
    moment, instance_id = now(), instance.id
    begun = Operation(
        id=str(uuid.uuid4()),
        api=instance.api,
        instance_id=instance.id,
        vnfd_id=vnfd_id,
        operation=operation,
        state=State.STARTING.value,
        started=moment,
        entered=moment,
        owner=service.process_lock.id,
        params=redaction.without(request, hidden),
        sealed=service.vault.seal(request),
    )
    session.add(begun)
    try:
        session.flush()
    except IntegrityError as error:
        raise ProblemError(
            409,
            f"VNF instance {instance_id}: another operation has not ended: wait until it ends; "
            "one that is FAILED_TEMP ends by a request to retry, rollback or fail",
        ) from error
    _tell(service, session, begun)
    return begun


def enter(
    service: ServiceContext,
    session: Session,
    operation_id: str,
    was: State,
    state: State,
    **values: Any,
) -> bool:
    """Bring an occurrence of this service's own from a state into another, with what else changes.

    :returns: False where it is not in that state, or not this service's any more: another one took
        it over.
    """
    assert state in TRANSITIONS[was], f"{was} -> {state}"
    mine = (
        Operation.id == operation_id,
        Operation.state == was.value,
        Operation.owner == service.process_lock.id,
    )
    if not _change(session, mine, state, values):
        return False
    operation = session.get_one(Operation, operation_id, populate_existing=True)
    _tell(service, session, operation)
    return True


def ask(service: ServiceContext, session: Session, operation: Operation, request: Request) -> None:
    """Do what a client asks of an occurrence: the state it leads to is entered.

    :raises ProblemError: 409: it is not allowed in its state.
    """
    was = State(operation.state)
    state = after(was, request)
    unchanged = (Operation.id == operation.id, Operation.state == was.value)
    values = {"owner": service.process_lock.id}
    if state is None or not _change(session, unchanged, state, values):
        raise ProblemError(
            409,
            f"operation {operation.id}: {request.value} is possible only in FAILED_TEMP, found "
            f"{operation.state}",
        )
    session.refresh(operation)
    _tell(service, session, operation)


def _tell(service: ServiceContext, session: Session, operation: Operation) -> None:
    """Whoever wants to know: subscribers, and the metrics."""
    outbox.tell_state(session, operation, service.settings.base_url)
    seconds = (operation.entered - operation.started).total_seconds()
    service.metrics.entered(operation.operation, operation.state, seconds)


def _change(
    session: Session, conditions: Sequence[Any], state: State, values: Mapping[str, Any]
) -> bool:
    """Compare and set: False where somebody else was first."""
    result = session.execute(
        update(Operation)
        .where(*conditions)
        .values(state=state.value, entered=now(), **values)
        .execution_options(synchronize_session=False)
    )
    assert isinstance(result, CursorResult)
    return bool(result.rowcount == 1)


def unsettled(session: Session, instance_id: str) -> Operation | None:
    """Return the instance's operation that is not settled."""
    wanted = [state.value for state in UNSETTLED]
    found: Operation | None = session.scalar(
        select(Operation).where(Operation.instance_id == instance_id, Operation.state.in_(wanted))
    )
    return found


# --- services that died -------------------------------------------------------------------------


def take_over(service: ServiceContext) -> list[str]:
    """Settle what services left behind that are dead.

    :returns: the occurrences that nobody had begun: they are this service's now, to be queued.
    """
    running = [state.value for state in RUNNING]
    with service.database.reading() as session:
        owners = session.scalars(
            select(Operation.owner)
            .where(Operation.state.in_(running), Operation.owner != service.process_lock.id)
            .distinct()
        ).all()
    taken: list[str] = []
    for owner in owners:
        with service.process_lock.dead(str(owner)) as dead:
            if dead:
                taken += _settle(service, str(owner))
    return taken


def _settle(service: ServiceContext, owner: str, *conditions: Any) -> list[str]:
    """Take over what no service had begun; set what was interrupted to FAILED_TEMP."""
    running = [state.value for state in RUNNING]
    begin: list[str] = []
    with service.database.writing() as session:
        left = session.scalars(
            select(Operation).where(
                Operation.owner == owner, Operation.state.in_(running), *conditions
            )
        )
        for operation in left.all():
            if operation.state == State.STARTING.value:
                operation.owner = service.process_lock.id
                begin.append(operation.id)
                continue
            operation.state, operation.entered = State.FAILED_TEMP.value, now()
            operation.error, operation.owner = _died(operation), None
            _tell(service, session, operation)
    return begin


def _died(operation: Operation) -> Json:
    """Return the error of an operation whose service ended before it."""
    error = ContainerUpdateError(
        "the service that carried out this operation ended before the operation did; the VIM has "
        "a journal of what was written",
        next_step=NextStep.RESUME_OR_ROLLBACK,
    )
    return problem_of(
        error,
        requests_of(operation.api, operation.id),
        undoable=operation.operation != "TERMINATE",
        title="The service was stopped",
    )


def forgotten(service: ServiceContext, at_work: Collection[str], before: datetime) -> list[str]:
    """Settle what this service itself should work at and does not, for whatever reason.

    :param at_work: the occurrences that it does work at.
    :param before: only what has been in its state since then.
    :returns: those that nobody had begun, to be queued.
    """
    running = [state.value for state in RUNNING]
    with service.database.reading() as session:
        own = session.scalars(
            select(Operation.id).where(
                Operation.owner == service.process_lock.id,
                Operation.state.in_(running),
                Operation.entered < before,
                Operation.id.not_in(at_work),
            )
        ).all()
    return _settle(service, service.process_lock.id, Operation.id.in_(own)) if own else []
