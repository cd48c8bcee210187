"""Who is alive: each service process holds a lock of its own for as long as it lives. Whoever gets
another's lock knows that it is dead, whatever killed it.

On PostgreSQL an advisory lock, held by a connection; beside SQLite a file lock. The server and the
kernel give them back, no clock is involved. (tooz would do the same, but its PostgreSQL driver is
deprecated and about to be removed.)
"""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.store.database import Database

LOG = logging.getLogger(__name__)


class ProcessLock(ABC):
    """The lock of this service process, by an id of its own."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())

    @abstractmethod
    def keep(self) -> None:
        """See that the own lock is held still, and take it again where it was lost."""

    @contextmanager
    def dead(self, other: str) -> Iterator[bool]:
        """Return a ``with`` block: whether *other* is dead; nobody else can claim it meanwhile."""
        if other == self.id:
            yield False
            return
        with self._claimed(other) as got:
            yield got

    @abstractmethod
    def holds(self) -> bool:
        """Whether the own lock is held, so that no other takes this service for dead."""

    @abstractmethod
    def leave(self) -> None:
        """Give the own lock back."""

    @abstractmethod
    def _claimed(self, other: str) -> AbstractContextManager[bool]:
        """Return a ``with`` block: whether the lock of *other* was free, and is held meanwhile."""


def join(database: Database, folder: Path) -> ProcessLock:
    """Take the lock of this process.

    :param folder: where the locks beside SQLite are.
    """
    return FileLock(folder) if database.is_sqlite else DatabaseLock(database)


class FileLock(ProcessLock):
    """A lock on one host."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self._open(self.id)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _open(self, process: str) -> int:
        return os.open(self._folder / f"{process}.lock", os.O_RDWR | os.O_CREAT, 0o600)

    def keep(self) -> None:
        """Nothing can take a file lock away."""

    def holds(self) -> bool:
        """See ProcessLock."""
        with self._claimed(self.id) as got:
            return not got

    @contextmanager
    def _claimed(self, other: str) -> Iterator[bool]:
        file = self._open(other)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
            (self._folder / f"{other}.lock").unlink(missing_ok=True)
        finally:
            os.close(file)

    def leave(self) -> None:
        """See ProcessLock."""
        (self._folder / f"{self.id}.lock").unlink(missing_ok=True)
        os.close(self._file)


class DatabaseLock(ProcessLock):
    """A lock wherever the database is reached from."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = self._hold()

    def _hold(self) -> Connection:
        connection = self._engine.connect()
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(self.id)})
        return connection

    def keep(self) -> None:
        """See ProcessLock."""
        try:
            self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            LOG.warning("the connection that shows that this service lives was lost: made anew")
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._hold()

    def holds(self) -> bool:
        """See ProcessLock."""
        try:
            with self._claimed(self.id) as got:
                return not got
        except SQLAlchemyError:
            return False

    @contextmanager
    def _claimed(self, other: str) -> Iterator[bool]:
        key = {"key": _key(other)}
        with self._engine.connect() as connection:
            got = bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key))
            try:
                yield got
            finally:
                if got:
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)

    def leave(self) -> None:
        """See ProcessLock."""
        try:
            unlock = text("SELECT pg_advisory_unlock(:key)")
            self._connection.execute(unlock, {"key": _key(self.id)})
        except SQLAlchemyError as error:  # the server gives it back when the process ends
            LOG.warning("the database was not told that this service ends: %s", type(error))
        finally:
            self._connection.close()


def _key(process: str) -> int:
    """Return a process's id as PostgreSQL has the keys of its locks: 64 bits, with a sign."""
    return int(uuid.UUID(process)) >> 65
