"""Files with keys and tokens: made for their owner alone, refused where others may read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import mkstemp

from container_update.model.errors import ContainerUpdateError


def private_text(path: Path, first: str) -> str:
    """Return the text of a file; made with the text *first* where there is none.

    :raises ContainerUpdateError: others may read it, or it cannot be read or made.
    """
    try:
        _make(path, first)
        with path.open(encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ContainerUpdateError(
                    f"{path}: others than its owner have rights on it (mode {mode & 0o777:o}): "
                    f"see who read it, then chmod 600 {path}"
                )
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ContainerUpdateError(
            f"{path}: expected a text file that this process may read and make: {error}"
        ) from error


def _make(path: Path, text: str) -> None:
    """Make the file as a whole or not at all, also where two services start at once."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # its owner's alone
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        return  # another service was quicker: its file counts
    finally:
        os.unlink(draft)
