"""Bodies as ``kubectl create`` sends them: Kubernetes' protobuf, for the kinds that it makes.

Answers are always JSON, which every client takes. Source: API concepts, "Alternate representations
of resources" (a magic number, then runtime.Unknown), and the protobuf encoding; the field numbers
are those of the published .proto files. Fields that are not in the tables are passed over.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.emulator.json_type import Json

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


@dataclass(frozen=True)
class Field:
    """One field of a message: its name in JSON and how its bytes are read."""

    name: str
    kind: str | Mapping[int, Field] = "string"
    """'string', 'bytes', 'int', 'bool', 'map', 'bytes map', or the fields of a message."""
    repeated: bool = False


_METADATA: Mapping[int, Field] = {
    1: Field("name"),
    2: Field("generateName"),
    3: Field("namespace"),
    11: Field("labels", "map"),
    12: Field("annotations", "map"),
}
_PORT = {
    1: Field("name"),
    2: Field("hostPort", "int"),
    3: Field("containerPort", "int"),
    4: Field("protocol"),
}
_ENV = {1: Field("name"), 2: Field("value")}
_CONTAINER = {
    1: Field("name"),
    2: Field("image"),
    3: Field("command", repeated=True),
    4: Field("args", repeated=True),
    6: Field("ports", _PORT, repeated=True),
    7: Field("env", _ENV, repeated=True),
    14: Field("imagePullPolicy"),
}
_POD_SPEC = {
    2: Field("containers", _CONTAINER, repeated=True),
    3: Field("restartPolicy"),
    8: Field("serviceAccountName"),
}
_TEMPLATE = {1: Field("metadata", _METADATA), 2: Field("spec", _POD_SPEC)}
_SELECTOR = {1: Field("matchLabels", "map")}
_DEPLOYMENT_SPEC = {
    1: Field("replicas", "int"),
    2: Field("selector", _SELECTOR),
    3: Field("template", _TEMPLATE),
}
_JOB_SPEC = {
    1: Field("parallelism", "int"),
    2: Field("completions", "int"),
    6: Field("template", _TEMPLATE),
}
_CRON_JOB_SPEC = {1: Field("schedule"), 5: Field("jobTemplate", {2: Field("spec", _JOB_SPEC)})}
_INT_OR_STRING = {1: Field("type", "int"), 2: Field("int", "int"), 3: Field("string")}
_SERVICE_PORT = {
    1: Field("name"),
    2: Field("protocol"),
    3: Field("port", "int"),
    4: Field("targetPort", _INT_OR_STRING),
    5: Field("nodePort", "int"),
}
_SERVICE_SPEC = {
    1: Field("ports", _SERVICE_PORT, repeated=True),
    2: Field("selector", "map"),
    3: Field("clusterIP"),
    4: Field("type"),
}
_PRECONDITIONS = {1: Field("uid"), 2: Field("resourceVersion")}
_DELETE_OPTIONS = {
    1: Field("gracePeriodSeconds", "int"),
    2: Field("preconditions", _PRECONDITIONS),
    4: Field("propagationPolicy"),
    5: Field("dryRun", repeated=True),
}
_ATTRIBUTES = {
    1: Field("namespace"),
    2: Field("verb"),
    3: Field("group"),
    4: Field("version"),
    5: Field("resource"),
    6: Field("subresource"),
    7: Field("name"),
}

_KINDS: Mapping[str, Mapping[int, Field]] = {
    "ConfigMap": {
        2: Field("data", "map"),
        3: Field("binaryData", "bytes map"),
        4: Field("immutable", "bool"),
    },
    "CronJob": {2: Field("spec", _CRON_JOB_SPEC)},
    "DeleteOptions": _DELETE_OPTIONS,
    "Deployment": {2: Field("spec", _DEPLOYMENT_SPEC)},
    "Eviction": {2: Field("deleteOptions", _DELETE_OPTIONS)},
    "Job": {2: Field("spec", _JOB_SPEC)},
    "Namespace": {},
    "Secret": {
        2: Field("data", "bytes map"),
        3: Field("type"),
        4: Field("stringData", "map"),
        5: Field("immutable", "bool"),
    },
    "SelfSubjectAccessReview": {2: Field("spec", {1: Field("resourceAttributes", _ATTRIBUTES)})},
    "SelfSubjectRulesReview": {2: Field("spec", {1: Field("namespace")})},
    "Service": {2: Field("spec", _SERVICE_SPEC)},
    "ServiceAccount": {},
    "TokenRequest": {2: Field("spec", {4: Field("expirationSeconds", "int")})},
}


_OPTIONAL = frozenset({"completions", "gracePeriodSeconds", "parallelism", "replicas"})
"""Fields that are sent only if they are set; others are sent as '' or 0 where they are not."""


def decode(body: bytes) -> Json | None:
    """The object in *body*; None where it is of a kind that is not in the tables.

    :raises ValueError: it is not in this encoding.
    """
    if not body.startswith(_MAGIC):
        raise ValueError("the body does not begin as Kubernetes' protobuf does")
    envelope = _message(
        body[len(_MAGIC) :],
        {1: Field("type", {1: Field("apiVersion"), 2: Field("kind")}), 2: Field("raw", "bytes")},
    )
    kind = envelope.get("type", {}).get("kind", "")
    if kind not in _KINDS:
        return None
    fields = _KINDS[kind]
    if kind != "DeleteOptions":
        fields = {1: Field("metadata", _METADATA), **fields}
    content = _message(base64.b64decode(envelope.get("raw", "")), fields)
    return {**envelope["type"], **content}


def _message(data: bytes, fields: Mapping[int, Field]) -> Json:
    found: Json = {}
    for number, value in _raw_fields(data):
        field = fields.get(number)
        if field is None:
            continue
        read = _value(value, field)
        if field.kind in ("map", "bytes map"):
            found.setdefault(field.name, {}).update(read)
        elif field.repeated:
            found.setdefault(field.name, []).append(read)
        elif read not in ("", 0) or field.name in _OPTIONAL:
            found[field.name] = read
    return found


def _value(value: bytes | int, field: Field) -> Any:
    if isinstance(value, int):
        return bool(value) if field.kind == "bool" else value
    if isinstance(field.kind, Mapping):
        if field.kind is _INT_OR_STRING:
            return _int_or_string(_message(value, _INT_OR_STRING))
        return _message(value, field.kind)
    if field.kind in ("map", "bytes map"):
        inner = "string" if field.kind == "map" else "bytes"
        entry = _message(value, {1: Field("key"), 2: Field("value", inner)})
        return {entry.get("key", ""): entry.get("value", "")}
    return base64.b64encode(value).decode() if field.kind == "bytes" else value.decode()


def _int_or_string(read: Json) -> int | str:
    chosen: int | str = read.get("string", "") if read.get("type") else read.get("int", 0)
    return chosen


def _raw_fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Field numbers with their bytes, or their number where it is a varint."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            size, position = _varint(data, position)
            if position + size > len(data):
                raise ValueError("the body ends within a field")
            yield number, data[position : position + size]
            position += size
        else:
            raise ValueError(f"wire type {wire} is not used by Kubernetes")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("the body ends within a number")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return value, position
