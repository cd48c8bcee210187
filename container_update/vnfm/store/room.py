"""The room that the database takes: how much, and how to get some of it back."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import text

from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import Base


def size(database: Database) -> int:
    """Return the bytes that it takes on the disk."""
    if database.is_sqlite:
        return sum(file.stat().st_size for file in database.files if file.exists())
    with database.engine.connect() as connection:
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def vacuum(database: Database) -> None:
    """Give back what deleted rows took; on a PostgreSQL, gather statistics for its planner too.

    Services may run meanwhile; what writes to an SQLite database waits.
    """
    if not database.is_sqlite:
        engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"VACUUM (ANALYZE) {', '.join(Base.metadata.tables)}"))
        return
    with closing(database.engine.raw_connection()) as connection:
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            connection.cursor().execute(statement).fetchall()
