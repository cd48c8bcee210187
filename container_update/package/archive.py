"""The files of a package, in a folder or in a zip read in place. Nothing is ever unpacked.

A path is relative to the package, with ``/``. One that leads out of it, by ``..``, from the root or
through a link, is refused, as is everything that is no regular file.
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
    """How big a package may be before it is refused. Container images may lie in it."""

    files: int = 20_000
    file_size: int = 16 * _GIB
    total_size: int = 64 * _GIB
    read_size: int = 64 * _KIB * _KIB
    """Of a file that is read into memory as a whole: a def-file, a definitions file."""
    ratio: int = 1000
    """Of a compressed file's size to what it takes in the zip, from a mebibyte on."""


class Archive(Protocol):
    """The files of a package."""

    def names(self) -> Sequence[str]:
        """The paths of all files, sorted."""

    def has(self, path: str) -> bool:
        """Whether there is such a file; PackageError where the path leads out of the package."""

    def size(self, path: str) -> int:
        """Its bytes. PackageError where there is no such file."""

    def open(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """The file, for a ``with`` block. PackageError where it is missing or cannot be read."""

    def close(self) -> None:
        """Give back what is open."""


def open_archive(source: str, limits: Limits) -> Archive:
    """The files of a folder or zip.

    PackageError where there is no such thing, or a zip has unsafe entries or is over the limits.
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
    """The path in its shortest form.

    PackageError where it leads out of the package, is too long, or would garble a terminal.
    """
    if len(path) > _LONGEST_PATH or not path.isprintable():
        raise PackageError(
            f"{path[:80]!a} is no path within the package: expected at most {_LONGEST_PATH} "
            f"characters, all printable, found {len(path)}"
        )
    normal = posixpath.normpath(path)
    if not path or normal.startswith(("/", "../")) or normal in (".", ".."):
        raise PackageError(f'"{path}" is no path within the package: give one relative to its root')
    return normal


class FolderArchive:
    """An unpacked package."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.root = Path(source).resolve()

    def names(self) -> Sequence[str]:
        """The paths of all files, sorted; links to folders are not followed."""
        found: list[str] = []
        total = 0
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for name in files:
                path = Path(folder, name)
                found.append(path.relative_to(self.root).as_posix())
                total += path.lstat().st_size
            _check_totals(self.source, len(found), total, self.limits)
        return sorted(found)

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return self._locate(path).is_file()

    def size(self, path: str) -> int:
        """Its bytes."""
        return self._regular(path).stat().st_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """The file."""
        located = self._regular(path)
        with _readable(self.source, path), located.open("rb") as file:
            yield file

    def close(self) -> None:
        """Nothing is open."""

    def _locate(self, path: str) -> Path:
        located = self.root / inside(path)
        try:
            real = located.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise PackageError(f"{path} in {self.source} is a link that leads nowhere") from error
        if not real.is_relative_to(self.root):
            raise PackageError(
                f"{path} in {self.source} is a link that leads out of the package: "
                "put the file itself in its place"
            )
        return real

    def _regular(self, path: str) -> Path:
        file = self._locate(path)
        with _readable(self.source, path):
            status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise PackageError(f"{path} in {self.source} is no regular file")
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
        """The paths of all files, sorted."""
        return sorted(self.entries)

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return inside(path) in self.entries

    def size(self, path: str) -> int:
        """Its bytes."""
        return self._entry(path).file_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """The file."""
        entry = self._entry(path)
        with _readable(self.source, path), self.zip.open(entry) as file:
            yield file

    def close(self) -> None:
        """Close the zip."""
        self.zip.close()

    def _entry(self, path: str) -> zipfile.ZipInfo:
        entry = self.entries.get(inside(path))
        if entry is None:
            raise PackageError(f"{path} in {self.source} cannot be read: there is no such file")
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
                    f"{path} in {self.source} is a link or device: put a regular file in its place"
                )
            if path in entries:
                raise PackageError(f"{path} is in {self.source} twice: pack it once")
            _check_size(self.source, path, info.file_size, limits)
            _check_ratio(self.source, info, limits)
            entries[path] = info
        return entries


@contextmanager
def _readable(source: str, path: str) -> Iterator[None]:
    """Turns what goes wrong while a file is read into a PackageError that names it."""
    try:
        yield
    except RuntimeError as error:  # what zipfile raises where a password is needed
        raise PackageError(f"{path} in {source} cannot be read: {error}") from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PackageError(f"{path} in {source} cannot be read: {problem}") from error


def _check_totals(source: str, files: int, size: int, limits: Limits) -> None:
    for found, limit, what in (
        (files, limits.files, "files"),
        (size, limits.total_size, "bytes in all files"),
    ):
        if found > limit:
            raise PackageError(f"{source}: at most {limit} {what} were expected, found {found}")


def _check_size(source: str, path: str, size: int, limits: Limits) -> None:
    if size > limits.file_size:
        raise PackageError(
            f"{path} in {source}: at most {limits.file_size} bytes were expected, found {size}"
        )


def _check_ratio(source: str, info: zipfile.ZipInfo, limits: Limits) -> None:
    if info.file_size >= _KIB * _KIB and info.file_size > info.compress_size * limits.ratio:
        raise PackageError(
            f"{info.filename} in {source} says it grows from {info.compress_size} to "
            f"{info.file_size} bytes, more than {limits.ratio} times: it looks like a zip bomb"
        )
