# SPDX-License-Identifier: Apache-2.0
"""The first tables"""

revision = "0010"  # development versions had 0001 to 0009, and are refused
down_revision = None


def upgrade() -> None:
    """Do nothing: a database without tables gets those of the models."""
