"""Schemas of what an update reads: which fields of an object are text, lists or mappings.

The API server would refuse most violations too, but only in the middle of an update; and names
become parts of URLs and of lines on a terminal, so they must be what Kubernetes allows. Fields that
an update does not read are not checked. Source: Kubernetes API reference; "Object Names and IDs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from container_update.model.objects import Json, ObjectKey
from container_update.package.yaml11 import describe
from container_update.workloads.registry import kind_of


@dataclass(frozen=True)
class Violation:
    """A field whose value does not match its schema."""

    field: str
    """Its path: 'spec.containers[0].name'."""
    expected: str
    found: str
    """What kind of value is there; never the value itself."""
    parent: Any
    """The mapping or list that has the field."""


@dataclass(frozen=True)
class _Location:
    """Where a value is in its object."""

    path: str = ""
    parent: Any = None

    def violation(self, expected: str, found: str) -> Violation:
        return Violation(self.path, expected, found, self.parent)


class Schema(Protocol):
    """What a value must be. A missing value (null) is checked by the schema of its parent."""

    @property
    def description(self) -> str:
        """The expected value in words."""

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield every violation in a value."""


@dataclass(frozen=True)
class Scalar:
    """A value of one Python type."""

    type: type
    description: str

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield a violation if the value has another type."""
        if type(value) is not self.type:
            yield location.violation(self.description, describe(value))


@dataclass(frozen=True)
class Text:
    """Text that matches a pattern."""

    pattern: re.Pattern[str]
    description: str

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield a violation if the value is not text or does not match."""
        if not isinstance(value, str):
            yield location.violation(self.description, describe(value))
        elif not self.pattern.fullmatch(value):
            yield location.violation(self.description, "invalid text")


@dataclass(frozen=True)
class ListOf:
    """A list whose items all have one schema; none is null."""

    item: Schema
    description: str = "a list"

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield a violation if the value is not a list, and those of its items."""
        if not isinstance(value, list):
            yield location.violation(self.description, describe(value))
            return
        for index, item in enumerate(value):
            yield from _required(item, self.item, _Location(f"{location.path}[{index}]", value))


@dataclass(frozen=True)
class MapOf:
    """A mapping with any keys of one pattern, whose values have one schema."""

    key: Text
    value: Schema | None = None
    """None: any value."""
    description: str = "a mapping"

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield a violation if the value is not a mapping, and those of its keys and values."""
        if not isinstance(value, dict):
            yield location.violation(self.description, describe(value))
            return
        for key, item in value.items():
            if not self.key.pattern.fullmatch(key):
                yield Violation(location.path, self.key.description, "an invalid key", value)
            elif self.value is not None and item is not None:
                item_location = _Location(f"{location.path}.{key}", value)
                yield from self.value.violations(item, item_location)


@dataclass(frozen=True)
class Record:
    """A mapping with known fields; other fields are allowed."""

    fields: Mapping[str, Schema]
    required: frozenset[str] = frozenset()
    description: str = "a mapping"

    def violations(self, value: Any, location: _Location) -> Iterator[Violation]:
        """Yield a violation if the value is not a mapping, and those of its fields."""
        if not isinstance(value, dict):
            yield location.violation(self.description, describe(value))
            return
        for name, schema in self.fields.items():
            path = f"{location.path}.{name}" if location.path else name
            field_location = _Location(path, value)
            if name in self.required:
                yield from _required(value.get(name), schema, field_location)
            elif value.get(name) is not None:
                yield from schema.violations(value[name], field_location)


def _required(value: Any, schema: Schema, location: _Location) -> Iterator[Violation]:
    if value is None:
        yield location.violation(schema.description, "nothing")
    else:
        yield from schema.violations(value, location)


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
"""The name of an object of a kind that this project knows (RFC 1123 subdomain)."""
_OTHER_NAME = Text(
    re.compile(rf"(?!\.{{1,2}}\Z)[^\s/%?#{_CONTROL}]{{1,253}}"), "a name without / and %"
)
"""The name of an object of any other kind (path segment name)."""
_NAMESPACE = Text(re.compile(_LABEL), "a name of lower-case letters, digits and -")
_KEY = Text(re.compile(r"[-._a-zA-Z0-9]{1,253}"), "a key of letters, digits, -, _ and .")
_WORD = Text(re.compile(rf"[^\s{_CONTROL}]*"), "text without spaces")
_LINE = Text(re.compile(rf"[^{_CONTROL}]*"), "text in one line")
_TEXT = Scalar(str, "text")

# --- objects ------------------------------------------------------------------------------------

_LABELS = MapOf(_LINE, _TEXT)
_METADATA = Record({"labels": _LABELS, "annotations": _LABELS})
_DATA = MapOf(_KEY)
"""The values are checked where they are compared."""
_CONFIG = Record(
    {
        "metadata": _METADATA,
        "data": _DATA,
        "binaryData": _DATA,
        "stringData": _DATA,
        "type": _WORD,
        "immutable": Scalar(bool, "true or false"),
    }
)

_NAMED = ListOf(Record({"name": _LINE}, frozenset({"name"})))
_REFERENCE = Record({"name": _TEXT})
_CONTAINERS = ListOf(
    Record(
        {
            "name": _WORD,
            "image": _WORD,
            "restartPolicy": _TEXT,
            "env": _NAMED,
            "envFrom": ListOf(Record({"configMapRef": _REFERENCE, "secretRef": _REFERENCE})),
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
        "imagePullSecrets": ListOf(_REFERENCE),
    }
)
_POD = Record({"metadata": _METADATA, "spec": _POD_SPEC})
_REPLICAS = Scalar(int, "a whole number")
_WORKLOAD = Record({"metadata": _METADATA, "spec": Record({"replicas": _REPLICAS})})
_OTHER = Record({"metadata": _METADATA})


def first_violation(key: ObjectKey, body: Json) -> Violation | None:
    """Return the first violation in an object; None if there is none."""
    schemas = _schemas_of(key)
    name = _OTHER_NAME if _OTHER in schemas else _NAME
    identity = Record({"metadata": Record({"name": name, "namespace": _NAMESPACE})})
    root = _Location()
    return next(
        chain.from_iterable(schema.violations(body, root) for schema in (identity, *schemas)), None
    )


def _schemas_of(key: ObjectKey) -> tuple[Record, ...]:
    if key.is_config:
        return (_CONFIG,)
    kind = kind_of(key)
    if kind is None:
        return (_OTHER,)
    template = _POD
    for name in reversed(kind.template_path):
        template = Record({name: template})
    return _WORKLOAD, template
