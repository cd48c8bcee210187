# SPDX-License-Identifier: Apache-2.0
"""The metadata of a CSAR (ETSI GS NFV-SOL 004): its files with their hashes, and its VNFD.

TOSCA.meta and the manifest (``.mf``) are blocks of ``Key: value`` lines. A block about a file
begins with ``Name`` in TOSCA.meta and with ``Source`` in a manifest; blank lines between blocks are
usual but not required. A line that begins with a space and has no key continues the line before.
Keys are read in any case: Tacker ignores the blocks of files without a hash, in which published
packages spell them freely.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from container_update.model.errors import PackageError
from container_update.model.objects import Source
from container_update.model.schema import is_printable
from container_update.package.fetch import is_url
from container_update.package.findings import Finding

_MOST_ENTRIES = 20_000
"""Files that a package lists."""

TOSCA_META = "TOSCA-Metadata/TOSCA.meta"

_KEYS = ("Name", "Source", "Content-Type", "Algorithm", "Hash", "Signature", "Certificate")
_HEADERS = (
    *("Entry-Definitions", "ETSI-Entry-Manifest", "Entry-Manifest"),
    *("ETSI-Entry-Certificate", "Entry-Certificate"),
)
_SPELLINGS = {key.lower(): key for key in _KEYS + _HEADERS}
_LONGEST_LINE = 4096
_LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*:(?:\s+(.*))?$")
_ALGORITHM = re.compile(r"sha-?(224|256|384|512)", re.IGNORECASE)


@dataclass(frozen=True)
class Signed:
    """What the metadata says of a file's own signature."""

    signature: str
    """The path of the file with it."""
    certificate: str
    """The path of the certificate of who signed; '' where the signature has it."""
    at: str = field(compare=False)
    """File and line of the former."""


@dataclass(frozen=True)
class Artifact:
    """A file that the metadata lists."""

    path: str
    """A path in the package, or a URL."""
    content_type: str = ""
    algorithm: str = ""
    """'sha256', 'sha512', ...; '' if the package lists no hash."""
    hash: str = ""
    """In lower-case hexadecimal digits."""
    hash_at: str = ""
    """File and line of the hash."""
    signed: Signed | None = None

    @property
    def file(self) -> str:
        """The path in its shortest form, the same for every spelling; a URL as it is."""
        return shortest(self.path)


@dataclass(frozen=True)
class Metadata:
    """The content of TOSCA.meta or of a manifest."""

    entry_definitions: str = ""
    entry_manifest: str = ""
    entry_certificate: str = ""
    """Of who signed the manifest."""
    artifacts: tuple[Artifact, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What is unusual in it."""


def shortest(path: str) -> str:
    """Return a path in its shortest form, a URL as it is."""
    return path if is_url(path) else posixpath.normpath(path)


def parse(text: bytes, path: str) -> Metadata:
    """Parse a TOSCA.meta or a manifest.

    :raises PackageError: not text, an incomplete hash, an unknown algorithm, or too many entries.
    """
    headers: dict[str, str] = {}
    blocks: list[tuple[str, dict[str, str]]] = []
    respelt: dict[str, Finding] = {}
    for written, value, line in _fields(text, path):
        key = _SPELLINGS.get(written.lower(), written)
        if key != written:
            message = f'the key "{written}" is read as "{key}", as SOL004 spells it'
            note = Finding.note(Source(path, line), message, f'write "{key}"')
            respelt.setdefault(written, note)
        if key in ("Name", "Source"):
            if len(blocks) == _MOST_ENTRIES:
                raise PackageError(
                    f"{path}:{line}: expected at most {_MOST_ENTRIES} entries: list fewer files"
                )
            blocks.append((f"{path}:{line}", {"path": value}))
        elif key in _KEYS and blocks:
            blocks[-1][1].update({key: value, f"{key} at": f"{path}:{line}"})
        elif key in _HEADERS and not blocks:
            headers[key] = value and shortest(value)
    return Metadata(
        headers.get("Entry-Definitions", ""),
        headers.get("ETSI-Entry-Manifest") or headers.get("Entry-Manifest", ""),
        headers.get("ETSI-Entry-Certificate") or headers.get("Entry-Certificate", ""),
        merge(tuple(_artifact(location, block) for location, block in blocks)),
        tuple(respelt.values()),
    )


def signature_in(manifest: bytes) -> tuple[bytes, bytes]:
    """Return what a manifest says, and the signature of that at its end; b'' where it has none."""
    begin = re.search(rb"^-----BEGIN (CMS|PKCS7)-----", manifest, re.MULTILINE)
    return (manifest[: begin.start()], manifest[begin.start() :]) if begin else (manifest, b"")


def merge(artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Return each file once, in order, as it is spelled first with a hash.

    :raises PackageError: one file is listed with two hashes, or two signatures.
    """
    by_file: dict[str, Artifact] = {}
    for artifact in artifacts:
        first = by_file.setdefault(artifact.file, artifact)
        if not first.hash:
            by_file[artifact.file] = replace(artifact, signed=artifact.signed or first.signed)
        elif artifact.hash and (first.algorithm, first.hash) != (artifact.algorithm, artifact.hash):
            raise PackageError(
                f"{artifact.path} is listed twice, with different hashes: list it once"
            )
        elif not first.signed:
            by_file[artifact.file] = replace(first, signed=artifact.signed)
        if first.signed and artifact.signed not in (None, first.signed):
            raise PackageError(
                f"{artifact.path} is listed twice, with different signatures: list it once"
            )
    return tuple(by_file.values())


def _artifact(location: str, block: Mapping[str, str]) -> Artifact:
    path = block["path"]
    algorithm, digest = block.get("Algorithm", ""), block.get("Hash", "")
    if not path:
        raise PackageError(f"{location}: expected the path of a file, found nothing")
    if bool(algorithm) != bool(digest):
        given, missing = ("Algorithm", "Hash") if algorithm else ("Hash", "Algorithm")
        raise PackageError(f"{location}: {path} has {given} without {missing}: add it")
    if algorithm:
        match = _ALGORITHM.fullmatch(algorithm)
        if not match:
            raise PackageError(
                f"{location}: expected SHA-256 or SHA-512 as Algorithm of {path}, found "
                f'"{algorithm}"'
            )
        algorithm = f"sha{match[1]}"
        expected = int(match[1]) // 4
        if not re.fullmatch(rf"[0-9a-fA-F]{{{expected}}}", digest):
            raise PackageError(
                f"{location}: expected {expected} hexadecimal digits as Hash of {path}, found "
                f"{len(digest)} characters"
            )
    at = block.get("Hash at", "")
    kind = block.get("Content-Type", "")
    return Artifact(path, kind, algorithm, digest.lower(), at, _signature(path, block))


def _signature(path: str, block: Mapping[str, str]) -> Signed | None:
    for key in ("Signature", "Certificate"):
        if not block.get(key, key):
            raise PackageError(f"{block[f'{key} at']}: expected the {key} of {path}, found nothing")
    if "Certificate" in block and "Signature" not in block:
        raise PackageError(
            f"{block['Certificate at']}: {path} has Certificate without Signature: add it"
        )
    if "Signature" not in block:
        return None
    return Signed(block["Signature"], block.get("Certificate", ""), block["Signature at"])


def _fields(text: bytes, path: str) -> Iterator[tuple[str, str, int]]:
    """Yield key, value and line of each field before the signature."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise PackageError(f"{path}: expected text in UTF-8") from error
    key, first_line = "", 0
    value: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("-----BEGIN"):  # the signature, in CMS, ends the manifest
            break
        if len(line) > _LONGEST_LINE or not is_printable(line.replace("\t", " ")):
            raise PackageError(
                f"{path}:{number}: expected at most {_LONGEST_LINE} printable characters, found "
                f"{len(line)} characters"
            )
        if match := _LINE.match(line):
            if key:
                yield key, _unquote("".join(value)), first_line
            key, value, first_line = match[1], [(match[2] or "").strip()], number
        elif line[:1].isspace():
            value.append(line.strip())
    if key:
        yield key, _unquote("".join(value)), first_line


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
