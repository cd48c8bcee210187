"""The objects of a def-file: YAML text to :class:`~container_update.model.objects.Manifest` values.

A def-file may hold several documents, empty ones, and lists (``kind: List``, or what
``kubectl get -o yaml`` writes); each object becomes a manifest with the line where it begins.
Objects of unknown kinds are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.options import DEFAULTS, Options
from container_update.package import schema
from container_update.package.yaml11 import Document, Usage, describe, documents


def parse(
    text: bytes,
    path: str,
    default_namespace: str,
    *,
    options: Options = DEFAULTS,
    usage: Usage | None = None,
) -> tuple[Manifest, ...]:
    """Return the objects of a def-file, in order.

    :param text: the content of the file: YAML or JSON.
    :param path: the def-file as the package names it, for messages and sources.
    :param default_namespace: the namespace of objects that name none.
    :param usage: as in :func:`~container_update.package.yaml11.documents`.
    :raises PackageError: invalid YAML, a limit exceeded, an object without the fields that identify
        it, or a field of a wrong type; with file and line.
    """
    manifests = tuple(
        _manifests(documents(text, path, options, usage=usage), path, default_namespace)
    )
    if not manifests or text.endswith(b"\n"):
        return manifests
    as_written = documents(text, path, options, ends_last_line=False)
    *_, last = _manifests(as_written, path, default_namespace)
    if last.body == manifests[-1].body:
        return manifests
    return (*manifests[:-1], replace(manifests[-1], without_line_end=last.body))


def _manifests(read: Iterable[Document], path: str, default_namespace: str) -> Iterator[Manifest]:
    for document in read:
        if document.value is None:
            continue
        for item in _objects(_Item(document.value, path, document.line), document.line_of):
            key = _identity(item, default_namespace)
            _check_schema(item, key, document)
            yield Manifest(key, item.body, Source(path, item.line))


@dataclass(frozen=True)
class _Item:
    body: Any
    path: str
    line: int

    def error(self, expected: str, found: str) -> PackageError:
        return PackageError(f"{self.path}:{self.line}: expected {expected}, found {found}")


def _objects(item: _Item, line_of: Callable[[object], int]) -> Iterator[_Item]:
    """Yield the object itself, or each object in it if it is a list.

    :param line_of: returns the line where a mapping of the document begins.
    """
    body = item.body
    if not isinstance(body, dict):
        raise item.error("a Kubernetes object, which is a mapping", describe(body))
    kind = body.get("kind")
    if not isinstance(kind, str) or not kind:
        found = "none" if kind in (None, "") else describe(kind)
        raise item.error('a Kubernetes object with a "kind"', found)
    if not schema.KIND.pattern.fullmatch(kind):
        raise item.error('a "kind" of letters and digits', "invalid text")
    entries = body.get("items")
    if kind == "List" and entries is None:
        return
    if not kind.endswith("List") or not isinstance(entries, list):
        yield item
        return
    for entry in entries:
        if kind != "List" and isinstance(entry, dict):  # the server leaves both out of its lists
            entry.setdefault("kind", kind.removesuffix("List"))
            entry.setdefault("apiVersion", body.get("apiVersion"))
        yield from _objects(_Item(entry, item.path, line_of(entry)), line_of)


def _identity(item: _Item, default_namespace: str) -> ObjectKey:
    body: Json = item.body
    metadata = body.get("metadata")
    kind = body["kind"]
    version = body.get("apiVersion")
    if not isinstance(version, str) or not schema.API_VERSION.pattern.fullmatch(version):
        found = "invalid text" if isinstance(version, str) else describe(version)
        raise item.error(f'an "apiVersion" in the {kind}', found)
    if not isinstance(metadata, dict):
        raise item.error(f'"metadata" with a name in the {kind}', describe(metadata))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        hint = (
            " (a generateName names a new object each time)" if "generateName" in metadata else ""
        )
        found = "none" if name in (None, "") else f"{describe(name)}: quote it"
        raise item.error(f'text as "metadata.name" in the {kind}', found + hint)
    namespace = metadata.get("namespace")
    if not isinstance(namespace, str | None):
        raise item.error(
            f'text as "metadata.namespace" in the {kind} {name}', f"{describe(namespace)}: quote it"
        )
    return ObjectKey.of(body, default_namespace)


def _check_schema(item: _Item, key: ObjectKey, document: Document) -> None:
    violation = schema.first_violation(key, item.body)
    if violation is None:
        return
    line = document.line_of(violation.parent)
    unquoted = violation.expected == "text" and violation.found != "a mapping"
    raise PackageError(
        f'{item.path}:{line}: expected {violation.expected} as "{violation.field}" in the '
        f"{key.kind}, found {violation.found}{': quote it' if unquoted else ''}"
    )
