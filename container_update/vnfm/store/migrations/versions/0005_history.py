# SPDX-License-Identifier: Apache-2.0
"""Who requested an operation and about what, and the difference that each step makes"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_TEXTS = ("requested_by", "instance_name", "old_package", "new_package")


def upgrade() -> None:
    """Add columns to the operations and to their steps."""
    for name in _TEXTS:
        op.add_column("operations", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.add_column("steps", sa.Column("diff", sa.JSON(), nullable=False, server_default="[]"))
    op.create_index("operations_by_entry", "operations", ["entered"])
    op.create_index("operations_by_start", "operations", ["started"])
