# SPDX-License-Identifier: Apache-2.0
"""Decoding of objects: types are checked, and empty values are removed.

The server decodes into typed structures (:mod:`schema`; a custom resource has a schema of its own,
:mod:`structural`). A number instead of a text is a 400; a null, an empty list or an empty map of
labels counts as absent and is not returned, nor is a field that does not exist.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    ApiError,
    bad_request,
    invalid,
    invalid_value,
    undecodable,
)
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import schema, structural
from container_update.emulator.kubernetes.rules.schema import Type

_TEXT_MAPS = frozenset(
    {
        *("annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector"),
        *("parameters", "stringData", "volumeAttributes"),
    }
)
_DROPPED_WHEN_EMPTY = _TEXT_MAPS | {
    "deprecatedTopology", "disruptedPods", "limits", "max", "min", "overhead", "requests",
}  # fmt: skip
_DROPPED_WHEN_ZERO = frozenset({
    "deprecated", "exclusiveMaximum", "exclusiveMinimum", "failureThreshold", "globalDefault",
    "healthCheckNodePort", "hostIPC", "hostNetwork", "hostPID", "hostPort", "initialDelaySeconds",
    "minReadySeconds", "nodePort", "nullable", "paused", "periodSeconds", "preserveUnknownFields",
    "publishNotReadyAddresses", "readOnly", "stdin", "stdinOnce", "successThreshold", "tty",
    "uniqueItems",
})  # fmt: skip
"""Fields that the server cannot tell from absent ones where they are 0 or false."""
_KEPT_WHEN_EMPTY = frozenset({"endpoints", "rules"})
_KEPT_WHEN_BLANK = frozenset({
    "appProtocol", "default", "image", "imageID", "ingressClassName", "loadBalancerClass",
    "message", "runtimeClassName", "storageClassName", "type", "url", "volumeAttributesClassName",
})  # fmt: skip
"""Fields whose empty text the server can tell from an absent one, or writes as it is."""
_KEPT_WHEN_NULL = frozenset({"lastProbeTime"})


_UNKNOWN = Type("Unknown")
"""Of what no structure is known."""


def read(kind: Resource, body: Json) -> Json:
    """Return a copy of *body* as the server decodes it; raise 400 for a wrong type."""
    stated = body.get("kind")
    if kind.custom and not (stated and body.get("apiVersion")):
        raise bad_request("Object 'Kind' or 'apiVersion' is missing")
    if kind.custom and stated != kind.kind:
        name = (body.get("metadata") or {}).get("name", "")
        error = invalid_value("kind", stated, f"must be {kind.kind}")
        raise invalid(kind.group, str(stated), name, [error])
    if stated and stated != kind.kind:
        raise _unreadable(kind, f"the object provided is a {stated}")
    if kind.custom:
        new = structural.prune(kind, body)
    else:
        problem = _problem(schema.of_kind(kind, body) or _UNKNOWN, body, "", kind.kind)
        if problem:
            raise _unreadable(kind, problem)
        new = _stored_form(kind, without_empty(body))
    return {**new, "kind": kind.kind, "apiVersion": kind.api_version}


def _stored_form(kind: Resource, body: Json) -> Json:
    try:
        return schema.stored_form(kind, body)
    except ApiError as error:
        raise _unreadable(kind, error.message) from error


def _unreadable(kind: Resource, problem: str) -> ApiError:
    return undecodable(kind.kind, kind.versions[0], problem)


def without_empty(value: Any) -> Any:
    """Return a deep copy without what the server does not store because it is empty."""
    if isinstance(value, dict):
        return {key: _field(key, entry) for key, entry in value.items() if _is_kept(key, entry)}
    if isinstance(value, list):
        return [without_empty(entry) for entry in value]
    return value


def _field(key: str, value: Any) -> Any:
    if isinstance(value, dict) and (key in _TEXT_MAPS or _is_map(key, value)):
        return {name: "" if text is None else copy.deepcopy(text) for name, text in value.items()}
    return without_empty(value)


def _is_map(key: str, value: Json) -> bool:
    """Tell whether a selector is a Service's, which has no fields of its own."""
    return key == "selector" and not value.keys() & {"matchLabels", "matchExpressions"}


def _is_kept(key: str, value: Any) -> bool:
    if value is None:
        return key in _KEPT_WHEN_NULL
    if value == []:
        return key in _KEPT_WHEN_EMPTY
    if value == {}:
        return key not in _DROPPED_WHEN_EMPTY
    if value is False or value == 0:
        return key not in _DROPPED_WHEN_ZERO
    return value != "" or key in _KEPT_WHEN_BLANK


# --- types ------------------------------------------------------------------------------------

_PYTHON_TYPES: Mapping[str, type] = {"text": str, "bytes": str, "flag": bool, "number": int}
_GO_TYPES = {"text": "string", "bytes": "[]uint8", "flag": "bool", "number": "int32"}
_INT64 = frozenset(
    {"activeDeadlineSeconds", "runAsGroup", "runAsUser", "terminationGracePeriodSeconds"}
)


def _problem(expected: Type, value: Any, path: str, owner: str) -> str:
    """Return the message of the server's decoder about *value*; '' if it is valid."""
    if value is None:
        return ""
    if expected.is_list or expected.is_map:
        if type(value) is not (list if expected.is_list else dict):
            return _mismatch(value, path, owner, expected)
        entries = value.values() if isinstance(value, dict) else value
        problems = (_problem(expected.element, entry, path, owner) for entry in entries)
        return next(filter(None, problems), "")
    if expected.fields is not None:
        return _structure_problem(expected, expected.fields, value, path, owner)
    python_type = _PYTHON_TYPES.get(expected.name)
    if python_type is not None and type(value) is not python_type:
        return _mismatch(value, path, owner, expected)
    return base64_problem(value) if expected.name == "bytes" else ""


def _structure_problem(
    expected: Type, fields: Mapping[str, Type], value: Any, path: str, owner: str
) -> str:
    if not isinstance(value, dict):
        return _mismatch(value, path, owner, expected)
    problems = (
        _problem(fields[key], entry, f"{path}.{key}", expected.name)
        for key, entry in value.items()
        if key in fields
    )
    return next(filter(None, problems), "")


def _go_type(expected: Type, path: str) -> str:
    name = _GO_TYPES.get(expected.name, f"v1.{expected.name}")
    if path.rpartition(".")[2] in _INT64:
        name = "int64"
    return f"[]{name}" if expected.is_list else f"map[string]{name}" if expected.is_map else name


def _mismatch(value: Any, path: str, owner: str, expected: Type) -> str:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    json_kind = kinds.get(type(value), "object")
    return (
        f"json: cannot unmarshal {json_kind} into Go struct field {owner}{path} of type "
        f"{_go_type(expected, path)}"
    )


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


def base64_problem(text: str) -> str:
    """Return the message of the server's decoder about base64; '' if it is valid."""
    clean = text.replace("\r", "").replace("\n", "")
    body = clean.rstrip("=")
    wrong = _NOT_BASE64.search(body)
    padding = len(clean) - len(body)
    if wrong:
        bad = wrong.start()
    elif len(clean) % 4 == 0 and padding <= 2:
        return ""
    else:
        bad = len(clean) if padding > 2 else len(clean) - len(clean) % 4
    return f"illegal base64 data at input byte {bad}"
