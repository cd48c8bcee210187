# SPDX-License-Identifier: Apache-2.0
"""The first tables"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_UNSETTLED = sa.text("state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')")


def upgrade() -> None:
    """Create the tables; those that others refer to first."""
    op.create_table(
        "operations",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("instance_id", sa.String(36), nullable=False),
        sa.Column("vnfd_id", sa.String(255)),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("entered", sa.DateTime(), nullable=False),
        sa.Column("owner", sa.String(36)),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        *(sa.Column(name, sa.JSON()) for name in ("kept", "changes", "error")),
    )
    op.create_index(
        "one_unsettled_operation",
        "operations",
        ["instance_id"],
        unique=True,
        sqlite_where=_UNSETTLED,
        postgresql_where=_UNSETTLED,
    )
    op.create_table(
        "packages",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("onboarding_state", sa.String(16), nullable=False),
        sa.Column("operational_state", sa.String(16), nullable=False),
        sa.Column("vnfd_id", sa.String(255), unique=True),
        sa.Column("owner", sa.String(36)),
        sa.Column("user_data", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("callback_uri", sa.Text(), nullable=False),
        sa.Column("filter", sa.JSON()),
        sa.Column("sealed", sa.Text()),
    )
    op.create_table(
        "vims",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
    )
    op.create_table(
        "instances",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("vnfd_id", sa.String(255), sa.ForeignKey("packages.vnfd_id"), nullable=False),
        sa.Column("instantiated", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text()),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "subscription_id",
            sa.String(36),
            sa.ForeignKey("subscriptions.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt", sa.DateTime(), nullable=False),
        sa.Column("delivered", sa.DateTime()),
        sa.Column("given_up", sa.DateTime()),
    )
    op.create_table(
        "steps",
        sa.Column(
            "operation_id",
            sa.String(36),
            sa.ForeignKey("operations.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
    )
    for table, columns in {
        "operations": ("instance_id", "state"),
        "instances": ("vnfd_id",),
        "outbox": ("next_attempt", "subscription_id"),
    }.items():
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])
