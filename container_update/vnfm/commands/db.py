# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm db upgrade``: the tables of the service's database."""

from __future__ import annotations

import argparse
from typing import TextIO

from container_update.cli import extras
from container_update.cli.terminal.output import DONE
from container_update.vnfm.commands import service_settings


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    command.add_argument("task", choices=("upgrade",),
        help="create the tables, or bring them up to date")  # fmt: skip
    service_settings.add_arguments(command)


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Upgrade the tables; return the exit status."""
    with extras.needed_by("db", "vnfm"):
        from container_update.cluster import private_file  # noqa: PLC0415, an extra
        from container_update.vnfm.store.database import Database  # noqa: PLC0415, an extra
    settings, _ = service_settings.read(parsed)
    database = Database(settings.database)
    try:
        with database.explain_errors():
            before = None
            if database.file is not None:
                private_file.make_private_folder(settings.folder)
            if database.file is None or database.file.exists():
                before = database.revision()
            database.upgrade()
            after = database.revision()
    finally:
        database.close()
    done = f"upgraded from revision {before} to {after}" if before else f"created ({after})"
    text = f"have revision {after} already" if before == after else f"were {done}"
    out.write(f"{database}: the tables {text}\n")
    return DONE
