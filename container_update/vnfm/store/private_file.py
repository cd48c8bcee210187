"""Files with keys and tokens: created for their owner only, refused if others can read them."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkstemp

from container_update.model.errors import ContainerUpdateError


def private_text(path: Path, first: str) -> str:
    """Return the text of a file, which is created with the text *first* if it does not exist.

    :raises ContainerUpdateError: others can read it, or it cannot be read or created.
    """
    try:
        _create(path, first)
        with path.open(encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            if mode & 0o077:
                raise ContainerUpdateError(
                    f"{path}: others than its owner have rights on it (mode {mode:o}): "
                    f"see who read it, then chmod 600 {path}"
                )
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ContainerUpdateError(
            f"{path}: expected a text file that this process may read and make: {error}"
        ) from error


def _create(path: Path, text: str) -> None:
    """Create the file with its whole text or not at all, also if two services start at once."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # only for its owner
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        return  # another service created it
    finally:
        os.unlink(draft)
