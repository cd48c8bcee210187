# SPDX-License-Identifier: Apache-2.0
"""What the service keeps for a time only: operations that ended, notifications that were sent."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import CursorResult, and_, delete, exists, or_, select, update
from sqlalchemy.orm import aliased

from container_update.vnfm.states import UNSETTLED, BatchState
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Batch, Instance, Notification, OperationRow

NOTIFICATIONS_KEPT = timedelta(days=1)
"""How long a notification is kept after it was delivered or given up."""

_AT_ONCE = 500
"""Maximum number of operations that one transaction deletes."""


def forget_operations(database: Database, seconds: float) -> int:
    """Delete the operations that ended longer ago than they are kept, with their steps.

    The last operation of an instance stays as long as the instance, and so does every one that is
    not settled: a retry or a rollback needs it. Those of a batch stay as long as the batch.

    :param seconds: how long they are kept; 0: for ever.
    :returns: how many were deleted.
    """
    if not seconds:
        return 0
    end = now() - timedelta(seconds=seconds)
    _forget_batches(database, end)
    later = aliased(OperationRow)
    is_last = ~exists().where(
        later.instance_id == OperationRow.instance_id, later.started > OperationRow.started
    )
    old = (
        select(OperationRow.id)
        .where(
            OperationRow.state.not_in(UNSETTLED),
            OperationRow.entered < end,
            OperationRow.batch_id.is_(None),
            ~and_(is_last, exists().where(Instance.id == OperationRow.instance_id)),
        )
        .limit(_AT_ONCE)
    )
    total, deleted = 0, _AT_ONCE
    while deleted == _AT_ONCE:  # one short transaction after the other
        with database.writing() as session:
            ids = session.scalars(old).all()
            session.execute(delete(OperationRow).where(OperationRow.id.in_(ids)))
        deleted = len(ids)
        total += deleted
    return total


def _forget_batches(database: Database, end: datetime) -> None:
    """Delete the batches that ended before a time; their operations are like others then."""
    has_ended = Batch.state != BatchState.PROCESSING.value
    with database.writing() as session:
        ids = session.scalars(select(Batch.id).where(has_ended, Batch.entered < end)).all()
        of_batches = OperationRow.batch_id.in_(ids)
        session.execute(update(OperationRow).where(of_batches).values(batch_id=None))
        session.execute(delete(Batch).where(Batch.id.in_(ids)))


def forget_notifications(database: Database) -> int:
    """Delete the old notifications that were delivered or given up; return how many."""
    end = now() - NOTIFICATIONS_KEPT
    is_old = or_(Notification.delivered < end, Notification.given_up < end)
    with database.writing() as session:
        result = session.execute(delete(Notification).where(is_old))
    assert isinstance(result, CursorResult)
    return int(result.rowcount)
