# SPDX-License-Identifier: Apache-2.0
"""How often a package was read, so that one that ends its reader is not read for ever"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a column: packages that are being read have all their attempts."""
    op.add_column(
        "packages", sa.Column("attempts", sa.Integer(), nullable=False, server_default="0")
    )
