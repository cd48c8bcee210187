# SPDX-License-Identifier: Apache-2.0
"""The revisions of the tables: which ones this version knows, and which one a database has."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from container_update.model.errors import ContainerUpdateError


def config() -> Config:
    """Return alembic's configuration."""
    found = Config()
    found.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return found


@cache
def known() -> tuple[str, ...]:
    """Return the revisions that this version knows, the newest one first."""
    scripts = ScriptDirectory.from_config(config())
    return tuple(script.revision for script in scripts.walk_revisions())


def of(connection: Connection) -> str | None:
    """Return the revision of a database's tables; None if it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def refuse_unknown(found: str | None, where: object) -> None:
    """Raise ContainerUpdateError if a revision is one that this version does not know."""
    if found is not None and found not in known():
        raise ContainerUpdateError(
            f"{where}: its tables have revision {found}, and this version of the service knows "
            f"none after {known()[0]}: use the version that wrote them, or a newer one"
        )
