"""``container-update db``: upgrade, back up, restore and shrink the database of the service."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from container_update.cli import extras, service_settings
from container_update.cli.terminal.output import DONE
from container_update.model.errors import ContainerUpdateError

if TYPE_CHECKING:
    from container_update.vnfm.settings import Settings
    from container_update.vnfm.store.database import Database


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the four commands.

    :param add: adds one, by its name, its function and its help.
    """
    text = "create the tables of the service's database, or bring them up to date"
    service_settings.add_arguments(add("upgrade", _upgrade, text))
    text = "write the database to a file, also while the service runs"
    _add_file(add("backup", _backup, text), "the file to write, which is not there yet")
    text = "put a backup in the place of the database; the service is stopped"
    _add_file(add("restore", _restore, text), "what the command backup wrote")
    text = "delete what is not kept any longer, and give back its room"
    service_settings.add_arguments(add("vacuum", _vacuum, text))


def _add_file(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("file", metavar="FILE", type=Path, help=text)
    service_settings.add_arguments(command)


@contextmanager
def _opened(parsed: argparse.Namespace) -> Iterator[tuple[Settings, Database]]:
    """Yield the settings and the database that the service would use."""
    with extras.needed_by("db", "vnfm"):
        from container_update.vnfm.store.database import Database  # noqa: PLC0415, an extra
    settings, _ = service_settings.read(parsed)
    database = Database(settings.database)
    try:
        with database.explained():
            yield settings, database
    finally:
        database.close()


def _upgrade(parsed: argparse.Namespace, out: TextIO) -> int:
    with _opened(parsed) as (settings, database):
        from container_update.vnfm.store import private_file  # noqa: PLC0415, an extra

        before = None
        if database.file is not None:
            private_file.make_private_folder(settings.folder)
        if database.file is None or database.file.exists():
            before = database.revision()
        database.upgrade()
        after = database.revision()
        done = f"upgraded from revision {before} to {after}" if before else f"created ({after})"
        text = f"have revision {after} already" if before == after else f"were {done}"
        out.write(f"{database}: the tables {text}\n")
    return DONE


def _backup(parsed: argparse.Namespace, out: TextIO) -> int:
    with _opened(parsed) as (settings, database):
        from container_update.vnfm.store.backup import backup  # noqa: PLC0415, an extra

        backup(database, parsed.file)
        size = _mebibytes(parsed.file.stat().st_size)
        out.write(f"{database}: written to {parsed.file} ({size})\n")
        out.write("Not in it; keep these as well, the key in another place than the backup:\n")
        out.writelines(f"  {line}\n" for line in _companions(settings))
    return DONE


def _companions(settings: Settings) -> Iterator[str]:
    """Yield what a restore needs in addition."""
    yield f"{settings.key_path}: without this key nobody can read the credentials in the backup"
    if settings.auth == "token_file":
        yield f"{settings.token_path}: the tokens of the clients"
    yield f"{settings.packages}: the packages"


def _restore(parsed: argparse.Namespace, out: TextIO) -> int:
    with _opened(parsed) as (settings, database):
        from container_update.vnfm.store.backup import restore  # noqa: PLC0415, an extra

        kept = restore(settings, database, parsed.file)
        out.write(f"{database}: restored from {parsed.file}, revision {database.revision()}\n")
        if kept is not None:
            out.write(f"What was there before is in {kept}\n")
        out.write("Before the start put back what belongs to it:\n")
        out.writelines(f"  {line}\n" for line in _companions(settings))
    return DONE


def _vacuum(parsed: argparse.Namespace, out: TextIO) -> int:
    with _opened(parsed) as (settings, database):
        from container_update.vnfm.store import retention, revisions, room  # noqa: PLC0415

        found = database.revision()
        revisions.refuse_unknown(found, database)
        if found != revisions.known()[0]:
            raise ContainerUpdateError(f"{database}: upgrade its tables first")
        before = room.size(database)
        operations = retention.forget_operations(database, settings.operation_seconds)
        notifications = retention.forget_notifications(database)
        room.vacuum(database)
        out.write(f"{database}: deleted {operations} old operations, {notifications} old "
                  "notifications\n")  # fmt: skip
        after = _mebibytes(room.size(database))
        out.write(f"Size before: {_mebibytes(before)}, now: {after}\n")
    return DONE


def _mebibytes(size: int) -> str:
    return f"{size / 1024**2:.2f} MiB"
