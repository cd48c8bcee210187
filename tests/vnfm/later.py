# SPDX-License-Identifier: Apache-2.0
"""A later version of the service, whose tables have one column more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.config import Config

from tests.internals.service import database, known_revisions

_STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{before}"

def upgrade():
    op.add_column("vims", sa.Column("later", sa.Text(), nullable=False, server_default=""))
"""


@contextmanager
def later_version(folder: Path) -> Iterator[str]:
    """Have this process be that version for the ``with`` block; yield its newest revision."""
    (steps := folder / "steps").mkdir()
    (steps / "9999_later.py").write_text(_STEP.format(before=known_revisions()[0]))
    made = database._alembic

    def config() -> Config:
        later = made()
        places = (f"{later.get_main_option('script_location')}/versions", str(steps))
        later.set_main_option("version_path_separator", "os")  # before alembic 1.16
        later.set_main_option("path_separator", "os")
        later.set_main_option("version_locations", os.pathsep.join(places))
        return later

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database, "_alembic", config)
        known_revisions.cache_clear()
        yield known_revisions()[0]
    known_revisions.cache_clear()
