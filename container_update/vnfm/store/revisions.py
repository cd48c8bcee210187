# SPDX-License-Identifier: Apache-2.0
"""The revisions of the tables: which ones this version knows, and which one a database has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
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


def reader(path: Path) -> sqlite3.Connection:
    """Open an SQLite file so that nothing is left beside it.

    :raises sqlite3.Error: it cannot be opened.
    """
    is_open = path.with_name(f"{path.name}-wal").exists()  # without it SQLite would create files
    mode = "mode=ro" if is_open else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)


def of_file(path: Path) -> str | None:
    """Return the revision of an SQLite file's tables.

    :raises sqlite3.Error: it is no SQLite file, or cannot be read.
    """
    with closing(reader(path)) as connection:
        tables = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
        if not connection.execute(tables).fetchone()[0]:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


def refuse_unknown(found: str | None, where: object) -> None:
    """Raise ContainerUpdateError if a revision is one that this version does not know."""
    if found is not None and found not in known():
        raise ContainerUpdateError(
            f"{where}: its tables have revision {found}, and this version of the service knows "
            f"none after {known()[0]}: use the version that wrote them, or a newer one"
        )
