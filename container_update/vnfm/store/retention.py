# SPDX-License-Identifier: Apache-2.0
"""What the service keeps for a time only: operations that ended, notifications that were sent."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import CursorResult, and_, delete, exists, or_, select
from sqlalchemy.orm import aliased

from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Instance, Notification, Operation

NOTIFICATIONS_KEPT = timedelta(days=1)
"""How long a notification is kept after it was delivered or given up."""

_AT_ONCE = 500
"""Maximum number of operations that one transaction deletes."""


def forget_operations(database: Database, seconds: float) -> int:
    """Delete the operations that ended longer ago than they are kept, with their steps.

    The last operation of an instance stays as long as the instance, and so does every one that is
    not settled: a retry or a rollback needs it.

    :param seconds: how long they are kept; 0: for ever.
    :returns: how many were deleted.
    """
    if not seconds:
        return 0
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
    total, deleted = 0, _AT_ONCE
    while deleted == _AT_ONCE:  # one short transaction after the other
        with database.writing() as session:
            ids = session.scalars(old).all()
            session.execute(delete(Operation).where(Operation.id.in_(ids)))
        deleted = len(ids)
        total += deleted
    return total


def forget_notifications(database: Database) -> int:
    """Delete the old notifications that were delivered or given up; return how many."""
    end = now() - NOTIFICATIONS_KEPT
    is_old = or_(Notification.delivered < end, Notification.given_up < end)
    with database.writing() as session:
        result = session.execute(delete(Notification).where(is_old))
    assert isinstance(result, CursorResult)
    return int(result.rowcount)
