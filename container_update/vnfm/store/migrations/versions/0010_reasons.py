# SPDX-License-Identifier: Apache-2.0
"""The reason of an operation, and why a step failed"""

import sqlalchemy as sa
from alembic import op

revision = "0010"  # development versions had 0003 to 0009, and are refused
down_revision = "0002"


def upgrade() -> None:
    """Add the columns, which are empty for what is there."""
    op.add_column("operations", sa.Column("why", sa.Text(), nullable=False, server_default=""))
    op.add_column("steps", sa.Column("problem", sa.Text(), nullable=False, server_default=""))
