# SPDX-License-Identifier: Apache-2.0
"""The key with which journals and histories are signed: the configured one, that of a VIM's login,
or the user's own, which is made when it is first needed."""

from __future__ import annotations

import secrets
from pathlib import Path

from container_update.cluster.private_file import make_private_folder, private_text, user_folder
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options


def key_of(options: Options, of_login: str | None = None) -> str:
    """Return the key of this host; '' where it signs nothing.

    :param of_login: what all hosts with the login of a VIM know; None: it is the user's own login.
    :raises ContainerUpdateError: the user's own key cannot be read or made.
    """
    if options.no_journal_key:
        return ""
    if options.journal_key or of_login is not None:
        return options.journal_key or of_login or ""
    return _of_user(user_folder() / "journal.key")


def read(path: Path, first: str | None = None) -> str:
    """Return the key in a file of its user's own; see :func:`.private_text`."""
    key = private_text(path, first).strip()
    if not key:
        raise ContainerUpdateError(f"{path}: expected a text, and it is empty")
    return key


def _of_user(path: Path) -> str:
    try:
        if not path.is_absolute():
            raise ContainerUpdateError(f"{path}: this user has no home folder")
        if not path.exists():
            make_private_folder(path.parent)
        return read(path, f"{secrets.token_urlsafe(32)}\n")
    except (OSError, ContainerUpdateError) as error:
        raise ContainerUpdateError(
            f"the key of this user, which signs journals, cannot be read or made: {error}: name "
            "another file (option journal_key), or sign nothing (option no_journal_key)"
        ) from error
