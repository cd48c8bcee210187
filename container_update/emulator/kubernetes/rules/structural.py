# SPDX-License-Identifier: Apache-2.0
"""Objects of CustomResourceDefinitions: what their schema removes, fills in and refuses.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions". Not
read: what combines schemas (``anyOf``, ``not``, ...), formats and rules in CEL.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    invalid_value,
    required_error,
    unsupported_error,
)
from container_update.emulator.kubernetes.resources import Resource

_OWN = frozenset({"apiVersion", "kind", "metadata"})
"""The fields of every object, whatever its schema has."""
_KEEPS = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"


def prune(kind: Resource, body: Json) -> Json:
    """Return a copy without the fields that the schema of the body's version does not have."""
    new: Json = _prune(_root(kind, body), body, "", [])
    return new


def unknown(kind: Resource, body: Json) -> list[str]:
    """Return the paths of the fields that :func:`prune` removes."""
    paths: list[str] = []
    _prune(_root(kind, body), body, "", paths)
    return paths


def fill_in(kind: Resource, new: Json) -> None:
    """Write the schema's defaults into an object."""
    _fill_in(_root(kind, new), new)


def errors(kind: Resource, new: Json) -> list[FieldError]:
    """Return what is wrong with an object by its schema."""
    return list(_errors(_root(kind, new), new, ""))


def _root(kind: Resource, body: Json) -> Json:
    version = str(body.get("apiVersion") or kind.api_version).rpartition("/")[2]
    return {**kind.schemas.get(version, {_KEEPS: True}), _EMBEDDED: True}


def _prune(schema: Json, value: Any, path: str, removed: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {_KEEPS: True}
        return [_prune(items, entry, f"{path}[{n}]", removed) for n, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    new: Json = {}
    for key, entry in value.items():
        place = f"{path}.{key}" if path else key
        field = (schema.get("properties") or {}).get(key)
        if key in _OWN and schema.get(_EMBEDDED):
            new[key] = copy.deepcopy(entry)
        elif entry is None and _means_absent(field):
            continue
        elif (below := _below(schema, key)) is not None:
            new[key] = _prune(below, entry, place, removed)
        else:
            removed.append(place)
    return new


def _means_absent(field: Json | None) -> bool:
    """Tell whether null in a field stands for nothing, and no default takes its place."""
    return field is not None and not field.get("nullable") and "default" not in field


def _below(schema: Json, key: str) -> Json | None:
    """Return the schema of a field; None where there is no such field."""
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    if key in fields:
        return dict(fields[key])
    if isinstance(others, dict):
        return others
    return {_KEEPS: True} if others or schema.get(_KEEPS) else None


def _fill_in(schema: Json, value: Any) -> None:
    if isinstance(value, list):
        for entry in value:
            _fill_in(schema.get("items") or {}, entry)
    elif isinstance(value, dict):
        for key, field in (schema.get("properties") or {}).items():
            is_null = key in value and value[key] is None and not field.get("nullable")
            if "default" in field and (key not in value or is_null):
                value[key] = copy.deepcopy(field["default"])
        for key, entry in value.items():
            if not (key in _OWN and schema.get(_EMBEDDED)):
                _fill_in(_below(schema, key) or {}, entry)


# --- validation ---------------------------------------------------------------------------------

_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def _errors(schema: Json, value: Any, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    if wrong := _type_error(schema, value, path):
        yield wrong
        return
    if (allowed := schema.get("enum")) and value not in allowed:
        yield unsupported_error(path, value, allowed)
    if isinstance(value, dict):
        yield from _object_errors(schema, value, path)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _errors(schema.get("items") or {}, entry, f"{path}[{number}]")
    yield from (
        invalid_value(path, value, f"{path} in body {why}") for why in _beyond(schema, value)
    )


def _object_errors(schema: Json, value: Json, path: str) -> Iterator[FieldError]:
    def place(key: str) -> str:
        return f"{path}.{key}" if path else key

    yield from (
        required_error(place(key)) for key in schema.get("required") or () if key not in value
    )
    for key, entry in value.items():
        if not (key in _OWN and schema.get(_EMBEDDED)):
            yield from _errors(_below(schema, key) or {}, entry, place(key))


def _type_error(schema: Json, value: Any, path: str) -> FieldError | None:
    expected = schema.get("type")
    types = (int, str) if schema.get(_INT_OR_STRING) else _TYPES.get(str(expected), ())
    is_wrong = bool(types) and (
        not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
    )
    if not is_wrong:
        return None
    found = next((name for name, each in _TYPES.items() if isinstance(value, each)), "null")
    why = f'{path} in body must be of type {expected or "integer,string"}: "{found}"'
    return FieldError("FieldValueTypeInvalid", path, f'Invalid value: "{found}": {why}')


def _beyond(schema: Json, value: Any) -> Iterator[str]:
    """Yield which bounds of a schema a value exceeds."""
    if isinstance(value, str):
        with contextlib.suppress(re.error):  # Go's expressions are not quite Python's
            if (pattern := schema.get("pattern")) and not re.search(pattern, value):
                yield f"should match '{pattern}'"
        if len(value) < schema.get("minLength", 0):
            yield f"should be at least {schema['minLength']} chars long"
        if len(value) > schema.get("maxLength", len(value)):
            yield f"should be at most {schema['maxLength']} chars long"
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"should have at least {schema['minItems']} items"
        if len(value) > schema.get("maxItems", len(value)):
            yield f"should have at most {schema['maxItems']} items"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield f"should be greater than or equal to {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield f"should be less than or equal to {schema['maximum']}"
