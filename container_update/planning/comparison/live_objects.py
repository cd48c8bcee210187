# SPDX-License-Identifier: Apache-2.0
"""A manifest and its live object: which one stands for it, whether it has all that the manifest
says, and what somebody else wrote into it. Pure."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.planning.comparison.diff import is_empty, named_items

# --- which live Deployment stands in for one that a manifest names ------------------------------
# A Blue-Green change whose new Deployment bears the old one's name has to give it another one while
# both run, and Kubernetes cannot rename it afterwards. An annotation says which manifest it is of.

NAME_ANNOTATION = "container-update/stands-for"
"""On a Deployment: the name that its manifest gives it."""


def live_names(live: Mapping[ObjectKey, Json]) -> dict[ObjectKey, ObjectKey]:
    """Return the identity in a manifest to the identity of the live object that stands in for it.

    An object that has its own name in the cluster needs no stand-in.
    """
    names: dict[ObjectKey, ObjectKey] = {}
    for key, body in live.items():
        if key.kind == "Deployment":
            named = replace(key, name=manifest_name(body))
            if named not in live:
                names[named] = key
    return names


def manifest_name(live: Json) -> str:
    """Return the name that the manifest of a live object has."""
    metadata = live["metadata"]
    return str((metadata.get("annotations") or {}).get(NAME_ANNOTATION) or metadata["name"])


def with_live_name(manifest: Manifest, names: Mapping[ObjectKey, ObjectKey]) -> Manifest:
    """Return the manifest under the identity that its object has in the cluster; its body stays.

    :param names: as :func:`live_names` returns them.
    """
    return replace(manifest, key=names.get(manifest.key, manifest.key))


def rename(body: Json, name: str) -> None:
    """Give a manifest with annotations the name of its live object, and note its own there."""
    metadata = body["metadata"]
    if metadata["name"] != name:
        metadata["annotations"][NAME_ANNOTATION] = metadata["name"]
        metadata["name"] = name


# --- whether it has everything ------------------------------------------------------------------

_QUANTITIES = frozenset(
    {"averageValue", "capacity", "divisor", "hard", "limits", "requests", "sizeLimit"}
)
"""Fields that are quantities, or mappings of them."""
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
_FACTORS = {
    **{
        prefix: Decimal(1000) ** power
        for power, prefix in enumerate(["n", "u", "m", "", *"kMGTPE"], -3)
    },
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
}


def covers(live: Json, manifest: Json) -> bool:
    """Tell whether a live object has everything that its manifest says.

    What else it has does not count: the server adds defaults. The server may also spell a quantity
    differently (1000m, 1). Replicas do not count: an autoscaler or an operator owns them.
    """
    fields = {name: value for name, value in manifest.items() if name not in NOT_CONTENT}
    spec = fields.get("spec")
    if isinstance(spec, dict):
        fields["spec"] = {name: value for name, value in spec.items() if name != "replicas"}
    return _has(fields, live) and all(
        _has(manifest["metadata"].get(name), live["metadata"].get(name))
        for name in ("labels", "annotations")
    )


NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})


def _has(said: Any, live: Any) -> bool:
    if is_empty(said):
        return True
    if isinstance(said, dict):
        return isinstance(live, dict) and all(
            _is_same_quantity(value, live.get(name))
            if name in _QUANTITIES
            else _has(value, live.get(name))
            for name, value in said.items()
        )
    if isinstance(said, list):
        return isinstance(live, list) and _has_items(said, live)
    return str(said) == str(live) or (said == "" and live is None)


def _has_items(said: list[Any], live: list[Any]) -> bool:
    named, live_named = named_items(said), named_items(live)
    if named is not None and live_named is not None:
        return all(
            name in live_named and _has(said[index], live[live_named[name]])
            for name, index in named.items()
        )
    return len(said) == len(live) and all(map(_has, said, live))


def _is_same_quantity(said: Any, live: Any) -> bool:
    """Tell whether a quantity, or each of a mapping of them, is the live one."""
    if isinstance(said, dict):
        return all(_is_same_quantity(said[name], (live or {}).get(name)) for name in said)
    number = _number(said)
    return _has(said, live) if number is None else number == _number(live)


def is_less(one: object, other: object) -> bool:
    """Tell whether a quantity is less than another one; False where one is none."""
    less, more = _number(one), _number(other)
    return less is not None and more is not None and less < more


def _number(value: object) -> Decimal | None:
    """Return what a quantity comes to (API reference, Quantity); None for another text."""
    match = _QUANTITY.fullmatch(str(value))
    try:
        return None if match is None else Decimal(match[1]) * _FACTORS[match[2] or ""]
    except ArithmeticError:
        return None


# --- what somebody else wrote -------------------------------------------------------------------
# Who did is in ``metadata.managedFields``. A manager that wrote anything of what the manifest says
# is one of those who deployed the object, and its other fields are defaults. What all others wrote
# is theirs: an injected CA, aggregated rules, the settings of an operator. Labels and annotations
# have rules of their own. Source: Kubernetes
# documentation, "Server-Side Apply", FieldsV1.

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
        applies = entry.get("operation") == "Apply"
        if not _has_written(fields, said, live, applies):
            yield Manager(str(entry.get("manager")), applies, fields)


def with_fields_of_others(new: Json, old: Json | None, live: Json) -> Json:
    """Return the new manifest with what others wrote into the live object where neither manifest
    says anything."""
    result = copy.deepcopy(new)
    for manager in managers(new if old is None else old, live):
        _lay(result, old, live, manager.fields)
    return result


def _has_written(
    tree: _Tree, said: Any, live: Any, applies: bool, key: Container[str] = ()
) -> bool:
    """Tell whether a manager wrote what is said.

    :param key: the names by which the element of a list is told: who applies anything of it applies
        them too.
    """
    for step, below, value in _parts(tree, live):
        mine, named = _part(said, step), isinstance(step, str)
        if _is_unsaid(mine) or (applies and named and step in key):
            continue
        is_same = mine == value
        if _is_branch(below):
            is_same = _has_written(below, mine, value, applies, () if named else step)
        if is_same:
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
    """Return a value with only the fields that a tree names; all of it where it names none."""
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
