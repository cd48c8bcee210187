"""Which service processes live: each holds a lock of its own until it ends, whatever ends it.

On PostgreSQL it is an advisory lock, held by a connection; beside SQLite a file lock. The server or
the kernel releases it, no clock is involved. (tooz would do the same, but its PostgreSQL driver is
deprecated and about to be removed.)
"""

from __future__ import annotations

import fcntl
import logging
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.store.database import Database

LOG = logging.getLogger(__name__)


class ProcessLock(ABC):
    """The lock of this service process, by an id of its own."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())

    def dead(self, other: str) -> AbstractContextManager[bool]:
        """Hold the lock of *other* for a ``with`` block if it is dead; yield whether it is."""
        return nullcontext(False) if other == self.id else self._claimed(other)

    def holds(self) -> bool:
        """Return whether the own lock is held, so that no other takes this service for dead."""
        try:
            with self._claimed(self.id) as claimed:
                return not claimed
        except SQLAlchemyError:
            return False

    @abstractmethod
    def keep(self) -> None:
        """Check that the own lock is still held; acquire it again if it was lost."""

    @abstractmethod
    def leave(self) -> None:
        """Release the own lock."""

    @abstractmethod
    def _claimed(self, other: str) -> AbstractContextManager[bool]:
        """Hold the lock of *other* for a ``with`` block if it is free; yield whether it was."""


def join(database: Database, folder: Path) -> ProcessLock:
    """Acquire the lock of this process.

    :param folder: for the locks beside SQLite.
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
        """Do nothing: a file lock cannot be lost."""

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
    """A lock for all hosts that use the database."""

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
            LOG.warning("the connection that holds this service's lock was lost: connecting again")
            self._connection.invalidate()
            self._connection.close()
            self._connection = self._hold()

    @contextmanager
    def _claimed(self, other: str) -> Iterator[bool]:
        key = {"key": _key(other)}
        with self._engine.connect() as connection:
            claimed = bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key))
            try:
                yield claimed
            finally:
                if claimed:
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)

    def leave(self) -> None:
        """See ProcessLock."""
        try:
            unlock = text("SELECT pg_advisory_unlock(:key)")
            self._connection.execute(unlock, {"key": _key(self.id)})
        except SQLAlchemyError as error:  # the server releases it when the process ends
            LOG.warning("the lock of this service was not released: %s", type(error))
        finally:
            self._connection.close()


def _key(process: str) -> int:
    """Return a process's id as a key of PostgreSQL's locks: a signed number of 64 bits."""
    return int(uuid.UUID(process)) >> 65
