# SPDX-License-Identifier: Apache-2.0
"""When an operation goes on that waits without a worker"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add a column: no operation waits so far."""
    op.add_column("operations", sa.Column("due", sa.DateTime()))
