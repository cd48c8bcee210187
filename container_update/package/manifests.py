# SPDX-License-Identifier: Apache-2.0
"""The objects of a def-file: YAML text to :class:`~container_update.model.objects.Manifest` values.

A def-file may hold several documents, empty ones, and lists (``kind: List``, or what
``kubectl get -o yaml`` writes); each object becomes a manifest that knows the line of each field.
Objects of unknown kinds are kept. A document without ``apiVersion`` and ``kind`` is something else
(a package may have events, measurements or playbooks beside its manifests), a kustomization, and
what the API server answers but does not store are no parts of a CNF: they are left out, with a note
in the reading.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import (
    DIGEST_ANNOTATION,
    INSTANCE_LABEL,
    FieldPath,
    Json,
    Manifest,
    ObjectKey,
    Source,
    without_server_fields,
)
from container_update.model.options import DEFAULTS, TACKER, Options
from container_update.model.packing import count_marks
from container_update.model.schema import describe
from container_update.package import yaml11
from container_update.package.findings import Finding, Reading, Size
from container_update.package.yaml11 import Document, FieldLines, Yaml11Parser
from container_update.workloads import object_schemas


@dataclass(frozen=True)
class _Part:
    """A part of a def-file that was read."""

    lines_before: int
    size: Size
    manifests: tuple[Manifest, ...]


ReadDocuments = dict[bytes, _Part]
"""What was read before of the def-files of two packages, by digest: a part of both is parsed once.
All of these files have the same namespace and the same limits."""


def parse(  # noqa: PLR0913
    text: bytes,
    path: str,
    default_namespace: str,
    *,
    options: Options = DEFAULTS,
    reading: Reading | None = None,
    known: ReadDocuments | None = None,
) -> tuple[Manifest, ...]:
    """Return the objects of a def-file, in order.

    :param path: the def-file as the package names it, for messages and sources.
    :param default_namespace: the namespace of objects that name none.
    :param known: the parts that were read before, which share the bodies of their manifests with
        this file; becomes those of this file too.
    :raises PackageError: invalid YAML, a limit exceeded, an object without the fields that identify
        it, or a field of a wrong type; with file and line.
    """
    yaml11.check_size(len(text), path, options)
    parser = Yaml11Parser(path, options, reading or Reading())
    parsed = {} if known is None else known
    found: list[Manifest] = []
    for part_text, is_followed in parts(text):
        digest, lines = hashlib.sha256(part_text).digest(), parser.lines_before
        part = parsed.get(digest)
        if part is not None and parser.take(part.size):
            found += _move_down(part, path, lines - part.lines_before)
            continue
        part = parsed[digest] = _part(part_text, parser, default_namespace, is_followed=is_followed)
        found += part.manifests
    return tuple(found)


def _move_down(part: _Part, path: str, lines: int) -> Iterator[Manifest]:
    """Yield manifests with the same bodies, so many lines further down in a file."""
    for manifest in part.manifests:
        line_of = partial(_line_below, manifest.source, lines)
        source = Source(path, manifest.source.line + lines, line_of)
        yield replace(manifest, source=source)


def _line_below(source: Source, lines: int, path: FieldPath) -> int:
    return source.of(path).line + lines


def _part(text: bytes, parser: Yaml11Parser, default_namespace: str, *, is_followed: bool) -> _Part:
    text = _without_surrogates(text)
    before, values, characters = parser.lines_before, parser.nodes, parser.characters
    lines = FieldLines(text, before)
    documents = parser.documents(yaml11.with_line_ends(text), ends_before_another=is_followed)
    manifests = tuple(_manifests(documents, parser, default_namespace, lines))
    if is_followed and not text.endswith(b"\n"):  # JSON follows
        parser.lines_before -= 1  # perhaps in the same line
        if not before:
            parser.reading.note(Finding.note(parser.path, _NOT_SEPARATED, _TO_SEPARATE))
    size = Size(parser.lines_before - before, parser.nodes - values, parser.characters - characters)
    if manifests and not text.endswith(b"\n"):
        again = Yaml11Parser(parser.path, parser.options, Reading())
        *_, by_tacker = _manifests(again.documents(text), again, default_namespace, lines)
        *others, by_kubectl = manifests
        if by_tacker.body != by_kubectl.body:
            body, otherwise = by_kubectl.body, by_tacker.body
            if parser.options.file_end == TACKER:
                body, otherwise = otherwise, body
            manifests = (*others, replace(by_kubectl, body=body, otherwise=otherwise))
    return _Part(before, size, manifests)


def _manifests(
    documents: Iterable[Document], parser: Yaml11Parser, default_namespace: str, lines: FieldLines
) -> Iterator[Manifest]:
    for number, document in enumerate(documents):
        if document.value is None and not document.flaw:
            continue
        source = Source(parser.path, document.line)
        root = _Item(document.value, source, partial(lines.line, number))
        if not _may_be_object(root):
            parser.reading.note(Finding.note(source, _NO_MANIFEST, _AS_INTENDED))
            continue
        if document.flaw:
            raise document.flaw
        for item in _objects(root, document.line_of):
            if _group(item.body) in _ANSWERED_GROUPS:
                parser.reading.note(Finding.note(item.source, _ANSWERED, _AS_INTENDED))
                continue
            if _group(item.body) == _KUSTOMIZE:
                parser.reading.note(Finding.warning(item.source, _NOT_RENDERED, _TO_RENDER))
                continue
            key = _identity(item, default_namespace)
            _check_schema(item, key)
            if HOOK in (item.body["metadata"].get("annotations") or ()):
                parser.reading.note(Finding.warning(item.source, f"{key} {_IS_HOOK}", _NO_HOOKS))
            yield Manifest(key, _stated_part(item.body), replace(item.source, line_of=item.line_of))


_OURS = {"labels": INSTANCE_LABEL, "annotations": DIGEST_ANNOTATION}
"""What this program writes into the metadata of an object; no package decides on it."""


def _stated_part(body: Json) -> Json:
    """Return what an object of a package states; it may be an export (``kubectl get -o yaml``)."""
    stated = without_server_fields(body)
    metadata = stated["metadata"]
    for where, name in _OURS.items():
        if name in (metadata.get(where) or {}):
            metadata[where] = {key: v for key, v in metadata[where].items() if key != name}
    return stated


_TOP_FIELDS = frozenset({"apiVersion", "kind"})
"""Of an object."""
_NO_MANIFEST = "has neither apiVersion nor kind: it is no Kubernetes manifest and is left out"
_ANSWERED = "the API server answers a request of this kind and stores nothing: it is left out"
_NOT_SEPARATED = "has JSON values without separators, which Tacker does not read"
_TO_SEPARATE = "nothing, if Tacker is not to have it; else a line --- between them"
_NOT_RENDERED = "is for kustomize, which is not called for a folder inside: it is left out"
_TO_RENDER = "name its folder, if the manifests that it makes are meant"
_AS_INTENDED = "nothing, if that is intended"
HOOK = "helm.sh/hook"
_IS_HOOK = "is a hook of a Helm chart, and is treated as any other object"
_NO_HOOKS = "leave it out, if it is not meant to stay: helm template --no-hooks"
_MOVED = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Ingress": "networking.k8s.io/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "ReplicaSet": "apps/v1",
}
"""Where a kind of the group ``extensions`` is since Kubernetes 1.16 or 1.22 (Kubernetes
documentation, "Deprecated API Migration Guide"). No server tells that both are the same object."""
_ANSWERED_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
"""Of reviews, most of which have no name."""
_KUSTOMIZE = "kustomize.config.k8s.io"
"""The group of what no API server knows: kustomizations and their components."""


@dataclass(frozen=True)
class _Item:
    """A document, or an object in a list."""

    body: Any
    source: Source
    document_line: Callable[[FieldPath], int]
    """Returns the line of a field of the document."""
    at: FieldPath = ()
    """Where it is in the document."""

    def line_of(self, path: FieldPath) -> int:
        return self.document_line((*self.at, *path))

    def error(self, expected: str, found: str, *path: str | int) -> PackageError:
        """Return the error for a field, or for the whole item."""
        line = self.line_of(path) if path else self.source.line
        return PackageError(f"{self.source.path}:{line}: expected {expected}, found {found}")


def _may_be_object(item: _Item) -> bool:
    """Tell whether a document has a field of an object; PackageError for a list of objects."""
    body = item.body
    if isinstance(body, list):
        if any(isinstance(each, dict) and each.keys() >= _TOP_FIELDS for each in body):
            expected = "a Kubernetes object, such as a List with these items"
            raise item.error(expected, "a list of objects")
        return False
    return isinstance(body, dict) and not _TOP_FIELDS.isdisjoint(body)


def _group(body: Any) -> str:
    version = body.get("apiVersion") if isinstance(body, dict) else None
    return version.partition("/")[0] if isinstance(version, str) else ""


def _objects(item: _Item, line_of: Callable[[object], int]) -> Iterator[_Item]:
    """Yield the object itself, or each object in it if it is a list."""
    body = item.body
    if not isinstance(body, dict):
        raise item.error("a Kubernetes object, which is a mapping", describe(body))
    kind = body.get("kind")
    if not isinstance(kind, str) or not kind:
        found = "none" if kind in (None, "") else describe(kind)
        raise item.error('a Kubernetes object with a "kind"', found, "kind")
    if object_schemas.KIND.first_violation(kind):
        raise item.error('a "kind" of letters and digits', "invalid text", "kind")
    entries = body.get("items")
    if kind == "List" and entries is None:
        return
    if not kind.endswith("List") or not isinstance(entries, list):
        yield item
        return
    for index, entry in enumerate(entries):
        if kind != "List" and isinstance(entry, dict):  # the server leaves both out of its lists
            entry.setdefault("kind", kind.removesuffix("List"))
            entry.setdefault("apiVersion", body.get("apiVersion"))
        at = (*item.at, "items", index)
        source = replace(item.source, line=line_of(entry))
        yield from _objects(replace(item, body=entry, source=source, at=at), line_of)


def _identity(item: _Item, default_namespace: str) -> ObjectKey:
    body: Json = item.body
    metadata = body.get("metadata")
    kind = body["kind"]
    version = body.get("apiVersion")
    if (wrong := object_schemas.API_VERSION.first_violation(version)) is not None:
        raise item.error(f'an "apiVersion" in the {kind}', wrong.found, "apiVersion")
    if str(version).startswith("extensions/") and kind in _MOVED:
        expected = f"{_MOVED[kind]}, where the {kind} is since Kubernetes 1.22 at the latest"
        raise item.error(expected, f"{version}: write the manifest for it", "apiVersion")
    if not isinstance(metadata, dict):
        raise item.error(f'"metadata" with a name in the {kind}', describe(metadata), "metadata")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        hint = (
            " (a generateName names a new object each time: give it a name)"
            if "generateName" in metadata
            else ""
        )
        found = "none" if name in (None, "") else f"{describe(name)}: quote it"
        expected = f'text as "metadata.name" in the {kind}'
        raise item.error(expected, found + hint, "metadata", "name")
    namespace = metadata.get("namespace")
    if not isinstance(namespace, str | None):
        expected = f'text as "metadata.namespace" in the {kind} {name}'
        raise item.error(expected, f"{describe(namespace)}: quote it", "metadata", "namespace")
    return ObjectKey.of(body, default_namespace)


def _check_schema(item: _Item, key: ObjectKey) -> None:
    violation = object_schemas.first_violation(key, item.body)
    if violation is None:
        return
    unquoted = violation.expected == "text" and violation.found != "a mapping"
    raise item.error(
        f'{violation.expected} as "{violation.field}" in the {key.kind}',
        f"{violation.found}{': quote it' if unquoted else ''}",
        *violation.path,
    )


# --- the text -----------------------------------------------------------------------------------

_UNDIVIDED = (b"%", BOM_UTF16_LE, BOM_UTF16_BE)
"""How a line begins after which the file is not divided."""


def parts(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield each part of a YAML file, and whether another document follows.

    A line ``---`` begins a document wherever it is, except that a directive (``%YAML``) is before
    it; of JSON each value is one. A part may hold several documents (``...`` ends one too), or only
    comments.
    """
    part = bytearray()
    is_divided = True
    for line in io.BytesIO(text):
        if line.startswith(b"---") and line[3:4] in b" \t\r\n" and is_divided and part:
            yield from _json_values(bytes(part), is_followed=True)
            part.clear()
        elif line.startswith(_UNDIVIDED):
            is_divided = False
        part += line
    yield from _json_values(bytes(part), is_followed=False)


_NO_SPACE = re.compile(r"\S")
_MOST_VALUES = DEFAULTS.yaml_values
"""Of JSON that is divided: its values are in memory meanwhile."""


def _json_values(part: bytes, *, is_followed: bool) -> Iterator[tuple[bytes, bool]]:
    """Yield each value of a part that is JSON values in a row, as of ``jq``; another part whole."""
    ends = [len(part)]
    if part.lstrip().startswith(b"{") and count_marks(part) <= _MOST_VALUES:
        with suppress(ValueError, RecursionError):
            ends = _ends(part)
    begin = 0
    for end in ends:
        yield part[begin:end], is_followed or end < len(part)
        begin = end


def _ends(part: bytes) -> list[int]:
    """Return where each JSON value of a text ends; ValueError where it has something else."""
    text, decoder = part.decode(), json.JSONDecoder(parse_int=len, parse_float=len)
    sizes, begin = [], 0
    while start := _NO_SPACE.search(text, begin):
        _, end = decoder.raw_decode(text, start.start())
        sizes.append(len(text[begin:end].encode()))
        begin = end
    return [*accumulate(sizes[:-1]), len(part)]


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u[dD][89a-fA-F]..|.)"
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def _without_surrogates(text: bytes) -> bytes:
    """Return JSON without surrogate pairs, which YAML has not; half a pair is read as in Go."""
    if _SURROGATE.search(text) is None:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[bytes]) -> bytes:
    high, low = escape.groups()
    if high is not None:
        return bytes.fromhex((high + low).decode()).decode("utf-16-be").encode()
    return _REPLACEMENT if _SURROGATE.match(escape[0]) else escape[0]
