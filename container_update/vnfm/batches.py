# SPDX-License-Identifier: Apache-2.0
"""Batches: the same request to many VNF instances, in waves, with a bound on failures.

What a batch did and has to do is in its row and in those of its operations, nothing in memory: any
service goes on with it. That service holds its row, so no instance is begun twice. An instance is a
*member*: its id, its name then, its operation or why there is none, and its wave, which is 0 as
long as it has not begun.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import operations
from container_update.vnfm.api.request_checks import check_request
from container_update.vnfm.problems import (
    ProblemError,
    is_expected,
    without_credentials,
    without_folder,
)
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import RUNNING, BatchState, Request, State
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Batch, Instance, OperationRow, by_id, package_title

LOG = logging.getLogger(__name__)

WAITING, REFUSED = "WAITING", "REFUSED"
"""The states of members without an operation; others are in the state of their operation."""
_NOT_FAILED = RUNNING | {WAITING, State.COMPLETED}


def create(
    service: ServiceContext, session: Session, api: str, wanted: Json, requested_by: str
) -> Batch:
    """Store a new batch; the caller commits, then queues it.

    :param wanted: the operation, the request, vnfInstanceIds, waveSize, maxFailures and why.
    :raises ProblemError: 422: an instance is named twice, or does not exist.
    """
    ids: list[str] = wanted["vnfInstanceIds"]
    instances = session.scalars(select(Instance).where(Instance.api == api, Instance.id.in_(ids)))
    known = {row.id: row.body.get("vnfInstanceName") or row.id for row in instances}
    for number, instance_id in enumerate(ids):
        if instance_id not in known or instance_id in ids[:number]:
            expected = "each instance once" if instance_id in known else f"instances of {api}"
            raise ProblemError(422, f"vnfInstanceIds: expected {expected}, found {instance_id!r}")
    moment, request = now(), wanted["request"]
    batch = Batch(
        id=str(uuid.uuid4()),
        api=api,
        operation=wanted["operation"],
        state=BatchState.PROCESSING.value,
        started=moment,
        entered=moment,
        requested_by=requested_by,
        new_package=package_title(session, request.get("vnfdId")),
        body={
            "request": without_credentials(request),
            "waveSize": wanted["waveSize"],
            "maxFailures": wanted["maxFailures"],
            "why": wanted.get("why", ""),
            "wave": 1,
            "members": [
                {"vnfInstanceId": instance_id, "vnfInstanceName": known[instance_id], "wave": 0}
                for instance_id in ids
            ],
        },
        sealed=service.vault.seal(request),
    )
    session.add(batch)
    return batch


def resume(session: Session, batch: Batch) -> None:
    """Let a batch go on that stopped, and try again what failed.

    :raises ProblemError: 409: it is under way, or everything is done.
    """
    members = members_of(session, batch)
    if batch.state == BatchState.PROCESSING.value or all(
        member["state"] == State.COMPLETED for member in members
    ):
        raise ProblemError(
            409,
            f"batch {batch.id}: is {batch.state}: only one that stopped or has failed members can "
            "be resumed",
        )
    kept = [
        before if member["state"] in _NOT_FAILED else {**before, "wave": 0, "problem": ""}
        for before, member in zip(batch.body["members"], members, strict=True)
    ]
    batch.body = {**batch.body, "wave": batch.body["wave"] + 1, "members": kept}
    _enter(batch, BatchState.PROCESSING)


def cancel(batch: Batch) -> None:
    """Begin nothing more of a batch, what has begun ends; ProblemError 409: it is not under way."""
    if batch.state != BatchState.PROCESSING.value:
        raise ProblemError(409, f"batch {batch.id}: is {batch.state}: only one that is PROCESSING "
                                "can be cancelled")  # fmt: skip
    _enter(batch, BatchState.CANCELLED)


def _enter(batch: Batch, state: BatchState) -> None:
    batch.state, batch.entered = state.value, now()
    LOG.info("batch %s: %s", batch.id, state.value)


def members_of(session: Session, batch: Batch) -> list[Json]:
    """Return the members in their order, each with its state and its problem."""
    rows = session.scalars(select(OperationRow).where(OperationRow.batch_id == batch.id))
    begun = {row.id: row for row in rows}
    return [_member(kept, begun.get(kept.get("operationId", ""))) for kept in batch.body["members"]]


def _member(kept: Json, operation: OperationRow | None) -> Json:
    problem = kept.get("problem", "")
    if not kept["wave"]:
        state = WAITING
    elif problem or operation is None:
        state = REFUSED
    else:
        state, problem = operation.state, (operation.error or {}).get("detail", "")
    return {
        "vnfInstanceId": kept["vnfInstanceId"],
        "vnfInstanceName": kept["vnfInstanceName"],
        "vnfLcmOpOccId": kept.get("operationId"),
        "wave": kept["wave"],
        "state": state,
        "problem": problem,
    }


# --- going on ------------------------------------------------------------------------------------


def under_way(service: ServiceContext) -> Sequence[str]:
    """Return the batches of which something may have to begin."""
    is_under_way = Batch.state == BatchState.PROCESSING.value
    with service.database.reading() as session:
        return session.scalars(select(Batch.id).where(is_under_way).order_by(Batch.started)).all()


def advance(service: ServiceContext, batch_id: str) -> Iterator[str]:
    """Begin the next operations of a batch, or end it if there are none; yield them, to be queued.

    One member at a time: the database is not held for a whole wave.
    """
    while not service.ending.is_set():
        begun = service.database.lasting(lambda: _begin_next(service, batch_id))
        if begun is None:
            return
        if begun:
            yield begun


def _begin_next(service: ServiceContext, batch_id: str) -> str | None:
    """Begin the next member; return its operation, '' if it was refused, None if none is next."""
    with service.database.writing() as session:
        batch = session.get(Batch, batch_id, with_for_update=True)
        if batch is None or batch.state != BatchState.PROCESSING.value:
            return None
        number = _next(session, batch)
        if number is None:
            return None
        body, members = batch.body, list(batch.body["members"])
        wave = body["wave"] + (_in_wave(batch) == body["waveSize"])
        begun, problem = _try(service, session, batch, members[number])
        members[number] = {**members[number], "wave": wave, "problem": problem}
        if begun:
            members[number]["operationId"] = begun
        batch.body = {**body, "wave": wave, "members": members}
        return begun


def _next(session: Session, batch: Batch) -> int | None:
    """Return the number of the member that begins now; end the batch if it has ended."""
    states = [member["state"] for member in members_of(session, batch)]
    if sum(state not in _NOT_FAILED for state in states) > batch.body["maxFailures"]:
        _enter(batch, BatchState.FAILED)
        return None
    is_complete = _in_wave(batch) in (0, batch.body["waveSize"])  # the next one begins a wave
    if RUNNING.intersection(states) and (is_complete or WAITING not in states):
        return None
    if WAITING not in states:
        _enter(batch, BatchState.COMPLETED)
        return None
    return states.index(WAITING)


def _in_wave(batch: Batch) -> int:
    """Return how many members of the present wave have begun."""
    return sum(member["wave"] == batch.body["wave"] for member in batch.body["members"])


def _try(service: ServiceContext, session: Session, batch: Batch, member: Json) -> tuple[str, str]:
    """Begin a member; return its operation, or '' and why it was refused."""
    try:
        with session.begin_nested():
            return _begin(service, session, batch, member), ""
    except SQLAlchemyError:
        raise
    except Exception as error:
        is_known = is_expected(error)
        LOG.error("batch %s: VNF instance %s is refused: %s", batch.id, member["vnfInstanceId"],
                  type(error).__name__, exc_info=None if is_known else error)  # fmt: skip
        unknown = f"{type(error).__name__} was not expected: the service's log says where"
        text = str(error) if is_known else unknown
        return "", without_folder(text, service.settings.folder)


def _begin(service: ServiceContext, session: Session, batch: Batch, member: Json) -> str:
    before = session.get(OperationRow, member.get("operationId", ""))
    if before is not None and before.state == State.FAILED_TEMP.value:
        operations.apply_request(service, session, before, Request.RETRY)
        return before.id
    if before is not None and before.state in _NOT_FAILED:  # another service was faster
        return before.id
    instance = by_id(session, Instance, member["vnfInstanceId"], batch.api, lock=True)
    request = service.vault.open(batch.sealed)
    request, hidden = check_request(service, session, instance, batch.operation, request)
    begun = operations.begin(
        service,
        session,
        instance,
        batch.operation,
        request,
        requested_by=batch.requested_by,
        hidden=hidden,
        why=batch.body.get("why", ""),
        batch_id=batch.id,
    )
    return begun.id
