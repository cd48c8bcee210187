"""The metadata of a CSAR (ETSI GS NFV-SOL 004): what it lists, with hashes, and where its VNFD is.

TOSCA.meta and the manifest (``.mf``) are blocks of ``Key: value`` lines. A block about a file
begins with ``Name`` in the one and with ``Source`` in the other; blank lines between blocks are
customary, not needed. A line that begins with a space and holds no key continues the one before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from container_update.model.errors import PackageError

if TYPE_CHECKING:
    from hashlib import _Hash

TOSCA_META = "TOSCA-Metadata/TOSCA.meta"

_KEYS = ("Name", "Source", "Content-Type", "Algorithm", "Hash")
_HEADERS = ("Entry-Definitions", "ETSI-Entry-Manifest", "Entry-Manifest")
_SPELLINGS = {key.lower(): key for key in _KEYS + _HEADERS}
_LONGEST_LINE = 4096
_LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*:(?:\s+(.*))?$")
_ALGORITHM = re.compile(r"sha-?(224|256|384|512)", re.IGNORECASE)


@dataclass(frozen=True)
class Artifact:
    """A file that the metadata lists."""

    path: str
    """In the package, or a URL."""
    content_type: str = ""
    algorithm: str = ""
    """'sha256', 'sha512', ...; '' where the package gives no hash."""
    hash: str = ""
    """In lower-case hexadecimal digits."""

    def digest(self) -> _Hash:
        """An empty digest of the artifact's algorithm."""
        return hashlib.new(self.algorithm)


@dataclass(frozen=True)
class Metadata:
    """What TOSCA.meta or a manifest says."""

    entry_definitions: str = ""
    entry_manifest: str = ""
    artifacts: tuple[Artifact, ...] = ()


def parse(text: bytes, path: str) -> Metadata:
    """What a TOSCA.meta or ``.mf`` says.

    :param path: its name, for messages.
    :raises PackageError: no text, a misspelt key, an incomplete hash or an unknown algorithm.
    """
    headers: dict[str, str] = {}
    blocks: list[_Block] = []
    for key, value, line in _fields(text, path):
        if key in ("Name", "Source"):
            blocks.append(_Block(f"{path}:{line}", {"path": value}))
        elif key in _KEYS and blocks:
            blocks[-1].fields[key] = value
        elif key in _HEADERS and not blocks:
            headers[key] = value
    return Metadata(
        headers.get("Entry-Definitions", ""),
        headers.get("ETSI-Entry-Manifest") or headers.get("Entry-Manifest", ""),
        merged(tuple(block.artifact() for block in blocks)),
    )


def merged(artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Each path once, in order. PackageError where one path is listed with two hashes."""
    by_path: dict[str, Artifact] = {}
    for artifact in artifacts:
        known = by_path.setdefault(artifact.path, artifact)
        if not known.hash:
            by_path[artifact.path] = artifact
        elif artifact.hash and (known.algorithm, known.hash) != (artifact.algorithm, artifact.hash):
            raise PackageError(
                f"{artifact.path} is listed twice, with different hashes: list it once"
            )
    return tuple(by_path.values())


@dataclass(frozen=True)
class _Block:
    where: str
    fields: dict[str, str]

    def artifact(self) -> Artifact:
        path = self.fields["path"]
        algorithm, digest = self.fields.get("Algorithm", ""), self.fields.get("Hash", "")
        if not path:
            raise PackageError(f"{self.where}: expected the path of a file, found nothing")
        if bool(algorithm) != bool(digest):
            given, missing = ("Algorithm", "Hash") if algorithm else ("Hash", "Algorithm")
            raise PackageError(f"{self.where}: {path} has {given} without {missing}")
        if algorithm:
            algorithm = self._algorithm(algorithm)
            self._check_length(algorithm, digest)
        return Artifact(path, self.fields.get("Content-Type", ""), algorithm, digest.lower())

    def _algorithm(self, name: str) -> str:
        match = _ALGORITHM.fullmatch(name)
        if not match:
            raise PackageError(
                f"{self.where}: expected SHA-256 or SHA-512 as Algorithm of "
                f'{self.fields["path"]}, found "{name}"'
            )
        return f"sha{match[1]}"

    def _check_length(self, algorithm: str, digest: str) -> None:
        expected = hashlib.new(algorithm).digest_size * 2
        if not re.fullmatch(rf"[0-9a-fA-F]{{{expected}}}", digest):
            raise PackageError(
                f"{self.where}: expected {expected} hexadecimal digits as Hash of "
                f"{self.fields['path']}, found {len(digest)} characters"
            )


def _fields(text: bytes, path: str) -> Iterator[tuple[str, str, int]]:
    """Key, value and line of each field, continuation lines joined, signatures left out."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise PackageError(f"{path}: expected text in UTF-8") from error
    key, value, begun = "", "", 0
    for number, line in enumerate(lines, 1):
        if line.startswith("-----BEGIN"):  # the signature, in CMS, ends the manifest
            break
        if len(line) > _LONGEST_LINE or not line.replace("\t", " ").isprintable():
            raise PackageError(
                f"{path}:{number}: expected at most {_LONGEST_LINE} printable characters, found "
                f"{len(line)}"
            )
        match = _LINE.match(line)
        if match:
            yield from [(key, _unquoted(value), begun)] if key else []
            key, value, begun = (
                _spelt(match[1], f"{path}:{number}"),
                (match[2] or "").strip(),
                number,
            )
        elif line[:1].isspace() and key and line.strip():
            value += line.strip()
    yield from [(key, _unquoted(value), begun)] if key else []


def _spelt(key: str, where: str) -> str:
    """The key. One that differs from SOL004's by case would be overlooked, so it is refused."""
    expected = _SPELLINGS.get(key.lower(), key)
    if expected != key:
        raise PackageError(f'{where}: expected "{expected}", found "{key}"')
    return key


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
