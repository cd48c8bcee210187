# SPDX-License-Identifier: Apache-2.0
"""Indexes for what is asked for often, and which subscriptions fail"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_WAITING = sa.text("delivered IS NULL AND given_up IS NULL")


def upgrade() -> None:
    """Add a column to the subscriptions, and indexes."""
    op.add_column(
        "subscriptions",
        sa.Column("failing", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_index(
        "waiting_notifications",
        "outbox",
        ["subscription_id", "id"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
    op.create_index("operations_in_order", "operations", ["api", "started", "id"])
