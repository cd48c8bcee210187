"""The few request bodies that kubectl sends only as protobuf.

``kubectl create configmap``, ``secret``, ``namespace`` and ``serviceaccount`` put their object into the
protobuf form that Kubernetes defines: four bytes of magic, an envelope with the type, and the object.
Field numbers are those of the API's published ``.proto`` files (k8s.io/api/core/v1,
apimachinery/pkg/runtime).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from container_update.model import Json

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Fields = Mapping[int, tuple[str, str]]
"""Number of a field to its name and its form: 'text', 'bool', 'texts' (a map of texts), 'bytes' (a map
of texts to bytes), 'list' (of texts), or the name of another message."""

_MESSAGES: Mapping[str, Fields] = {
    "metadata": {
        1: ("name", "text"),
        2: ("generateName", "text"),
        3: ("namespace", "text"),
        11: ("labels", "texts"),
        12: ("annotations", "texts"),
        14: ("finalizers", "list"),
    },
    "ConfigMap": {
        1: ("metadata", "metadata"),
        2: ("data", "texts"),
        3: ("binaryData", "bytes"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "metadata"),
        2: ("data", "bytes"),
        3: ("type", "text"),
        4: ("stringData", "texts"),
        5: ("immutable", "bool"),
    },
    "Namespace": {1: ("metadata", "metadata")},
    "ServiceAccount": {1: ("metadata", "metadata")},
}
KINDS = tuple(kind for kind in _MESSAGES if kind != "metadata")
"""The kinds that can be read."""


def read(raw: bytes) -> Json | None:
    """The object of a request body, or None where it is of no kind that can be read.

    ValueError where the body is not of the form that it should have.
    """
    if not raw.startswith(_MAGIC):
        raise ValueError("the body does not begin as a Kubernetes object in protobuf does")
    envelope = dict(_fields(raw[len(_MAGIC) :]))
    about = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
    version, kind = about.get(1, ""), about.get(2, "")
    if version != "v1" or kind not in KINDS:
        return None
    body = _message(_MESSAGES[kind], _bytes(envelope.get(2, b"")))
    return {"apiVersion": version, "kind": kind, **body}


def _message(fields: Fields, raw: bytes) -> Json:
    body: Json = {}
    for number, value in _fields(raw):
        name, form = fields.get(number, ("", ""))
        if form == "list":
            body.setdefault(name, []).append(_text(value))
        elif form in ("texts", "bytes"):
            entry = dict(_fields(_bytes(value)))
            content = _bytes(entry.get(2, b""))
            coded = base64.b64encode(content) if form == "bytes" else content
            body.setdefault(name, {})[_text(entry.get(1, b""))] = coded.decode()
        elif form == "bool":
            body[name] = bool(value)
        elif form == "text":
            body[name] = _text(value)
        elif form:
            body[name] = _message(_MESSAGES[form], _bytes(value))
    return body


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value (an int or bytes) of each field of a message."""
    place = 0
    while place < len(raw):
        tag, place = _varint(raw, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = _varint(raw, place)
            yield number, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if wire == _BYTES:
            length, place = _varint(raw, place)
        if length is None or place + length > len(raw):
            raise ValueError("the protobuf of the body is damaged")
        yield number, raw[place : place + length]
        place += length


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(raw):
        byte = raw[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return value, place
    raise ValueError("the protobuf of the body ends within a number")


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("the protobuf of the body has a number where bytes belong")
    return value


def _text(value: Any) -> str:
    return _bytes(value).decode()
