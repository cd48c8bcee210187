# SPDX-License-Identifier: Apache-2.0
"""What a start of the service needs, checked without a start: nothing is created or changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from cryptography import x509
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from container_update.cluster.credentials import is_loopback
from container_update.cluster.private_file import refuse_public_folder
from container_update.engine.checks.preflight import Check, check
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.http import authentication, connections
from container_update.vnfm.settings import Settings
from container_update.vnfm.store import liveness
from container_update.vnfm.store.database import (
    Database,
    known_revisions,
    refuse_unknown,
    sqlite_reader,
)
from container_update.vnfm.store.vault import Vault

_DAY = 24 * 3600


def checks(settings: Settings) -> Iterator[Check]:
    """Check everything but the address, one after the other."""
    named: Mapping[str, Callable[[Settings], str]] = {
        "state_dir": _state_dir,
        "auth": _authentication,
        "key_file": _key_file,
        "tls_cert": _certificate,
        "database": _database,
    }
    for name, function in named.items():
        yield check(name, partial(_run_check, function, settings))


def _run_check(function: Callable[[Settings], str], settings: Settings) -> str:
    try:
        return function(settings)
    except OSError as error:
        raise ContainerUpdateError(f"{error.filename}: {error.strerror}") from error


def is_served(settings: Settings) -> bool:
    """Return whether a service lives that uses this database."""
    try:
        database = Database(settings.database)
        with database.explain_errors():
            return liveness.is_used(database, settings.members)
    except ContainerUpdateError:
        return False


def _state_dir(settings: Settings) -> str:
    folder = settings.folder
    if not folder.exists():
        _refuse_uncreatable(folder)
        return f"{folder}: not there yet, the first start creates it"
    if not folder.is_dir():
        raise ContainerUpdateError(f"{folder}: expected a folder, found something else")
    refuse_public_folder(folder)
    owner, user = folder.stat().st_uid, os.geteuid()
    if user not in (0, owner) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise ContainerUpdateError(
            f"{folder}: expected a folder that belongs to the service's user, which is the user "
            f"{user} here; it belongs to the user {owner}: chown it, or run this as that user"
        )
    return f"{folder}: belongs to the user {owner}, who may write in it"


def _refuse_uncreatable(path: Path) -> None:
    """Raise ContainerUpdateError if a file or folder could not be created."""
    above = next(folder for folder in path.parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ContainerUpdateError(
            f"{path}: not there, and the user {os.geteuid()} may not create it in {above}: create "
            "it for the service's user, or run this as that user"
        )


def _authentication(settings: Settings) -> str:
    if settings.auth == "none":
        return "none: everybody on this host may use the API"
    if settings.auth == "keystone":
        from container_update.vnfm.http.keystone import KeystoneTokens  # noqa: PLC0415, slow

        KeystoneTokens(settings).log_in()
        return (
            f"{settings.keystone_url}: the user {settings.keystone_username} got a token; clients "
            f"need one of the roles {', '.join(settings.keystone_roles)}"
        )
    path = settings.token_path
    if not path.exists():
        _refuse_uncreatable(path)
        return f"{path}: not there yet, the first start creates it with one random token"
    return f"{path}: tokens of {', '.join(authentication.read_tokens(path))}"


def _key_file(settings: Settings) -> str:
    path, sealed = settings.key_path, _any_sealed(settings)
    if not path.exists():
        if sealed:
            raise ContainerUpdateError(
                f"{path}: not there, and the database has credentials that were encrypted with it: "
                "put it back; a new key does not decrypt them"
            )
        _refuse_uncreatable(path)
        return f"{path}: not there yet, the first start creates it with a new key"
    vault = Vault(path)
    if sealed:
        vault.open(sealed)
        return f"{path}: decrypts the credentials in the database"
    return f"{path}: has keys"


def _any_sealed(settings: Settings) -> str | None:
    """Return some credentials of the database, if there are any; its own check has its errors."""
    query = "SELECT sealed FROM vims LIMIT 1"
    try:
        database = Database(settings.database)
        if database.file is not None:
            with closing(sqlite_reader(database.file)) as connection:
                row = connection.execute(query).fetchone()
                return str(row[0]) if row else None
        with closing(database.engine.connect()) as connected:
            sealed: str | None = connected.scalar(text(query))
            return sealed
    except (ContainerUpdateError, SQLAlchemyError, sqlite3.Error):
        return None


def _certificate(settings: Settings) -> str:
    if not settings.tls_cert:
        where = "" if is_loopback(settings.host) else ": tokens pass the network unencrypted"
        return f"none, HTTP{where}"
    connections.check_certificate(settings)
    certificate = x509.load_pem_x509_certificate(Path(settings.tls_cert).read_bytes())
    end = certificate.not_valid_after_utc
    what = f"{settings.tls_cert}, of {certificate.subject.rfc4514_string() or 'no subject'}"
    if end <= datetime.now(timezone.utc):
        raise ContainerUpdateError(
            f"{what}: expired on {end:%Y-%m-%d}: clients refuse it: renew it"
        )
    return f"{what}: valid until {end:%Y-%m-%d}, its key is that of {settings.tls_key}"


def _database(settings: Settings) -> str:
    database = Database(settings.database)
    if database.file is not None and not database.file.exists():
        if database.file.parent == settings.folder or database.file.parent.is_dir():
            _refuse_uncreatable(database.file)
            return f"{database}: not there yet, the first start creates it"
        raise ContainerUpdateError(f"{database}: expected its folder to exist: create it")
    try:
        with database.explain_errors():
            return f"{database}: {_tables(database)}"
    finally:
        database.close()


def _tables(database: Database) -> str:
    revision, newest = database.revision(), known_revisions()[0]
    refuse_unknown(revision, database)
    if revision == newest:
        return f"its tables have revision {revision}, the newest"
    database.refuse_to_upgrade()
    if revision is None:
        return f"it has no tables yet, the first start creates them (revision {newest})"
    return f"its tables have revision {revision}: the start upgrades them to {newest}"
