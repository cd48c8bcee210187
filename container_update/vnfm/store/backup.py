"""Backups of the database: one private file, complete or not there at all.

A backup is consistent, also while services run. What is not in the database is not in it: the key
that opens its credentials, the tokens, the packages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import text

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.settings import Settings
from container_update.vnfm.store import liveness, postgresql_tools, revisions
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.private_file import make_private_file, make_private_folder

_TABLES = frozenset({"instances", "operations", "outbox", "packages", "subscriptions", "vims"})
"""Tables of every revision."""

_STOP = (
    "UPDATE operations SET owner = '00000000-0000-0000-0000-000000000000', "
    "state = CASE state WHEN 'STARTING' THEN 'PROCESSING' ELSE state END "
    "WHERE state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')"
)
"""Gives what a restored database has at work to a service that is dead: the next start sets it to
FAILED_TEMP. The VNF may have gone on since, so nothing may be begun or resumed by itself."""


def backup(database: Database, file: Path) -> None:
    """Write a backup.

    :raises ContainerUpdateError: there is such a file, or the database cannot be read.
    """
    if file.exists():
        raise ContainerUpdateError(f"{file}: exists already: name another file")
    with database.explained(), _file_errors():
        if database.revision() is None:
            raise ContainerUpdateError(f"{database}: has no tables: there is nothing to back up")
        with _draft(file) as draft:
            if database.file is None:
                postgresql_tools.dump(database, draft)
            else:
                _copy(database.file, draft)


def restore(settings: Settings, database: Database, file: Path) -> Path | None:
    """Put a backup in the place of the database, wholly or not at all.

    :returns: the file that keeps what was there before; None if there was nothing.
    :raises ContainerUpdateError: a service uses the database, or the file is no backup of it.
    """
    make_private_folder(settings.folder)
    with database.explained(), liveness.reserved(database, settings.members) as is_reserved:
        if not is_reserved:
            raise ContainerUpdateError(
                f"{database}: a service uses it: stop every service that does, then restore it"
            )
        moment = f"{now():%Y%m%dT%H%M%S.%fZ}"
        with _file_errors():
            if database.file is None:
                return _restore_dump(database, file, settings.folder / f"before-{moment}.dump")
            return _restore_file(database, file, moment)


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ContainerUpdateError(f"{error.filename}: {error.strerror}") from error


@contextmanager
def _draft(file: Path) -> Iterator[Path]:
    """Yield a private file to write; at the end of the ``with`` block it gets its name."""
    draft = file.with_name(f".{file.name}.part")
    draft.unlink(missing_ok=True)
    make_private_file(draft)
    try:
        yield draft
        _sync(draft)
        draft.replace(file)
        _sync(file.absolute().parent)
    finally:
        draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- SQLite -------------------------------------------------------------------------------------


def _copy(source: Path, target: Path) -> None:
    with closing(_opened(source)) as read, closing(_opened(target)) as written:
        read.backup(written)
        written.execute("PRAGMA journal_mode=DELETE")  # one file, with nothing beside it


def _opened(path: Path, seconds: float = 30.0) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=seconds)


def _restore_file(database: Database, file: Path, moment: str) -> Path | None:
    live = database.files[0]
    refuse_foreign_file(file)
    before = live if live.exists() else live.parent
    with _draft(live) as draft:
        with closing(revisions.reader(file)) as read, closing(_opened(draft)) as written:
            read.backup(written)
            written.execute(_STOP)
            written.commit()
        owner = before.stat()
        os.chown(draft, owner.st_uid, owner.st_gid)  # root may restore it for the service's user
        return _set_aside(database, moment) if before == live else None


def refuse_foreign_file(file: Path) -> None:
    """Raise ContainerUpdateError if a file is no backup that this version can read."""
    expected = f"{file}: expected a backup of this service's database"
    if not file.is_file():
        raise ContainerUpdateError(f"{expected}: there is no such file")
    try:
        found = revisions.of_file(file)
        with closing(revisions.reader(file)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            faults = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise ContainerUpdateError(f"{expected}: {error}") from error
    if found is None or not tables >= _TABLES:
        raise ContainerUpdateError(f"{expected}, found another database")
    if faults != "ok":
        raise ContainerUpdateError(f"{expected}, found a damaged one: {faults}")
    revisions.refuse_unknown(found, file)


def _set_aside(database: Database, moment: str) -> Path:
    """Give the present database a second name: the first one is about to be another file's."""
    live, log = database.files[:2]
    kept = live.with_name(f"{live.name}.before-{moment}")
    kept_log = kept.with_name(f"{kept.name}-wal")
    for path, name in ((live, kept), (log, kept_log)):  # SQLite may delete the log of a damaged one
        if path.exists():
            os.link(path, name)
    try:
        if _has_written_log(database, live):
            kept_log.unlink(missing_ok=True)
    except ContainerUpdateError:
        kept.unlink()
        kept_log.unlink(missing_ok=True)
        raise
    for companion in database.files[1:]:  # they are not the new one's
        companion.unlink(missing_ok=True)
    return kept


def _has_written_log(database: Database, live: Path) -> bool:
    """Move what is in the log into the file; return whether that was possible: it may be damaged.

    :raises ContainerUpdateError: somebody has it open.
    """
    try:
        with closing(_opened(live, seconds=0)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError as error:
        raise ContainerUpdateError(
            f"{database}: another program has it open ({error}): end it, then restore"
        ) from error
    except sqlite3.DatabaseError:
        return False
    return True


# --- PostgreSQL ---------------------------------------------------------------------------------


def _restore_dump(database: Database, file: Path, keep: Path) -> Path | None:
    found = postgresql_tools.revision_of(database, file)
    if found is None:
        raise ContainerUpdateError(
            f"{file}: expected a backup of this service's database, found another one"
        )
    revisions.refuse_unknown(found, file)
    present = database.revision()
    if present not in (None, found):
        raise ContainerUpdateError(
            f"{database}: its tables have revision {present}, those of {file} have {found}: create "
            "an empty database, name it in [vnfm] database_url, and restore into that one"
        )
    if present is not None:
        backup(database, keep)
    postgresql_tools.load(database, file)
    with database.writing() as session:
        session.execute(text(_STOP))
    return keep if present is not None else None
