"""Schemas of what an update reads: which fields of an object are text, lists or mappings.

The API server would refuse most violations too, but only in the middle of an update; and names
become parts of URLs and of lines on a terminal, so they must be what Kubernetes allows. Fields that
an update does not read are not checked. Source: Kubernetes API reference; "Object Names and IDs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from container_update.model.objects import FieldPath, Json, ObjectKey
from container_update.package.values.scalars import describe
from container_update.workloads.config_references import MOUNTING_SECRETS
from container_update.workloads.registry import kind_of


@dataclass(frozen=True)
class Violation:
    """A field whose value does not match its schema."""

    path: FieldPath
    expected: str
    found: str
    """What kind of value is there; never the value itself."""

    @property
    def field(self) -> str:
        """Its path as text: 'spec.containers[0].name'."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


@dataclass(frozen=True)
class Schema:
    """What a value must be. A missing value (null) is checked by the schema of its parent."""

    type: type
    description: str

    def violations(self, value: Any, path: FieldPath = ()) -> Iterator[Violation]:
        """Yield every violation in the value of a field."""
        if type(value) is self.type:
            yield from self._inside(value, path)
        else:
            yield Violation(path, self.description, describe(value))

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        """Yield the violations in a value of this type."""
        del value, path
        yield from ()


@dataclass(frozen=True)
class Text(Schema):
    """Text that matches a pattern."""

    type: type = field(default=str, init=False)
    pattern: re.Pattern[str]

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if not self.pattern.fullmatch(value):
            yield Violation(path, self.description, "invalid text")


@dataclass(frozen=True)
class ListOf(Schema):
    """A list whose items all have one schema; none is null."""

    type: type = field(default=list, init=False)
    description: str = field(default="a list", init=False)
    item: Schema

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        for index, item in enumerate(value):
            yield from self.item.violations(item, (*path, index))


@dataclass(frozen=True)
class MapOf(Schema):
    """A mapping with any keys of one pattern, whose values have one schema."""

    type: type = field(default=dict, init=False)
    description: str = field(default="a mapping", init=False)
    key: Text
    value: Schema | None = None
    """None: any value."""
    nullable: bool = True
    """Whether a value may be null."""

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        for key, item in value.items():
            if not self.key.pattern.fullmatch(key):
                yield Violation(path, self.key.description, "an invalid key")
            elif self.value and not (self.nullable and item is None):
                yield from self.value.violations(item, (*path, key))


@dataclass(frozen=True)
class Record(Schema):
    """A mapping with known fields; other fields are allowed."""

    type: type = field(default=dict, init=False)
    description: str = field(default="a mapping", init=False)
    fields: Mapping[str, Schema]
    required: frozenset[str] = frozenset()

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        for name, schema in self.fields.items():
            if name in self.required or value.get(name) is not None:
                yield from schema.violations(value.get(name), (*path, name))


# --- names and texts ----------------------------------------------------------------------------

_CONTROL = r"\x00-\x1f\x7f-\x9f"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

KIND = Text("a kind", re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}"))
API_VERSION = Text(
    "a version", re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]{1,63}")
)
_NAME = Text(
    "a name of lower-case letters, digits, - and .", re.compile(rf"(?=.{{1,253}}\Z){_SUBDOMAIN}")
)
"""The name of an object of a kind that this project knows (RFC 1123 subdomain)."""
_OTHER_NAME = Text(
    "a name without / and %", re.compile(rf"(?!\.{{1,2}}\Z)[^\s/%?#{_CONTROL}]{{1,253}}")
)
"""The name of an object of any other kind (path segment name)."""
_NAMESPACE = Text("a name of lower-case letters, digits and -", re.compile(_LABEL))
_KEY = Text("a key of letters, digits, -, _ and .", re.compile(r"[-._a-zA-Z0-9]{1,253}"))
_WORD = Text("text without spaces", re.compile(rf"[^\s{_CONTROL}]*"))
LINE = Text("text in one line", re.compile(rf"[^{_CONTROL}]*"))
TEXT = Schema(str, "text")
MAPPING = Record({})

# --- objects ------------------------------------------------------------------------------------

_LABELS = MapOf(LINE, TEXT)
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
        "immutable": Schema(bool, "true or false"),
    }
)


def _record_of(path: Sequence[str]) -> Schema:
    """Return the schema of nested mappings with a text in the last one."""
    schema: Schema = TEXT
    for name in reversed(path):
        schema = Record({name: schema})
    return schema


_REFERENCE = Record({"name": TEXT})
_KEY_REFERENCE = Record({"name": TEXT, "key": TEXT})
_ITEMS = ListOf(Record({"key": TEXT, "path": TEXT}))
_CONFIG_MAP, _SECRET = (Record({name: TEXT, "items": _ITEMS}) for name in ("name", "secretName"))
_VALUE_FROM = Record({"configMapKeyRef": _KEY_REFERENCE, "secretKeyRef": _KEY_REFERENCE})
_VOLUMES = ListOf(
    Record(
        {
            "name": LINE,
            "configMap": _CONFIG_MAP,
            "secret": _SECRET,
            "projected": Record(
                {"sources": ListOf(Record({"configMap": _CONFIG_MAP, "secret": _CONFIG_MAP}))}
            ),
            **{plugin: _record_of(path) for plugin, *path in MOUNTING_SECRETS},
        },
        frozenset({"name"}),
    )
)
_CONTAINERS = ListOf(
    Record(
        {
            "name": _WORD,
            "image": _WORD,
            "restartPolicy": TEXT,
            "env": ListOf(Record({"name": LINE, "valueFrom": _VALUE_FROM}, frozenset({"name"}))),
            "envFrom": ListOf(Record({"configMapRef": _REFERENCE, "secretRef": _REFERENCE})),
            "volumeMounts": ListOf(Record({"name": LINE, "subPath": TEXT}, frozenset({"name"}))),
        },
        frozenset({"name"}),
    )
)
_POD_SPEC = Record(
    {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "ephemeralContainers": _CONTAINERS,
        "volumes": _VOLUMES,
        "imagePullSecrets": ListOf(_REFERENCE),
    }
)
_POD = Record({"metadata": _METADATA, "spec": _POD_SPEC})
_SCALE = Record({"replicas": Schema(int, "a whole number")})
_WORKLOAD = Record({"metadata": _METADATA, "spec": _SCALE})
_OTHER = Record({"metadata": _METADATA})


def first_violation(key: ObjectKey, body: Json) -> Violation | None:
    """Return the first violation in an object; None if there is none."""
    schemas = _schemas_of(key)
    name = _OTHER_NAME if _OTHER in schemas else _NAME
    identity = Record({"metadata": Record({"name": name, "namespace": _NAMESPACE})})
    violations = (each for schema in (identity, *schemas) for each in schema.violations(body))
    return next(violations, None)


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
