# SPDX-License-Identifier: Apache-2.0
"""Decode Kubernetes' protobuf, which ``kubectl create`` sends for some kinds.

Responses are always JSON, which every client accepts. Source: API concepts, "Alternate
representations of resources" (a magic number, then runtime.Unknown), and the protobuf encoding.
The field numbers are those of the published .proto files. Fields that no table has are skipped.
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
    """A field of a message: its name in JSON and its type."""

    name: str
    kind: str | Mapping[int, Field] = "string"
    """'string', 'bytes', 'int', 'bool', 'map', 'bytes-map', 'quantity-map', or the fields of a
    message."""
    repeated: bool = False

    @property
    def is_map(self) -> bool:
        """Whether it is sent as entries with a key and a value."""
        return isinstance(self.kind, str) and self.kind in _MAPS


def _fields(text: str, **messages: Mapping[int, Field]) -> Mapping[int, Field]:
    """Parse '1 name, 2 port:int, 3 args*': numbers, names, types, and a star for repeated fields.

    A field that is named in *messages* has the type of that message. The fields of a message named
    '+' are those of the message around it.
    """
    fields = {}
    for part in text.split(","):
        number, name = part.split()
        name, _, kind = name.partition(":")
        repeated, name = name.endswith("*"), name.rstrip("*")
        fields[int(number)] = Field(name, messages.get(name, kind or "string"), repeated)
    return fields


_METADATA = _fields("1 name, 2 generateName, 3 namespace, 11 labels:map, 12 annotations:map")
_CONTAINER = _fields(
    "1 name, 2 image, 3 command*, 4 args*, 6 ports*, 7 env*, 14 imagePullPolicy",
    ports=_fields("1 name, 2 hostPort:int, 3 containerPort:int, 4 protocol"),
    env=_fields("1 name, 2 value"),
)
_POD_SPEC = _fields("2 containers*, 3 restartPolicy, 8 serviceAccountName", containers=_CONTAINER)
_TEMPLATE = _fields("1 metadata, 2 spec", metadata=_METADATA, spec=_POD_SPEC)
_DEPLOYMENT_SPEC = _fields(
    "1 replicas:int, 2 selector, 3 template",
    selector=_fields("1 matchLabels:map"),
    template=_TEMPLATE,
)
_JOB_SPEC = _fields("1 parallelism:int, 2 completions:int, 6 template", template=_TEMPLATE)
_CRON_JOB_SPEC = _fields("1 schedule, 5 jobTemplate", jobTemplate=_fields("2 spec", spec=_JOB_SPEC))
_INT_OR_STRING = _fields("1 type:int, 2 int:int, 3 string")
_SERVICE_PORT = _fields(
    "1 name, 2 protocol, 3 port:int, 4 targetPort, 5 nodePort:int", targetPort=_INT_OR_STRING
)
_SERVICE_SPEC = _fields("1 ports*, 2 selector:map, 3 clusterIP, 4 type", ports=_SERVICE_PORT)
_DELETE_OPTIONS = _fields(
    "1 gracePeriodSeconds:int, 2 preconditions, 4 propagationPolicy, 5 dryRun*",
    preconditions=_fields("1 uid, 2 resourceVersion"),
)
_ACCESS_REVIEW_SPEC = _fields(
    "1 resourceAttributes",
    resourceAttributes=_fields(
        "1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name"
    ),
)

_RULES = _fields(
    "2 rules*",
    rules=_fields("1 verbs*, 2 apiGroups*, 3 resources*, 4 resourceNames*, 5 nonResourceURLs*"),
)
_BINDING = _fields(
    "2 subjects*, 3 roleRef",
    subjects=_fields("1 kind, 2 apiGroup, 3 name, 4 namespace"),
    roleRef=_fields("1 apiGroup, 2 kind, 3 name"),
)
_BACKEND = _fields(
    "4 service", service=_fields("1 name, 2 port", port=_fields("1 name, 2 number:int"))
)
_PATHS = _fields("1 paths*", paths=_fields("1 path, 2 backend, 3 pathType", backend=_BACKEND))
_INGRESS_SPEC = _fields(
    "1 defaultBackend, 2 tls*, 3 rules*, 4 ingressClassName",
    defaultBackend=_BACKEND,
    tls=_fields("1 hosts*, 2 secretName"),
    rules=_fields("1 host, 2 +", **{"+": _fields("1 http", http=_PATHS)}),
)
_BUDGET_SPEC = _fields(
    "1 minAvailable, 2 selector, 3 maxUnavailable",
    minAvailable=_INT_OR_STRING,
    maxUnavailable=_INT_OR_STRING,
    selector=_fields("1 matchLabels:map"),
)

_KINDS: Mapping[str, Mapping[int, Field]] = {
    "ClusterRole": _RULES,
    "ClusterRoleBinding": _BINDING,
    "ConfigMap": _fields("2 data:map, 3 binaryData:bytes-map, 4 immutable:bool"),
    "CronJob": _fields("2 spec", spec=_CRON_JOB_SPEC),
    "DeleteOptions": _DELETE_OPTIONS,
    "Deployment": _fields("2 spec", spec=_DEPLOYMENT_SPEC),
    "Eviction": _fields("2 deleteOptions", deleteOptions=_DELETE_OPTIONS),
    "Ingress": _fields("2 spec", spec=_INGRESS_SPEC),
    "Job": _fields("2 spec", spec=_JOB_SPEC),
    "Namespace": {},
    "PodDisruptionBudget": _fields("2 spec", spec=_BUDGET_SPEC),
    "PriorityClass": _fields(
        "2 value:int, 3 globalDefault:bool, 4 description, 5 preemptionPolicy"
    ),
    "ResourceQuota": _fields("2 spec", spec=_fields("1 hard:quantity-map, 2 scopes*")),
    "Role": _RULES,
    "RoleBinding": _BINDING,
    "Secret": _fields("2 data:bytes-map, 3 type, 4 stringData:map, 5 immutable:bool"),
    "SelfSubjectAccessReview": _fields("2 spec", spec=_ACCESS_REVIEW_SPEC),
    "SelfSubjectReview": {},
    "SelfSubjectRulesReview": _fields("2 spec", spec=_fields("1 namespace")),
    "Service": _fields("2 spec", spec=_SERVICE_SPEC),
    "ServiceAccount": {},
    "TokenRequest": _fields("2 spec", spec=_fields("4 expirationSeconds:int")),
}
_MAPS: Mapping[str, str | Mapping[int, Field]] = {
    "map": "string",
    "bytes-map": "bytes",
    "quantity-map": _fields("1 string"),
}
_ENVELOPE = _fields("1 type, 2 raw:bytes", type=_fields("1 apiVersion, 2 kind"))


_OPTIONAL = frozenset({"completions", "gracePeriodSeconds", "parallelism", "replicas"})
"""Fields that are sent only if they are set; an unset field of another name is sent as '' or 0."""


def decode(body: bytes) -> Json | None:
    """Return the object in *body*; None for a kind that is not in the tables.

    :raises ValueError: the body is not in this encoding.
    """
    if not body.startswith(_MAGIC):
        raise ValueError("the body does not begin as Kubernetes' protobuf does")
    envelope = _message(body[len(_MAGIC) :], _ENVELOPE)
    kind = envelope.get("type", {}).get("kind", "")
    if kind not in _KINDS:
        return None
    fields = _KINDS[kind]
    if kind != "DeleteOptions":
        fields = {1: Field("metadata", _METADATA), **fields}
    content = _message(base64.b64decode(envelope.get("raw", "")), fields)
    return {**envelope["type"], **content}


def _message(data: bytes, fields: Mapping[int, Field]) -> Json:
    message: Json = {}
    for number, value in _raw_fields(data):
        field = fields.get(number)
        if field is None:
            continue
        read = _value(value, field)
        if field.is_map:
            message.setdefault(field.name, {}).update(read)
        elif field.name == "+":
            message.update(read)
        elif field.repeated:
            message.setdefault(field.name, []).append(read)
        elif read not in ("", 0) or field.name in _OPTIONAL:
            message[field.name] = read
    return message


def _value(value: bytes | int, field: Field) -> Any:
    if isinstance(value, int):
        return bool(value) if field.kind == "bool" else value
    if isinstance(field.kind, Mapping):
        if field.kind is _INT_OR_STRING:
            return _int_or_string(_message(value, _INT_OR_STRING))
        return _message(value, field.kind)
    if field.is_map:
        entry = _message(value, {1: Field("key"), 2: Field("value", _MAPS[str(field.kind)])})
        read = entry.get("value", "")
        return {entry.get("key", ""): read["string"] if isinstance(read, dict) else read}
    return base64.b64encode(value).decode() if field.kind == "bytes" else value.decode()


def _int_or_string(read: Json) -> int | str:
    return str(read.get("string", "")) if read.get("type") else int(read.get("int", 0))


def _raw_fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield field numbers with their bytes, or with the number for a varint."""
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
