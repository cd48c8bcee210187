# SPDX-License-Identifier: Apache-2.0
"""What is for one user only: a folder, a database, files with keys and tokens.

Keys and tokens that others can read are refused: they may be known. Of the rest the rights are
taken away, whatever they were before.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from tempfile import mkstemp

from container_update.model.errors import ContainerUpdateError

_LONGEST = 2**20
"""Characters of a file."""


def make_private_folder(path: Path) -> None:
    """Create a folder for its owner only, or restrict it to its owner, or refuse it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_public_folder(path)
        path.chmod(0o700)
    except OSError as error:
        raise ContainerUpdateError(
            f"{path}: expected a folder that belongs to this user: {error}"
        ) from error


def refuse_public_folder(path: Path) -> None:
    """Raise ContainerUpdateError if everybody may write in a folder."""
    if path.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX):
        raise ContainerUpdateError(
            f"{path}: expected a folder in which only this user writes, found one for "
            f"everybody: choose another one, or chmod 700 {path}"
        )


def make_private_file(path: Path, *companions: Path) -> None:
    """Create an empty file for its owner only, or restrict it to its owner.

    :param companions: files beside it that are treated likewise if they exist.
    :raises ContainerUpdateError: that is not possible.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for file in (path, *companions):
            with contextlib.suppress(FileNotFoundError):
                file.chmod(0o600)
    except OSError as error:
        raise ContainerUpdateError(
            f"{path}: expected a file that belongs to this user: {error}"
        ) from error


def user_folder() -> Path:
    """Return the folder in which this program keeps what a user has configured."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(base), "container-update")


def private_text(path: Path, first: str | None = None) -> str:
    """Return the text of a file.

    :param first: its content if it does not exist, and is created; None: it has to exist.
    :raises ContainerUpdateError: others can read it, or it cannot be read or created.
    """
    try:
        if first is not None:
            _create(path, first)
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            mode = status.st_mode & 0o777
            if mode & others_rights(status.st_uid, os.geteuid()):
                raise ContainerUpdateError(
                    f"{path}: others than its owner have rights on it (mode {mode:o}): "
                    f"see who read it, then chmod 600 {path}"
                )
            text = file.read(_LONGEST + 1)
            if len(text) > _LONGEST:
                raise ContainerUpdateError(f"{path}: expected at most {_LONGEST} characters")
            return text
    except (OSError, UnicodeDecodeError) as error:
        raise ContainerUpdateError(
            f"{path}: expected a text file that this process may read"
            f"{'' if first is None else ' and make'}: {error}"
        ) from error


def others_rights(owner: int, user: int) -> int:
    """Return the rights that make a file known to others than this user.

    Root's file may be readable for its group: a mounted Secret of Kubernetes and a credential of
    systemd are, and only root has chosen who is in that group.

    >>> oct(others_rights(owner=0, user=10001)), oct(others_rights(owner=10001, user=10001))
    ('0o37', '0o77')
    """
    return 0o037 if owner == 0 and user != 0 else 0o077


def _create(path: Path, text: str) -> None:
    """Create the file with its whole text or not at all, also if two processes do it at once."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # only for its owner
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        return  # another process created it
    finally:
        os.unlink(draft)
