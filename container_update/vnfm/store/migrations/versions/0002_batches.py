# SPDX-License-Identifier: Apache-2.0
"""Batches: the same request to many instances"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table, and a column for the batch of an operation."""
    op.create_table(
        "batches",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("entered", sa.DateTime(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("new_package", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
    )
    for column in ("state", "started"):
        op.create_index(f"ix_batches_{column}", "batches", [column])
    op.add_column("operations", sa.Column("batch_id", sa.String(36)))
    op.create_index("ix_operations_batch_id", "operations", ["batch_id"])
