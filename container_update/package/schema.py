"""The shape of what an update reads: which fields of an object are text, lists or mappings.

The API server would refuse most of these too, but only in the middle of an update; and names make
up URLs and lines on a terminal, so they are held to what Kubernetes allows. Fields that an update
does not read are not looked at. Source: Kubernetes API reference; "Object Names and IDs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from container_update.model.objects import Json, ObjectKey
from container_update.package.yaml11 import describe


@dataclass(frozen=True)
class Wrong:
    """A field that has another shape than it should."""

    field: str
    """Its path: 'spec.containers[0].name'."""
    expected: str
    found: str
    inside: Any
    """The mapping or list that it stands in."""


@dataclass(frozen=True)
class _Place:
    """Where a value stands."""

    path: str = ""
    inside: Any = None

    def wrong(self, expected: str, found: str) -> Wrong:
        return Wrong(self.path, expected, found, self.inside)


class Shape(Protocol):
    """What a value should be like; a missing one (null) is never asked."""

    @property
    def what(self) -> str:
        """The shape in words."""

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """Everything that is wrong with a value."""


@dataclass(frozen=True)
class Plain:
    """A value of a type."""

    type: type
    what: str

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """It has another type."""
        if type(value) is not self.type:
            yield place.wrong(self.what, describe(value))


@dataclass(frozen=True)
class Text:
    """A text of a certain form."""

    form: re.Pattern[str]
    what: str

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """It is no text, or has another form."""
        if not isinstance(value, str):
            yield place.wrong(self.what, describe(value))
        elif not self.form.fullmatch(value):
            yield place.wrong(self.what, "another text")


@dataclass(frozen=True)
class Many:
    """A list of things of one shape, none of them missing."""

    item: Shape
    what: str = "a list"

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """It is no list, or an item has another shape."""
        if not isinstance(value, list):
            yield place.wrong(self.what, describe(value))
            return
        for index, item in enumerate(value):
            there = _Place(f"{place.path}[{index}]", value)
            yield from _needed(item, self.item, there)


@dataclass(frozen=True)
class Each:
    """A mapping with keys of one form and values of one shape, or of any."""

    key: Text
    value: Shape | None = None
    what: str = "a mapping"

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """It is no mapping, has a wrong key or a wrong value."""
        if not isinstance(value, dict):
            yield place.wrong(self.what, describe(value))
            return
        for key, item in value.items():
            if not self.key.form.fullmatch(key):
                yield Wrong(place.path, self.key.what, "another key", value)
            elif self.value is not None and item is not None:
                yield from self.value.faults(item, _Place(f"{place.path}.{key}", value))


@dataclass(frozen=True)
class Record:
    """A mapping with known fields, perhaps among others."""

    fields: Mapping[str, Shape]
    needed: frozenset[str] = frozenset()
    what: str = "a mapping"

    def faults(self, value: Any, place: _Place) -> Iterator[Wrong]:
        """It is no mapping, or a field is missing or has another shape."""
        if not isinstance(value, dict):
            yield place.wrong(self.what, describe(value))
            return
        for name, shape in self.fields.items():
            there = _Place(f"{place.path}.{name}" if place.path else name, value)
            if name in self.needed:
                yield from _needed(value.get(name), shape, there)
            elif value.get(name) is not None:
                yield from shape.faults(value[name], there)


def _needed(value: Any, shape: Shape, place: _Place) -> Iterator[Wrong]:
    if value is None:
        yield place.wrong(shape.what, "nothing")
    else:
        yield from shape.faults(value, place)


# --- names and texts ----------------------------------------------------------------------------

_CONTROL = r"\x00-\x1f\x7f-\x9f"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

KIND = Text(re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}"), "a kind")
API_VERSION = Text(
    re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]{1,63}"), "a version"
)
_NAME = Text(
    re.compile(rf"(?=.{{1,253}}\Z){_SUBDOMAIN}"), "a name of lower-case letters, digits, - and ."
)
"""Of objects whose kinds this project knows (RFC 1123 subdomain)."""
_OTHER_NAME = Text(
    re.compile(rf"(?!\.{{1,2}}\Z)[^\s/%?#{_CONTROL}]{{1,253}}"), "a name without / and %"
)
"""Of objects of other kinds (path segment name)."""
_NAMESPACE = Text(re.compile(_LABEL), "a name of lower-case letters, digits and -")
_KEY = Text(re.compile(r"[-._a-zA-Z0-9]{1,253}"), "a key of letters, digits, -, _ and .")
_WORD = Text(re.compile(rf"[^\s{_CONTROL}]*"), "text without spaces")
_LINE = Text(re.compile(rf"[^{_CONTROL}]*"), "text in one line")
_TEXT = Plain(str, "text")

# --- objects ------------------------------------------------------------------------------------

_LABELS = Each(_LINE, _TEXT)
_METADATA = Record({"labels": _LABELS, "annotations": _LABELS})
_DATA = Each(_KEY)
"""The values are judged where they are compared."""
_CONFIG = Record(
    {
        "metadata": _METADATA,
        "data": _DATA,
        "binaryData": _DATA,
        "stringData": _DATA,
        "type": _WORD,
        "immutable": Plain(bool, "true or false"),
    }
)

_NAMED = Many(Record({"name": _LINE}, frozenset({"name"})))
_REFERENCE = Record({"name": _TEXT})
_CONTAINERS = Many(
    Record(
        {
            "name": _WORD,
            "image": _WORD,
            "restartPolicy": _TEXT,
            "env": _NAMED,
            "envFrom": Many(Record({"configMapRef": _REFERENCE, "secretRef": _REFERENCE})),
            "volumeMounts": _NAMED,
        },
        frozenset({"name"}),
    )
)
_POD_SPEC = Record(
    {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "volumes": _NAMED,
        "imagePullSecrets": Many(_REFERENCE),
    }
)
_POD = Record({"metadata": _METADATA, "spec": _POD_SPEC})
_REPLICAS = Plain(int, "a whole number")
_WORKLOAD = Record(
    {"metadata": _METADATA, "spec": Record({"replicas": _REPLICAS, "template": _POD})}
)
_JOB_TEMPLATE = Record({"spec": Record({"template": _POD})})
_CRON_JOB = Record({"metadata": _METADATA, "spec": Record({"jobTemplate": _JOB_TEMPLATE})})

_SHAPES: Mapping[str, Record] = {
    "ConfigMap": _CONFIG,
    "Secret": _CONFIG,
    "Pod": _POD,
    "CronJob": _CRON_JOB,
}


def wrong(key: ObjectKey, body: Json) -> Wrong | None:
    """The first field of an object that has not the shape it should have, None where all have."""
    known = key.is_config or key.is_workload
    shape = _SHAPES.get(key.kind, _WORKLOAD) if known else Record({"metadata": _METADATA})
    names = Record({"name": _NAME if known else _OTHER_NAME, "namespace": _NAMESPACE})
    identity = Record({"metadata": names})
    return next(chain(identity.faults(body, _Place()), shape.faults(body, _Place())), None)
