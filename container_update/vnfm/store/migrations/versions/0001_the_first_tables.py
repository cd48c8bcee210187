# SPDX-License-Identifier: Apache-2.0
"""The first tables"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables; those that others refer to first."""
    _operations()
    _packages()
    _subscriptions()
    _vims()
    _instances()
    _outbox()
    _steps()


def _operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("api", sa.String(length=2), nullable=False),
        sa.Column("instance_id", sa.String(length=36), nullable=False),
        sa.Column("vnfd_id", sa.String(length=255), nullable=True),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("entered", sa.DateTime(), nullable=False),
        sa.Column("owner", sa.String(length=36), nullable=True),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("kept", sa.JSON(), nullable=True),
        sa.Column("changes", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_operations_instance_id"), "operations", ["instance_id"], unique=False)
    op.create_index(op.f("ix_operations_state"), "operations", ["state"], unique=False)
    op.create_index(
        "one_unsettled_operation",
        "operations",
        ["instance_id"],
        unique=True,
        sqlite_where=sa.text("state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')"),
        postgresql_where=sa.text(
            "state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')"
        ),
    )


def _packages() -> None:
    op.create_table(
        "packages",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("onboarding_state", sa.String(length=16), nullable=False),
        sa.Column("operational_state", sa.String(length=16), nullable=False),
        sa.Column("vnfd_id", sa.String(length=255), nullable=True),
        sa.Column("owner", sa.String(length=36), nullable=True),
        sa.Column("user_data", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("vnfd_id"),
    )


def _subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(length=2), nullable=False),
        sa.Column("callback_uri", sa.Text(), nullable=False),
        sa.Column("filter", sa.JSON(), nullable=True),
        sa.Column("sealed", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )


def _vims() -> None:
    op.create_table(
        "vims",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )


def _instances() -> None:
    op.create_table(
        "instances",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(length=2), nullable=False),
        sa.Column("vnfd_id", sa.String(length=255), nullable=False),
        sa.Column("instantiated", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["vnfd_id"], ["packages.vnfd_id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_instances_vnfd_id"), "instances", ["vnfd_id"], unique=False)


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("subscription_id", sa.String(length=36), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt", sa.DateTime(), nullable=False),
        sa.Column("delivered", sa.DateTime(), nullable=True),
        sa.Column("given_up", sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(["subscription_id"], ["subscriptions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_outbox_next_attempt"), "outbox", ["next_attempt"], unique=False)
    op.create_index(op.f("ix_outbox_subscription_id"), "outbox", ["subscription_id"], unique=False)


def _steps() -> None:
    op.create_table(
        "steps",
        sa.Column("operation_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["operation_id"], ["operations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("operation_id", "number"),
    )
