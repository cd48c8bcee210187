# SPDX-License-Identifier: Apache-2.0
"""The bytes of packages, each stream with a bound."""

from __future__ import annotations

import io
import sys
from functools import lru_cache
from threading import Lock
from typing import IO, Any

from container_update.model.errors import PackageError

_SIGNATURE = b"PK\x01\x02"
"""Of each entry in a zip's directory (APPNOTE.TXT, 4.3.12)."""
_LARGEST_ENTRY = 2048
"""In bytes, of all entries on average: 46 and a path, and what programs add."""
_READING = Lock()


class ZipFile(io.BufferedReader):
    """The bytes of a zip; entries of its directory are counted before they become objects.

    ``zipfile`` reads the directory with one call, and every entry has to have its signature.
    """

    def __init__(self, source: str, limit: int) -> None:
        super().__init__(io.FileIO(source))
        self.source = source
        self.limit: int | None = limit
        """Of entries; None once the directory was read."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the zip's end or directory, or the content of a file.

        :raises PackageError: the directory has too many entries.
        """
        if self.limit is None or size is None or size < 0:  # -1: the end, with its comment
            return super().read(size)
        if size > self.limit * _LARGEST_ENTRY:
            raise self._too_many(f"a directory of {size} bytes")
        content = super().read(size)
        if (entries := content.count(_SIGNATURE)) > self.limit:
            raise self._too_many(str(entries))
        return content

    def _too_many(self, found: str) -> PackageError:
        return PackageError(
            f"{self.source}: expected at most {self.limit} files and folders (option "
            f"package_files), found {found}"
        )


class Hashed(io.RawIOBase):
    """The first bytes of a file, hashed while they are read."""

    def __init__(self, file: IO[bytes], limit: int, digest: Any) -> None:
        self._file = file
        self._left = limit
        self._digest = digest

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how much."""
        content = self._file.read(min(len(buffer), self._left))
        self._left -= len(content)
        if self._digest:
            self._digest.update(content)
        buffer[: len(content)] = content
        return len(content)


def standard_input(limit: int) -> bytes:
    """Return what comes on standard input, each time the same, up to a byte more than the limit.

    :raises PackageError: there is none.
    :raises OSError: it cannot be read.
    """
    with _READING:  # threads of an operation open the same package
        return _read_once(sys.stdin, limit)


@lru_cache(maxsize=1)
def _read_once(stream: IO[str] | None, limit: int) -> bytes:
    if stream is None:
        raise PackageError("this process has no standard input: name a file, not -")
    return bytes(stream.buffer.read(limit + 1))  # type: ignore[attr-defined]
