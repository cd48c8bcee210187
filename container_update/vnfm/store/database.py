# SPDX-License-Identifier: Apache-2.0
"""The database: an engine, sessions that read or write, and its upgrade at the start.

SQLite: a transaction that writes takes the write lock when it begins (a reader that becomes a
writer would be refused without waiting), readers do not wait (WAL), and a commit is on the disk
when it returns (synchronous=FULL): what was acknowledged to a client is not lost.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic_core import from_json
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from sqlalchemy.orm import Session

from container_update.cluster.private_file import make_private_file
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.store.rows import Base

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

_BUSY_SECONDS = 30
_SQLITE_FILES = ("", "-wal", "-shm", "-journal")
"""What is added to the database's name; SQLite gives new ones the rights of the first."""

_SQLITE_PROBE = ("CREATE TABLE room (content BLOB)", "INSERT INTO room VALUES (zeroblob(65536))")
_POSTGRESQL_PROBE = (  # a temporary table is in the same tablespace, and hardly in the log
    "CREATE TEMPORARY TABLE room AS SELECT repeat('x', 1000) FROM generate_series(1, 64)",
)

_OUTAGE_PAUSE = 1.0
"""Seconds between two tries to reach a database that is away."""

_SERVER_TIMES = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""libpq's times in seconds, the last in milliseconds, after which a server that says nothing is
away; those in the URL take precedence."""
_POOL: dict[str, Any] = {
    "pool_size": 20,
    "max_overflow": 40,
    "hide_parameters": True,
    "json_deserializer": from_json,
}
"""Parameters, which users sent, stay out of errors and logs. pydantic reads JSON faster than the
standard library: a filter may have to judge the JSON of each row."""

_BEGIN, _BEGIN_TO_WRITE = "BEGIN", "BEGIN IMMEDIATE"
"""How a transaction of SQLite begins: what follows waits for no other one."""

_UPGRADE_LOCK, _TURNS_LOCK = 7_241_003, 7_241_004
"""Numbers of our own for PostgreSQL's advisory locks around an upgrade, and around transactions
that take turns."""


def now() -> datetime:
    """Return the time as in the tables: UTC, without a time zone."""
    return datetime.now(timezone.utc).replace(tzinfo=None)


def timestamp(moment: datetime) -> str:
    """Return a time of the tables as RFC 3339."""
    return moment.isoformat(timespec="milliseconds") + "Z"


def is_away(error: BaseException) -> bool:
    """Return whether an error means that the database takes no requests at this moment.

    A server was stopped or has no connection left; an SQLite file is locked by another process.
    """
    if not isinstance(error, DBAPIError):
        return isinstance(error, NoConnectionError)
    if isinstance(error.orig, sqlite3.Error):  # without a statement it could not be opened
        return error.statement in {None, _BEGIN, _BEGIN_TO_WRITE}
    return isinstance(error, OperationalError) or error.connection_invalidated


class Database:
    """A database.

    :param url: ``sqlite:///...`` or ``postgresql://...``.
    :raises ContainerUpdateError: the URL is of neither kind.
    """

    def __init__(self, url: str) -> None:
        try:
            self.url = make_url(url)
        except (ArgumentError, ValueError):  # their texts may quote the password
            raise ContainerUpdateError(
                "[vnfm] database_url: expected sqlite:///FILE or postgresql://USER@HOST/NAME, "
                "found something else; in a password write %40 for @, %3A for : and %2F for /"
            ) from None
        backend = self.url.get_backend_name()
        if backend not in ("sqlite", "postgresql"):
            raise ContainerUpdateError(
                f"[vnfm] database_url: expected sqlite or postgresql, found {backend}"
            )
        self.is_sqlite = backend == "sqlite"
        if not self.is_sqlite:  # psycopg 3
            self.url = self.url.set(drivername="postgresql+psycopg")
        self._closed = threading.Event()
        self.engine = self._engine()
        self._writer = self.engine.execution_options(writes=True)

    def _engine(self) -> Engine:
        if not self.is_sqlite:
            times = {name: _SERVER_TIMES[name] for name in _SERVER_TIMES.keys() - self.url.query}
            return create_engine(self.url, pool_pre_ping=True, connect_args=times, **_POOL)
        engine = create_engine(self.url, connect_args={"timeout": _BUSY_SECONDS}, **_POOL)
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
        return engine

    def __str__(self) -> str:
        """Return where it is, without a password."""
        if self.file is not None:
            return str(self.file)
        shown = self.url.set(drivername=self.url.get_backend_name())
        return shown.difference_update_query(["password"]).render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database; None without one."""
        name = self.url.database or ":memory:"
        is_file = self.is_sqlite and not name.startswith((":memory:", "file:"))
        return Path(name) if is_file else None

    @property
    def files(self) -> tuple[Path, ...]:
        """What SQLite writes, the database itself first; some of it exists only for a time."""
        return tuple(Path(f"{self.file}{suffix}") for suffix in _SQLITE_FILES if self.file)

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Turn errors of the database in the ``with`` block into one that says what to do.

        :raises ContainerUpdateError: the database cannot be used.
        """
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            cause = str(getattr(error, "orig", None) or error).strip()
            raise ContainerUpdateError(
                f"the database {self} cannot be used: {'; '.join(cause.splitlines())}: see whether "
                "it is there, and whether [vnfm] database_url and its user are right"
            ) from error

    def revision(self) -> str | None:
        """Return the revision of the tables, None without tables; change nothing."""
        if self.file is not None:
            return _revision_of_file(self.file)
        with self.engine.connect() as connection:
            return _revision_of(connection)

    def refuse_to_upgrade(self) -> None:
        """Raise ContainerUpdateError if the tables could not be created or changed."""
        if self.file is not None:
            if not os.access(self.file, os.W_OK):
                raise ContainerUpdateError(f"{self}: expected a file that this user may write")
            return
        with self.engine.connect() as connection:
            if connection.scalar(text("SHOW transaction_read_only")) == "on":
                raise ContainerUpdateError(f"{self}: is read-only: name the primary server")
            may = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
            if not connection.scalar(text(may)):
                raise ContainerUpdateError(
                    f"{self}: its user may not create tables: GRANT CREATE ON SCHEMA to it, or "
                    "make it the owner of the database"
                )

    def upgrade(self) -> None:
        """Create the tables, or bring them up to date; several services may do so at once.

        :raises ContainerUpdateError: the SQLite file cannot be created, or is another user's; the
            tables are those of a newer version.
        """
        if self.files:
            make_private_file(*self.files)
        config = _alembic()
        with self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
            refuse_unknown(revision := _revision_of(connection), self)
            config.attributes["connection"] = connection
            if revision is None:
                Base.metadata.create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, "head")

    def reading(self) -> Session:
        """Return a session that only reads, for a ``with`` block."""
        return Session(self.engine)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Yield a session that is committed at the end of the ``with`` block, or rolled back if the
        block raises."""
        with Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def take_turns(self, session: Session) -> None:
        """Wait until no other transaction that has called this is open, before any row is read or
        locked; in SQLite one writes at a time anyway."""
        if not self.is_sqlite:
            session.execute(text(f"SELECT pg_advisory_xact_lock({_TURNS_LOCK})"))

    def probe(self) -> None:
        """Write something for which the database has to grow, and roll it back.

        :raises SQLAlchemyError: it does not answer, takes no writes, or has no room.
        """
        with self._writer.connect() as connection, connection.begin() as transaction:
            for statement in _SQLITE_PROBE if self.is_sqlite else _POSTGRESQL_PROBE:
                connection.execute(text(statement))
            transaction.rollback()

    def lasting(self, function: Callable[[], Result]) -> Result:
        """Call a function whose transactions outlast an outage of the database: again from its
        beginning whenever it is away (:func:`is_away`), until the database is closed.

        What an operation has to read or record while it runs must not fail because the server is
        restarted at that moment, or another process has locked the file. Of a commit whose answer
        was lost it is not known whether it took place, so the function has to work twice.
        """
        while True:
            try:
                return function()
            except SQLAlchemyError as error:
                if not is_away(error) or self._closed.is_set():
                    raise
                LOG.warning("the database does not answer, waiting: %s", type(error).__name__)
            self._closed.wait(_OUTAGE_PAUSE)

    def close(self) -> None:
        """Close the connections, and give up what waits for the database."""
        self._closed.set()
        self.engine.dispose()


def _prepare(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin alone
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql(_BEGIN_TO_WRITE if writes else _BEGIN)


# --- the revisions of the tables: which this version knows, which a database has ----------------


def _alembic() -> Config:
    """Return alembic's configuration."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


@cache
def known_revisions() -> tuple[str, ...]:
    """Return the revisions that this version knows, the newest one first."""
    scripts = ScriptDirectory.from_config(_alembic())
    return tuple(script.revision for script in scripts.walk_revisions())


def _revision_of(connection: Connection) -> str | None:
    """Return the revision of a database's tables; None if it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def sqlite_reader(path: Path) -> sqlite3.Connection:
    """Open an SQLite file so that nothing is left beside it.

    :raises sqlite3.Error: it cannot be opened.
    """
    is_open = path.with_name(f"{path.name}-wal").exists()  # without it SQLite would create files
    mode = "mode=ro" if is_open else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)


def _revision_of_file(path: Path) -> str | None:
    """Return the revision of an SQLite file's tables; sqlite3.Error where it cannot be read."""
    with closing(sqlite_reader(path)) as connection:
        tables = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
        if not connection.execute(tables).fetchone()[0]:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


def refuse_unknown(revision: str | None, where: object) -> None:
    """Raise ContainerUpdateError if a revision is one that this version does not know."""
    if revision is not None and revision not in known_revisions():
        raise ContainerUpdateError(
            f"{where}: its tables have revision {revision}, and this version of the service knows "
            f"none after {known_revisions()[0]}: use the version that wrote them, or a newer one"
        )
