# SPDX-License-Identifier: Apache-2.0
"""The verbosity of subscriptions, and what operations change in their instances"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column to each of two tables: what was subscribed before is FULL."""
    op.add_column("operations", sa.Column("changed", sa.JSON(), nullable=True))
    op.add_column(
        "subscriptions",
        sa.Column("verbosity", sa.String(length=5), nullable=False, server_default="FULL"),
    )
