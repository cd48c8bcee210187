# SPDX-License-Identifier: Apache-2.0
"""The files of a package: a folder, a zip that is read without unpacking it, or one YAML file.

A package at a URL is fetched first, with the limits of :mod:`container_update.package.fetch`.

A path is relative to the package, with ``/``. A path that leads out of the package (by ``..``, from
the root or through a link) is refused, and so is everything that is not a regular file.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import os
import posixpath
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import IO, Any
from urllib.parse import urlsplit

from container_update.model.errors import PackageError
from container_update.model.options import Options, size_text
from container_update.model.requests import STANDARD_INPUT
from container_update.model.schema import is_printable
from container_update.package import fetch, oci, rendering, signature

# --- streams with a bound -----------------------------------------------------------------------

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
        """Read the zip's end or directory (PackageError: too many entries), or a file's content."""
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


MANIFEST_ENDINGS = (".yaml", ".yml", ".json")
"""Of files that may hold Kubernetes manifests."""

_PREFIX = "container-update-"
"""Of temporary folders."""
_MIB = 1024**2
_LZMA: Any = getattr(getattr(zipfile, "lzma", None), "LZMAError", zlib.error)
"""The error of a method of compression that not every Python has."""
_LONGEST_PATH = 1024
_LONGEST_NAME = 255
"""In bytes: what file systems take."""
_LARGEST_FILE = 16 * 1024 * _MIB
"""In bytes: container images may be part of a package."""
_LARGEST_RATIO = 1000
"""Uncompressed size to compressed size, of files of at least 1 MiB in a zip."""


class Archive(ABC):
    """The files of a package."""

    is_signed = False
    """A signature beside it was checked (SOL004, option 2)."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Return the paths of all files, sorted; links to folders are not followed."""

    @abstractmethod
    def has(self, path: str) -> bool:
        """Return whether the file exists; PackageError where the path leads out of the package."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes; PackageError where it does not exist."""

    @abstractmethod
    def open(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file for a ``with`` block; PackageError where it cannot be read."""

    def close(self) -> None:  # noqa: B027, most close each file at the end of its with block
        """Close the package."""

    def digest(self, path: str, algorithm: str) -> str:
        """Return the hash of a file in lower-case hexadecimal digits."""
        with self.open(path) as file:
            return fetch.digest_of(file, algorithm)

    def sha256(self) -> str:
        """Return the hash of the package: of one file that of its bytes, else of all names and
        hashes."""
        lines = (f"{self.digest(name, 'sha256')}  {name}\n" for name in self.names())
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def open_archive(source: str, options: Options) -> Archive:
    """Open a folder, a zip or a YAML file.

    :param source: its path or URL; ``-`` for standard input. The latter two are read once.
    :raises PackageError: it does not exist, has unsafe entries or exceeds the limits.
    """
    if source == STANDARD_INPUT:
        with _readable(source, "standard input"):
            content = standard_input(options.def_file_bytes)
        return _in_memory(source, "stdin.yaml", content, options)
    path = _download(source, options) if fetch.is_url(source) else Path(source)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise PackageError(f"the package {source} cannot be opened: {problem}") from error
    if stat.S_ISDIR(status.st_mode):
        files = _Folder(source, options)
        if options.render and rendering.is_chart(path):
            files.refuse_links_out()  # Helm follows them
        made = rendering.rendered(source, options) if options.render else None
        if made is not None:
            return _in_memory(source, f"rendered/{path.resolve().name}.yaml", made, options)
        return files
    if not stat.S_ISREG(status.st_mode):
        raise PackageError(
            f"the package {source} is neither a folder nor a file: - stands for standard input"
        )
    if path.name.endswith(MANIFEST_ENDINGS):
        file = _OneFile(source, path.name, status.st_size, partial(open, path, "rb"))
        file.is_signed = signature.check_beside(source, path, options)
        return file
    return _zip(source, path, options)


def _zip(source: str, path: Path, options: Options) -> Archive:
    """Open a package, or the one in a zip with its signature."""
    files = _Zip(source, path, options)
    inner = signature.find_wrapped(files.names())
    with ExitStack() as stack:
        stack.callback(files.closing.close)
        if inner is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX)))
            for name in files.names():
                with files.open(name) as packed, (folder / name).open("wb") as file:
                    shutil.copyfileobj(packed, file, _MIB)
            path = folder / inner
            files = _Zip(source, path, options)
            stack.callback(files.closing.close)
        files.is_signed = signature.check_beside(source, path, options)
        files.closing = stack.pop_all()
    return files


def inside(path: str) -> str:
    """Return the path in its shortest form.

    :raises PackageError: it leads out of the package, is too long, or has characters that are not
        printable.
    """
    is_text = is_printable(path)
    parts = path.encode().split(b"/") if is_text else []
    if not is_text or len(path) > _LONGEST_PATH or max(map(len, parts)) > _LONGEST_NAME:
        raise PackageError(
            f"{path[:80]!a} is not a path in the package: expected at most {_LONGEST_PATH} "
            f"printable characters, with at most {_LONGEST_NAME} bytes in each name, found "
            f"{len(path)} characters"
        )
    shortest = posixpath.normpath(path)
    if not path or shortest.startswith(("/", "../")) or shortest in (".", ".."):
        raise PackageError(
            f'"{path}" is not a path in the package: expected a path relative to its root'
        )
    return shortest


class _Folder(Archive):
    def __init__(self, source: str, options: Options) -> None:
        self.source = source
        self.options = options
        self.root = str(Path(source).resolve())

    def names(self) -> Sequence[str]:
        paths: list[str] = []
        total = 0
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            below = os.path.relpath(folder, self.root)
            for name in files:
                paths.append(os.path.normpath(f"{below}/{name}"))
                total += os.lstat(f"{folder}/{name}").st_size
            _check_totals(self.source, len(paths), total, self.options)
        return sorted(paths)

    def refuse_links_out(self) -> None:
        """Raise PackageError where a link leads out of the package, or a file is no regular one."""
        for name in self.names():
            self._regular(name)
        for folder, folders, _ in os.walk(self.root):
            for name in folders:
                self._locate(os.path.relpath(f"{folder}/{name}", self.root))

    def has(self, path: str) -> bool:
        return os.path.isfile(self._locate(path))

    def size(self, path: str) -> int:
        return self._regular(path)[1]

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        located, _ = self._regular(path)
        with _readable(self.source, path), open(located, "rb") as file:
            yield file

    def _locate(self, path: str) -> str:
        located = self.root
        for name in inside(path).split("/"):
            located = f"{located}/{name}"
            if os.path.islink(located):
                return self._resolve(path)
        return located

    def _resolve(self, path: str) -> str:
        """Return where a path with a link in it leads to."""
        try:
            real = Path(self.root, inside(path)).resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise PackageError(f"{path} in {self.source} is a link to itself") from error
        if not real.is_relative_to(self.root):
            raise PackageError(
                f"{path} in {self.source} is a link that leads out of the package: "
                "replace it with the file itself"
            )
        return str(real)

    def _regular(self, path: str) -> tuple[str, int]:
        """Return where a regular file is, and its size."""
        file = self._locate(path)
        with _readable(self.source, path):
            status = os.stat(file)
        _check_file(self.source, path, stat.S_ISREG(status.st_mode), status.st_size)
        return file, status.st_size


class _OneFile(Archive):
    """A YAML file that is the whole package."""

    def __init__(
        self, source: str, name: str, size: int, opened: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        self.source = source
        self._name = inside(name)
        self._size = size
        self._opened = opened

    def names(self) -> Sequence[str]:
        return [self._name]

    def has(self, path: str) -> bool:
        return inside(path) == self._name

    def size(self, path: str) -> int:
        if not self.has(path):
            raise PackageError(f"{path} in {self.source} cannot be read: no such file")
        return self._size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        _check_file(self.source, path, is_regular=True, size=self.size(path))
        with _readable(self.source, path), self._opened() as file:
            yield file

    def sha256(self) -> str:
        return self.digest(self._name, "sha256")


def _in_memory(source: str, name: str, content: bytes, options: Options) -> Archive:
    limit = options.def_file_bytes
    if len(content) > limit:
        what = "standard input" if source == STANDARD_INPUT else source
        raise PackageError(
            f"{what}: expected at most {size_text(limit)} (option def_file_bytes), found more: "
            "write it to several files of a folder"
        )
    return _OneFile(source, name, len(content), lambda: nullcontext(io.BytesIO(content)))


_DOWNLOADS: dict[str, Path] = {}
_DOWNLOADING = Lock()


def _download(url: str, options: Options) -> Path:
    """Return the file of a URL, which is fetched once; it goes when the process ends."""
    with _DOWNLOADING:
        if url not in _DOWNLOADS:
            folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
            atexit.register(folder.cleanup)
            _DOWNLOADS[url] = _fetch(url, Path(folder.name), options)
    return _DOWNLOADS[url]


def _fetch(url: str, folder: Path, options: Options) -> Path:
    if url.startswith(oci.SCHEME):
        return oci.pull(url, folder, options)
    path = folder / "package"
    with path.open("wb") as file:
        fetch.fetch_into(file, url, replace(options, url_bytes=options.package_bytes))
    name = posixpath.basename(urlsplit(url).path)[-_LONGEST_NAME:]
    return path.rename(folder / name) if name.strip(".") else path


class _Zip(Archive):
    def __init__(self, source: str, path: Path, options: Options) -> None:
        self.source, self.path = source, path
        with ExitStack() as stack:
            try:
                self.file = stack.enter_context(ZipFile(str(path), options.package_files))
                self.zip = stack.enter_context(zipfile.ZipFile(self.file))
            except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
                raise PackageError(
                    f"the package {source} is neither a folder nor a zip file: {error}; unpack "
                    "another archive; the name of a YAML file ends in .yaml, .yml or .json"
                ) from error
            self.file.limit = None
            self.entries = self._check_entries(options)
            self.closing = stack.pop_all()

    def close(self) -> None:
        self.closing.close()

    def names(self) -> Sequence[str]:
        return sorted(self.entries)

    def has(self, path: str) -> bool:
        return inside(path) in self.entries

    def size(self, path: str) -> int:
        return self._entry(path).file_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        entry = self._entry(path)
        with _readable(self.source, path), self.zip.open(entry) as file:
            yield file

    def sha256(self) -> str:
        with _readable(self.source, self.source), self.path.open("rb") as file:
            return fetch.digest_of(file, "sha256")

    def _entry(self, path: str) -> zipfile.ZipInfo:
        entry = self.entries.get(inside(path))
        if entry is None:
            raise PackageError(f"{path} in {self.source} cannot be read: no such file")
        return entry

    def _check_entries(self, options: Options) -> dict[str, zipfile.ZipInfo]:
        infos = [info for info in self.zip.infolist() if not info.is_dir()]
        _check_totals(self.source, len(infos), sum(info.file_size for info in infos), options)
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            path = inside(info.filename)
            is_regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            _check_file(self.source, path, is_regular, info.file_size)
            if path in entries:
                raise PackageError(f"{path} is in {self.source} twice: keep one of them")
            _check_ratio(self.source, info)
            entries[path] = info
        _check_folders(self.source, sorted(entries))
        return entries


@contextmanager
def _readable(source: str, path: str) -> Iterator[None]:
    """Raise a PackageError that names the file, for any error in the ``with`` block."""
    try:
        yield
    # zipfile raises a RuntimeError if a password is needed
    except (RuntimeError, OSError, EOFError, zipfile.BadZipFile, zlib.error, _LZMA) as error:
        problem = getattr(error, "strerror", None) or error
        raise PackageError(f"{path} in {source} cannot be read: {problem}") from error


def _check_totals(source: str, files: int, size: int, options: Options) -> None:
    most_files, most = options.package_files, options.package_bytes
    if files > most_files:
        raise PackageError(
            f"{source}: expected at most {most_files} files (option package_files), found {files}"
        )
    if size > most:
        raise PackageError(
            f"{source}: expected at most {size_text(most)} in all files (option package_bytes), "
            f"found {size_text(size)}"
        )


def _check_folders(source: str, names: Sequence[str]) -> None:
    """Raise PackageError if a file has the name of a folder; the names are sorted."""
    for name in names:
        folder = f"{name}/"
        following = bisect_left(names, folder)
        if following < len(names) and names[following].startswith(folder):
            raise PackageError(
                f"{name} in {source} is a file, and the folder of {names[following]}: rename one"
            )


def _check_file(source: str, path: str, is_regular: bool, size: int) -> None:
    if not is_regular:
        raise PackageError(f"{path} in {source} is not a regular file: replace it with one")
    if size > _LARGEST_FILE:
        raise PackageError(
            f"{path} in {source}: expected at most {size_text(_LARGEST_FILE)}, found "
            f"{size_text(size)}"
        )


def _check_ratio(source: str, info: zipfile.ZipInfo) -> None:
    if info.file_size >= _MIB and info.file_size > info.compress_size * _LARGEST_RATIO:
        raise PackageError(
            f"{info.filename} in {source} expands from {info.compress_size} to "
            f"{info.file_size} bytes, more than {_LARGEST_RATIO} times its size: "
            "it looks like a zip bomb"
        )
