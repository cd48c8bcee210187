# SPDX-License-Identifier: Apache-2.0
"""Who owns which field: ``metadata.managedFields``, and the merge of a server-side apply.

A set of fields is a set of paths whose steps are written as in FieldsV1: ``f:spec``,
``k:{"name":"main"}`` for an element of a list, ``v:"x"`` for one of a set, and a last ``.`` for an
element itself. Source: Kubernetes documentation, "Server-Side Apply".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import schema
from container_update.emulator.kubernetes.rules.schema import Type

Path = tuple[str, ...]

APPLY, UPDATE = "Apply", "Update"
_UNTYPED = Type("any")
_DEFAULT_KEYS = {"protocol": "TCP"}
"""Fields that identify an element also where a body leaves them out."""
_OWN_FIELDS = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
"""The fields of the metadata that have owners."""


@dataclass(frozen=True)
class FieldManager:
    """An owner of fields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells two entries apart."""
        return self.name, self.operation, self.subresource

    def __str__(self) -> str:
        """Return how a conflict names it."""
        text = compact(self.name)
        text += f' with subresource "{self.subresource}"' if self.subresource else ""
        if self.operation == UPDATE:
            text += f" using {self.api_version} at {self.time}"
        return text


Owners = dict[FieldManager, frozenset[Path]]


def root_of(kind: Resource) -> Type:
    """Return the type by which objects of a kind are merged; of custom ones all lists are whole."""
    return _UNTYPED if kind.custom else Type(kind.kind)


def leaves(kind: Resource, obj: Json) -> dict[Path, Any]:
    """Return the fields of an object that can have owners, with their values."""
    hidden = {"apiVersion", "kind", "metadata", *({"status"} if kind.has_status else ())}
    body = {key: value for key, value in obj.items() if key not in hidden}
    metadata = obj.get("metadata") or {}
    owned = {key: metadata[key] for key in metadata if key in _OWN_FIELDS}
    return dict(_leaves(root_of(kind), body | ({"metadata": owned} if owned else {}), ()))


def _leaves(kind: Type, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not kind.is_whole and not kind.is_list:
        for key, entry in value.items():
            yield from _leaves(_below(kind, key), entry, (*path, f"f:{key}"))
    elif isinstance(value, list) and kind.keys:
        for entry in value:
            place = (*path, _key_step(kind, entry))
            yield (*place, "."), None
            yield from _leaves(replace(kind.element, is_whole=False), entry, place)
    elif isinstance(value, list) and kind.is_set:
        yield from (((*path, f"v:{compact(entry)}"), entry) for entry in value)
    elif path:
        yield path, value


def _below(kind: Type, key: str) -> Type:
    if kind.is_map:
        return kind.element
    return (kind.fields or {}).get(key, _UNTYPED)


def _key_step(kind: Type, entry: Json) -> str:
    keys = {key: entry.get(key, _DEFAULT_KEYS.get(key)) for key in sorted(kind.keys)}
    return f"k:{compact({key: value for key, value in keys.items() if value is not None})}"


# --- managedFields ------------------------------------------------------------------------------


def owners_of(obj: Json | None) -> Owners:
    """Return who owns which fields of an object."""
    entries = ((obj or {}).get("metadata") or {}).get("managedFields") or ()
    return {
        FieldManager(
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry.get("subresource", ""),
            entry.get("time", ""),
        ): frozenset(_paths(entry["fieldsV1"], ()))
        for entry in entries
    }


def entries_of(owners: Owners) -> list[Json]:
    """Return the entries of ``managedFields``; who owns nothing has none."""
    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "time": manager.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(fields),
            **({"subresource": manager.subresource} if manager.subresource else {}),
        }
        for manager, fields in owners.items()
        if fields
    ]


def _paths(tree: Json, path: Path) -> Iterator[Path]:
    if not tree:
        yield path
    for step, below in tree.items():
        yield from _paths(below, (*path, step))


def _tree(paths: Iterable[Path]) -> Json:
    tree: Json = {}
    for path in sorted(paths):
        place = tree
        for step in path:
            place = place.setdefault(step, {})
    return tree


# --- writes -------------------------------------------------------------------------------------


def after_update(kind: Resource, manager: FieldManager, old: Json | None, new: Json) -> list[Json]:
    """Return the entries after *manager* wrote *new*: it owns what it has changed."""
    now = leaves(kind, new)
    changed = _changed_paths(leaves(kind, old or {}), now)
    known = {other: fields & now.keys() for other, fields in owners_of(old).items()}
    kept = (fields for other, fields in known.items() if other.identity == manager.identity)
    return _entries_after(manager, next(kept, frozenset()) | changed, known, changed)


def after_apply(
    kind: Resource, manager: FieldManager, old: Json | None, applied: Json
) -> list[Json]:
    """Return the entries after *applied* was applied: its manager owns all that it names."""
    wanted = leaves(kind, applied)
    changed = _changed_paths(leaves(kind, old or {}), wanted)
    return _entries_after(manager, frozenset(wanted), owners_of(old), changed)


def _changed_paths(before: Mapping[Path, Any], now: Mapping[Path, Any]) -> frozenset[Path]:
    return frozenset(p for p, value in now.items() if p not in before or before[p] != value)


def _entries_after(
    manager: FieldManager, mine: frozenset[Path], known: Owners, changed: frozenset[Path]
) -> list[Json]:
    """Return the entries where *manager* owns *mine*, and no other manager what it has changed."""
    owners: Owners = {}
    mine_at = replace(manager, time=stamp())
    for other, fields in known.items():
        if other.identity != manager.identity:
            owners[other] = fields - changed
        elif fields == mine and not changed:
            mine_at = other
    return entries_of({mine_at: mine, **owners})


@dataclass(frozen=True)
class Conflict:
    """A field that an apply would change, and that another manager owns."""

    manager: FieldManager
    path: Path

    @property
    def field(self) -> str:
        """The path as a conflict shows it: ``.spec.containers[name="a"].image``."""
        return "".join(map(_shown, self.path))


def _shown(step: str) -> str:
    kind, _, text = step.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        pairs = (f"{key}={compact(value)}" for key, value in json.loads(text).items())
        return f"[{','.join(pairs)}]"
    return f"[={text}]" if kind == "v" else ""


def conflicts(kind: Resource, manager: FieldManager, live: Json, applied: Json) -> list[Conflict]:
    """Return the fields of others to which *applied* gives another value."""
    now, wanted = leaves(kind, live), leaves(kind, applied)
    changed = {path for path, value in wanted.items() if path in now and now[path] != value}
    return [
        Conflict(other, path)
        for other, fields in owners_of(live).items()
        if other.identity != manager.identity
        for path in sorted(fields & changed)
    ]


def merge(kind: Resource, manager: FieldManager, live: Json, applied: Json) -> Json:
    """Return *live* with what is applied; what its manager applied before and no other manager owns
    goes."""
    root = root_of(kind)
    result: Json = _merge(root, live, applied)
    wanted, owners = leaves(kind, applied), owners_of(live)
    others = {
        path
        for other, fields in owners.items()
        if other.identity != manager.identity
        for path in fields
    }
    for other, fields in owners.items():
        if other.identity == manager.identity:
            # an element goes before its fields, or its keys would be gone and it would stay
            for path in sorted(fields - wanted.keys() - others):
                result = _without(root, result, path)
    return result


def _merge(kind: Type, live: Any, applied: Any) -> Any:
    if isinstance(applied, dict) and isinstance(live, dict) and not kind.is_whole:
        fresh = {
            key: _merge(_below(kind, key), live[key], value) if key in live else value
            for key, value in applied.items()
        }
        return {**live, **fresh}
    if isinstance(applied, list) and isinstance(live, list) and kind.keys:
        element = replace(kind.element, is_whole=False)
        places = {_key_step(kind, entry): entry for entry in live}
        for entry in applied:
            step = _key_step(kind, entry)
            places[step] = _merge(element, places[step], entry) if step in places else entry
        return list(places.values())
    if isinstance(applied, list) and isinstance(live, list) and kind.is_set:
        return [*live, *(entry for entry in applied if entry not in live)]
    return applied


def _without(kind: Type, value: Any, path: Path) -> Any:
    """Return *value* without the field at *path*."""
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return _without_field(kind, value, step[2:], rest)
    if not isinstance(value, list):
        return value
    if step.startswith("v:"):
        return [entry for entry in value if f"v:{compact(entry)}" != step]
    if rest == (".",):
        return [entry for entry in value if _key_step(kind, entry) != step]
    element = replace(kind.element, is_whole=False)
    return [
        _without(element, entry, rest) if _key_step(kind, entry) == step else entry
        for entry in value
    ]


def _without_field(kind: Type, value: Json, key: str, rest: Path) -> Json:
    if key not in value or rest:
        below = {key: _without(_below(kind, key), value[key], rest)} if key in value else {}
        return {**value, **below}
    return {name: entry for name, entry in value.items() if name != key}


def undeclared_field(kind: Resource, applied: Json) -> str:
    """Return which field of *applied* the kind does not have, '' for none."""
    return ", ".join(
        f".{path}: field not declared in schema" for path in schema.unknown(kind, applied)
    )
