# SPDX-License-Identifier: Apache-2.0
"""The first tables"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_UNSETTLED = sa.text("state IN ('FAILED_TEMP', 'PROCESSING', 'ROLLING_BACK', 'STARTING')")
_WAITING = sa.text("delivered IS NULL AND given_up IS NULL")


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
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("instance_id", sa.String(36), nullable=False, index=True),
        sa.Column("vnfd_id", sa.String(255)),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("entered", sa.DateTime(), nullable=False),
        sa.Column("owner", sa.String(36)),
        sa.Column("due", sa.DateTime()),
        sa.Column("requested_by", sa.Text(), nullable=False, server_default=""),
        sa.Column("instance_name", sa.Text(), nullable=False, server_default=""),
        sa.Column("old_package", sa.Text(), nullable=False, server_default=""),
        sa.Column("new_package", sa.Text(), nullable=False, server_default=""),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("kept", sa.JSON()),
        sa.Column("changes", sa.JSON()),
        sa.Column("changed", sa.JSON()),
        sa.Column("error", sa.JSON()),
    )
    op.create_index(
        "one_unsettled_operation",
        "operations",
        ["instance_id"],
        unique=True,
        sqlite_where=_UNSETTLED,
        postgresql_where=_UNSETTLED,
    )
    op.create_index("operations_in_order", "operations", ["api", "started", "id"])
    op.create_index("operations_by_entry", "operations", ["entered"])
    op.create_index("operations_by_start", "operations", ["started"])


def _packages() -> None:
    op.create_table(
        "packages",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("onboarding_state", sa.String(16), nullable=False),
        sa.Column("operational_state", sa.String(16), nullable=False),
        sa.Column("vnfd_id", sa.String(255), unique=True),
        sa.Column("owner", sa.String(36)),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("user_data", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
    )


def _subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("callback_uri", sa.Text(), nullable=False),
        sa.Column("filter", sa.JSON()),
        sa.Column("verbosity", sa.String(5), nullable=False),
        sa.Column("sealed", sa.Text()),
    )


def _vims() -> None:
    op.create_table(
        "vims",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
    )


def _instances() -> None:
    vnfd = sa.ForeignKey("packages.vnfd_id")
    op.create_table(
        "instances",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("api", sa.String(2), nullable=False),
        sa.Column("vnfd_id", sa.String(255), vnfd, nullable=False, index=True),
        sa.Column("instantiated", sa.Boolean(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Text()),
    )


def _outbox() -> None:
    subscription = sa.ForeignKey("subscriptions.id", ondelete="CASCADE")
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("subscription_id", sa.String(36), subscription, nullable=False, index=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt", sa.DateTime(), nullable=False, index=True),
        sa.Column("delivered", sa.DateTime()),
        sa.Column("given_up", sa.DateTime()),
    )
    op.create_index(
        "waiting_notifications",
        "outbox",
        ["subscription_id", "id"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )


def _steps() -> None:
    operation = sa.ForeignKey("operations.id", ondelete="CASCADE")
    op.create_table(
        "steps",
        sa.Column("operation_id", sa.String(36), operation, primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("diff", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("seconds", sa.Double(), nullable=False),
    )
