"""The files of a package: a folder, or a zip that is read without unpacking it.

A path is relative to the package, with ``/``. A path that leads out of the package (by ``..``, from
the root or through a link) is refused, and so is everything that is not a regular file.
"""

from __future__ import annotations

import os
import posixpath
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from container_update.model.errors import PackageError

_KIB = 1024
_GIB = _KIB**3
_LONGEST_PATH = 1024


@dataclass(frozen=True)
class Limits:
    """How big a package may be: container images may be part of it. Sizes are in bytes."""

    files: int = 20_000
    file_size: int = 16 * _GIB
    total_size: int = 64 * _GIB
    read_size: int = 64 * _KIB * _KIB
    """The size of a file that is read into memory: a def-file, a definitions file."""
    ratio: int = 1000
    """Uncompressed size to compressed size, of files of at least 1 MiB in a zip."""


class Archive(Protocol):
    """The files of a package."""

    def names(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""

    def has(self, path: str) -> bool:
        """Return whether the file exists.

        :raises PackageError: the path leads out of the package.
        """

    def size(self, path: str) -> int:
        """Return the size of a file in bytes.

        :raises PackageError: the file does not exist.
        """

    def open(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file, for a ``with`` block.

        :raises PackageError: the file does not exist or cannot be read.
        """

    def close(self) -> None:
        """Close the package."""


def open_archive(source: str, limits: Limits) -> Archive:
    """Open a folder or a zip.

    :param source: its path.
    :raises PackageError: it does not exist, has unsafe entries or exceeds the limits.
    """
    path = Path(source)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise PackageError(f"the package {source} cannot be opened: {problem}") from error
    if stat.S_ISDIR(mode):
        return FolderArchive(source, limits)
    if not stat.S_ISREG(mode):
        raise PackageError(f"the package {source} is neither a folder nor a zip file")
    return ZipArchive(source, limits)


def inside(path: str) -> str:
    """Return the path in its shortest form.

    :raises PackageError: it leads out of the package, is too long, or has characters that are not
        printable.
    """
    if len(path) > _LONGEST_PATH or not path.isprintable():
        raise PackageError(
            f"{path[:80]!a} is not a path in the package: expected at most {_LONGEST_PATH} "
            f"printable characters, found {len(path)} characters"
        )
    shortest = posixpath.normpath(path)
    if not path or shortest.startswith(("/", "../")) or shortest in (".", ".."):
        raise PackageError(
            f'"{path}" is not a path in the package: expected a path relative to its root'
        )
    return shortest


class FolderArchive:
    """An unpacked package."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.root = Path(source).resolve()

    def names(self) -> Sequence[str]:
        """Return the paths of all files, sorted; links to folders are not followed."""
        paths: list[str] = []
        total = 0
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for name in files:
                path = Path(folder, name)
                paths.append(path.relative_to(self.root).as_posix())
                total += path.lstat().st_size
            _check_totals(self.source, len(paths), total, self.limits)
        return sorted(paths)

    def has(self, path: str) -> bool:
        """Return whether the file exists."""
        return self._locate(path).is_file()

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._regular(path).stat().st_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file."""
        located = self._regular(path)
        with _readable(self.source, path), located.open("rb") as file:
            yield file

    def close(self) -> None:
        """Do nothing: each file is closed by its ``with`` block."""

    def _locate(self, path: str) -> Path:
        located = self.root / inside(path)
        try:
            real = located.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise PackageError(f"{path} in {self.source} is a link to itself") from error
        if not real.is_relative_to(self.root):
            raise PackageError(
                f"{path} in {self.source} is a link that leads out of the package: "
                "replace it with the file itself"
            )
        return real

    def _regular(self, path: str) -> Path:
        file = self._locate(path)
        with _readable(self.source, path):
            status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise PackageError(
                f"{path} in {self.source} is not a regular file: replace it with one"
            )
        _check_size(self.source, path, status.st_size, self.limits)
        return file


class ZipArchive:
    """A packed package, read in place."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source = source
        try:
            self.zip = zipfile.ZipFile(source)
        except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
            raise PackageError(
                f"the package {source} is neither a folder nor a zip file: {error}"
            ) from error
        try:
            self.entries: Mapping[str, zipfile.ZipInfo] = self._checked(limits)
        except PackageError:
            self.zip.close()
            raise

    def names(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""
        return sorted(self.entries)

    def has(self, path: str) -> bool:
        """Return whether the file exists."""
        return inside(path) in self.entries

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._entry(path).file_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file."""
        entry = self._entry(path)
        with _readable(self.source, path), self.zip.open(entry) as file:
            yield file

    def close(self) -> None:
        """Close the zip."""
        self.zip.close()

    def _entry(self, path: str) -> zipfile.ZipInfo:
        entry = self.entries.get(inside(path))
        if entry is None:
            raise PackageError(f"{path} in {self.source} cannot be read: no such file")
        return entry

    def _checked(self, limits: Limits) -> dict[str, zipfile.ZipInfo]:
        infos = [info for info in self.zip.infolist() if not info.is_dir()]
        _check_totals(self.source, len(infos), sum(info.file_size for info in infos), limits)
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            path = inside(info.filename)
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise PackageError(
                    f"{path} in {self.source} is not a regular file: replace it with one"
                )
            if path in entries:
                raise PackageError(f"{path} is in {self.source} twice: keep one of them")
            _check_size(self.source, path, info.file_size, limits)
            _check_ratio(self.source, info, limits)
            entries[path] = info
        return entries


@contextmanager
def _readable(source: str, path: str) -> Iterator[None]:
    """Raise a PackageError that names the file, for any error in the ``with`` block."""
    try:
        yield
    except RuntimeError as error:  # zipfile raises it if a password is needed
        raise PackageError(f"{path} in {source} cannot be read: {error}") from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PackageError(f"{path} in {source} cannot be read: {problem}") from error


def _check_totals(source: str, files: int, size: int, limits: Limits) -> None:
    for count, limit, unit, option in (
        (files, limits.files, "files", "package_files"),
        (size, limits.total_size, "bytes in all files", "package_bytes"),
    ):
        if count > limit:
            raise PackageError(
                f"{source}: expected at most {limit} {unit} (option {option}), found {count}"
            )


def _check_size(source: str, path: str, size: int, limits: Limits) -> None:
    if size > limits.file_size:
        raise PackageError(
            f"{path} in {source}: expected at most {limits.file_size} bytes, found {size}"
        )


def _check_ratio(source: str, info: zipfile.ZipInfo, limits: Limits) -> None:
    if info.file_size >= _KIB * _KIB and info.file_size > info.compress_size * limits.ratio:
        raise PackageError(
            f"{info.filename} in {source} expands from {info.compress_size} to "
            f"{info.file_size} bytes, more than {limits.ratio} times its size: "
            "it looks like a zip bomb"
        )
