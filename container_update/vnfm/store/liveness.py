# SPDX-License-Identifier: Apache-2.0
"""Which service processes live: each holds a lock of its own until it ends, whatever ends it.

Beside SQLite it is a file lock, which the kernel releases at the process's end and never before. On
PostgreSQL it is an advisory lock, held by a connection. A living service loses it when the server
restarts or the connection breaks, and acquires it again at its next look; so there a service is
dead when its lock was free at every look for a time that is longer than that. The time is that of
the observer's own clock, and begins anew when the observer itself lost the database.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.store.database import Database

LOG = logging.getLogger(__name__)

_LOOKS = 3
"""A dead service's lock has been free for so many intervals; a living one needs one to be back."""

_LOCK_SETTINGS = (
    "SET lock_timeout = '5s'",  # another service holds the lock while it settles what it took over
    # the server's own look whether this host is still there
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
"""For the connection that holds the lock."""


_LIVING = (  # the first half of the key of an upgrade's lock is zero
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid <> 0 AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Counts the locks of services."""


class ProcessLock(ABC):
    """The lock of this service process, by an id of its own."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())

    def dead(self, other: str) -> AbstractContextManager[bool]:
        """Hold the lock of *other* for a ``with`` block if it is dead; yield whether it is."""
        return nullcontext(False) if other == self.id else self._claim(other)

    def holds(self) -> bool:
        """Return whether the own lock is held, so that no other takes this service for dead."""
        try:
            with self._claim(self.id) as claimed:
                return not claimed
        except SQLAlchemyError:
            return False

    @abstractmethod
    def keep(self) -> None:
        """Begin a look at the other services: check that the own lock is still held; acquire it
        again if it was lost.

        :raises SQLAlchemyError: that is not possible now; call it again.
        """

    @abstractmethod
    def leave(self) -> None:
        """Release the own lock."""

    @abstractmethod
    def _claim(self, other: str) -> AbstractContextManager[bool]:
        """Hold the lock of *other* for a ``with`` block if it is free; yield whether it was."""


def join(database: Database, folder: Path, lock_seconds: float) -> ProcessLock:
    """Acquire the lock of this process.

    :param lock_seconds: the time between two calls of :meth:`ProcessLock.keep`, in every service.
    """
    if database.is_sqlite:
        return FileLock(folder)
    return DatabaseLock(database, _LOOKS * lock_seconds)


def is_used(database: Database, folder: Path) -> bool:
    """Return whether a service lives that uses the database, and this folder beside SQLite."""
    if database.is_sqlite:
        return _has_members(folder)
    with database.engine.connect() as connection:
        return bool(connection.scalar(text(_LIVING)))


def _has_members(folder: Path) -> bool:
    if not folder.exists():  # no service was ever started
        return False
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


class FileLock(ProcessLock):
    """A lock on one host. Each service also shares a lock of the folder, which shows whether any of
    them lives."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._shared = os.open(folder, os.O_RDONLY)
        fcntl.flock(self._shared, fcntl.LOCK_SH)
        self._file = self._open(self.id)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _open(self, process: str) -> int:
        return os.open(self._folder / f"{process}.lock", os.O_RDWR | os.O_CREAT, 0o600)

    def keep(self) -> None:
        """Do nothing: a file lock cannot be lost."""

    @contextmanager
    def _claim(self, other: str) -> Iterator[bool]:
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
        os.close(self._shared)


class DatabaseLock(ProcessLock):
    """A lock for all hosts that use the database.

    :param patience: the seconds for which the lock of a dead service has been free.
    """

    def __init__(self, database: Database, patience: float) -> None:
        super().__init__()
        self._engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._patience = patience
        self._free: dict[str, float] = {}
        """Since when the locks that were free at the last look have been free."""
        self._free_now: dict[str, float] = {}
        """The same of the present look."""
        self._connection: Connection | None = self._hold()

    def _hold(self) -> Connection:
        connection = self._engine.connect()
        try:
            for setting in _LOCK_SETTINGS:
                connection.execute(text(setting))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(self.id)})
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    def keep(self) -> None:
        """See ProcessLock."""
        self._free, self._free_now = self._free_now, {}
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
            except SQLAlchemyError:
                LOG.warning("the connection that holds this service's lock was lost")
                lost, self._connection = self._connection, None
                lost.invalidate()
                lost.close()
        if self._connection is None:
            self._free = {}  # the others may have lost theirs at the same time
            self._connection = self._hold()
            LOG.warning("this service has its lock again")

    @contextmanager
    def dead(self, other: str) -> Iterator[bool]:
        """See ProcessLock."""
        with super().dead(other) as free:
            moment = time.monotonic()
            if not free:
                self._free_now.pop(other, None)
                yield False
                return
            since = self._free_now.setdefault(other, self._free.get(other, moment))
            yield moment - since >= self._patience

    @contextmanager
    def _claim(self, other: str) -> Iterator[bool]:
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
        if self._connection is None:
            return
        try:
            unlock = text("SELECT pg_advisory_unlock(:key)")
            self._connection.execute(unlock, {"key": _key(self.id)})
        except SQLAlchemyError as error:  # the server releases it when the process ends
            LOG.warning("the lock of this service was not released: %s", type(error))
        finally:
            self._connection.invalidate()  # its settings are for no other use
            self._connection.close()


def _key(process: str) -> int:
    """Return a process's id as a key of PostgreSQL's locks: a signed number of 64 bits."""
    return int(uuid.UUID(process)) >> 65
