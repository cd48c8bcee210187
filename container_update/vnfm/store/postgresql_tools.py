"""Backups of a PostgreSQL with its own programs: ``pg_dump`` and ``pg_restore``.

A password goes to them in their environment: the arguments of a program are for everybody to read.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.store.database import Database

_REVISION = re.compile(r"^COPY \S*alembic_version \(version_num\) FROM stdin;\n(\S+)$", re.M)


def dump(database: Database, file: Path) -> None:
    """Write the database to a file, as it is at one moment.

    :raises ContainerUpdateError: that failed, or the program is not installed.
    """
    target = (f"--file={file}", _url(database))
    _run(database, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", *target)


def load(database: Database, file: Path) -> None:
    """Put the tables of a file in the place of those with the same names, in one transaction.

    :raises ContainerUpdateError: that failed, and nothing was changed.
    """
    how = ("--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--no-owner")
    target = (f"--dbname={_url(database)}", str(file))
    _run(database, "pg_restore", *how, "--no-privileges", *target)


def revision_of(database: Database, file: Path) -> str | None:
    """Return the revision of the tables in a file; None if it has none.

    :raises ContainerUpdateError: it is no file of pg_dump.
    """
    what = ("--data-only", "--table=alembic_version", "--file=-", str(file))
    found = _REVISION.search(_run(database, "pg_restore", *what))
    return found[1] if found else None


def _url(database: Database) -> str:
    """Return the URL as PostgreSQL's programs take it, without the password."""
    url = database.url.difference_update_query(["password"])
    where = (url.host, url.port, url.database, url.query)
    return URL.create("postgresql", url.username, None, *where).render_as_string()


def _run(database: Database, *words: str) -> str:
    """Run a program and return what it wrote."""
    found = database.url.password or database.url.query.get("password")
    password = {"PGPASSWORD": str(found)} if found else {}
    try:
        ran = subprocess.run(  # noqa: S603
            words,
            env={**os.environ, **password},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ContainerUpdateError(_missing(words)) from error
    if ran.returncode:
        text = "; ".join(ran.stderr.strip().splitlines())
        raise ContainerUpdateError(f"{words[0]} failed: {text}")
    return ran.stdout


def _missing(words: Sequence[str]) -> str:
    return (
        f"the program {words[0]} is not on this host: install PostgreSQL's client programs, of the "
        "server's version or a newer one, or run this where they are, with the password in "
        f"PGPASSWORD or in a file that PGPASSFILE names: {shlex.join(words)}"
    )
