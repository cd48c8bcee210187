# SPDX-License-Identifier: Apache-2.0
"""Our schemas as JSON Schema, for the readers of the OpenAPI document: nothing is checked by it."""

from __future__ import annotations

from typing import Any

from container_update.model.objects import Json
from container_update.model.schema import (
    AnyOf,
    Empty,
    Fields,
    ListOf,
    MapOf,
    Number,
    Schema,
    Text,
    or_null,
)

_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def json_schema(schema: Schema) -> Json:
    """Return a schema as JSON Schema."""
    described = {"description": schema.description}
    if isinstance(schema, AnyOf):
        return {**described, "anyOf": [json_schema(each) for each in schema.alternatives]}
    if isinstance(schema, Number):
        bounds = {"minimum": schema.least, "maximum": schema.most}
        return {**described, "type": "integer" if schema.is_whole else "number", **bounds}
    return {**described, "type": _TYPES[schema.type], **_more(schema)}


def _more(schema: Schema) -> Json:
    """Return what JSON Schema says about what is in a value."""
    more: dict[str, Any] = {}
    if isinstance(schema, Text):
        more["pattern"] = f"^{schema.pattern}$"
        more |= {} if schema.longest is None else {"maxLength": schema.longest}
    elif isinstance(schema, ListOf):
        more |= {"items": json_schema(schema.item), "minItems": schema.least}
    elif isinstance(schema, Empty):
        more["maxProperties"] = 0
    elif isinstance(schema, MapOf) and schema.value:
        value = or_null(schema.value) if schema.nullable else schema.value
        more["additionalProperties"] = json_schema(value)
    elif isinstance(schema, Fields):
        more["properties"] = {name: json_schema(each) for name, each in schema.fields.items()}
        more["required"] = [name for name in schema.fields if name in schema.required]
        if schema.whole:
            more |= {"title": schema.whole, "additionalProperties": False}
    return more
