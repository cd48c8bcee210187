"""The files with logins that ``emulate`` writes: never in the place of a file of somebody else."""

from __future__ import annotations

import os
from pathlib import Path

from container_update.model.errors import PackageError

MARK = "# Written by container-update emulate, which may write it again.\n"


def write(path: Path, text: str, begin: str = MARK) -> Path:
    """Write a file that only its owner can read.

    :param begin: what *text* and a file that may be replaced begin with.
    :raises PackageError: there is another file, or it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as file:
            there = file.read(len(begin))
            if there not in ("", begin):
                raise PackageError(
                    f"{path} exists, and was not written by the emulator: it stays as it is; name "
                    "another file, or remove this one"
                )
            os.fchmod(descriptor, 0o600)
            file.seek(0)
            file.truncate()
            file.write(text)
    except OSError as error:
        raise PackageError(f"{path} cannot be written: {error.strerror}: name another") from error
    return path
