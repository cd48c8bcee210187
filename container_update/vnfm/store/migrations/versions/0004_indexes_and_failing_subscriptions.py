# SPDX-License-Identifier: Apache-2.0
"""Indexes for what is asked for often"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_WAITING = sa.text("delivered IS NULL AND given_up IS NULL")


def upgrade() -> None:
    """Add indexes."""
    op.create_index(
        "waiting_notifications",
        "outbox",
        ["subscription_id", "id"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
    op.create_index("operations_in_order", "operations", ["api", "started", "id"])
