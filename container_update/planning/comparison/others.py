# SPDX-License-Identifier: Apache-2.0
"""What somebody else wrote into a live object, by its ``metadata.managedFields``. Pure.

A manager that wrote anything of what the manifest says is one of those who deployed the object, and
its other fields are defaults. What all others wrote is theirs: an injected CA, aggregated rules,
the settings of an operator. Labels and annotations have rules of their own. Source: Kubernetes
documentation, "Server-Side Apply", FieldsV1.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json

_DEFAULT_KEYS = {"protocol": "TCP"}
"""What identifies an element of a list also where a manifest leaves it out."""

_Tree = Mapping[str, Any]
"""Fields as FieldsV1 has them: ``f:NAME`` of a mapping, ``k:{...}`` of a list, ``.`` itself."""
_Step = str | Mapping[str, Any]
"""The name of a field, or what identifies an element of a list."""


@dataclass(frozen=True)
class Manager:
    """Somebody who wrote fields of an object, and nothing that its manifest says."""

    name: str
    applies: bool
    """By server-side apply: it says itself that the fields are its own."""
    fields: _Tree


def managers(said: Json, live: Json) -> Iterator[Manager]:
    """Yield the others who wrote into a live object.

    :param said: the manifest that the object was made from.
    """
    for entry in live["metadata"].get("managedFields") or ():
        fields = {**(entry.get("fieldsV1") or {}), "f:status": None}
        if not _has_written(fields, said, live):
            applies = entry.get("operation") == "Apply"
            yield Manager(str(entry.get("manager")), applies, fields)


def with_fields_of_others(new: Json, old: Json | None, live: Json) -> Json:
    """Return the new manifest with what others wrote into the live object where neither manifest
    says anything."""
    result = copy.deepcopy(new)
    for manager in managers(new if old is None else old, live):
        _lay(result, old, live, manager.fields)
    return result


def _has_written(tree: _Tree, said: Any, live: Any) -> bool:
    for step, below, value in _parts(tree, live):
        mine = _part(said, step)
        if not _is_unsaid(mine) and (
            _has_written(below, mine, value) if _is_branch(below) else mine == value
        ):
            return True
    return False


def _lay(into: Any, old: Any, live: Any, tree: _Tree) -> None:
    for step, below, value in _parts(tree, live):
        mine = _part(into, step)
        if not _is_unsaid(mine):
            _lay(mine, _part(old, step), value, below)
        elif not _is_unsaid(_part(old, step)):
            continue  # the new manifest takes it away
        elif isinstance(step, str) and isinstance(into, dict):
            into[step] = _only(value, below)
        elif isinstance(into, list) and "." in below:
            into.append(_only(value, below))


def _only(value: Any, tree: _Tree) -> Any:
    """Return a value with the fields of a tree alone; all of it where that has none."""
    if not _is_branch(tree):
        return copy.deepcopy(value)
    parts = [(step, _only(part, below)) for step, below, part in _parts(tree, value)]
    return dict(parts) if isinstance(value, dict) else [part for _, part in parts]


def _parts(tree: _Tree, live: Any) -> Iterator[tuple[_Step, _Tree, Any]]:
    """Yield the fields and elements of a live value that a tree names, with what is below."""
    for name, below in tree.items():
        sort, _, text = name.partition(":")
        if sort in ("f", "k") and text != "metadata":
            step: _Step = text if sort == "f" else json.loads(text)
            value = _part(live, step)
            if value is not None and isinstance(below, Mapping):
                yield step, below, value


def _part(value: Any, step: _Step) -> Any:
    """Return a field of a mapping or an element of a list; None where there is none."""
    if isinstance(step, str):
        return value.get(step) if isinstance(value, Mapping) else None
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping) and all(
            item.get(name, _DEFAULT_KEYS.get(name)) == key for name, key in step.items()
        ):
            return item
    return None


def _is_branch(tree: _Tree) -> bool:
    return any(step != "." for step in tree)


def _is_unsaid(value: Any) -> bool:
    """Tell whether a manifest leaves a value to others: '' and [] stand for what is filled in."""
    return value is None or value in ("", {}, [])
