# SPDX-License-Identifier: Apache-2.0
"""Schemas: what type and form values have that others have written.

They are checked once, where the values come in; what is behind relies on it. A message names the
field and what kind of value is there, never the value itself.

The one language for it: of packages, requests, records, journals and saved plans. Our own, not
jsonschema, which takes 0.45 s for 500 objects instead of 0.04 s and 0.1 s to load; nor
fastjsonschema, which runs code that it generates, and which no Tacker has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json

DEPTH = 100
"""Of lists and mappings in each other, where no schema says what is in them: what copies, compares
or writes a value goes down one call or more for each."""

_NAMES = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
_NUMBERS = frozenset({int, float})
_PLAIN = _NUMBERS | _NAMES.keys()
_LARGEST = 2**53
_SIMILAR = 0.8
"""How similar two names are (difflib's ratio) so that one is taken for the other, misspelt."""
_SPACES = re.compile("[\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}]")
_SHOWN = 10
"""Steps of the path of a value that is too deep."""


def describe(value: object) -> str:
    """Return the kind of a value in words, for messages; never the value itself."""
    kind = type(value)
    return "a number" if kind in _NUMBERS else _NAMES.get(kind, f"a value of type {kind.__name__}")


def is_printable(text: str) -> bool:
    """Tell whether a text controls no terminal; spaces of other scripts and of layouts may be in
    it, as file names and names of products have them."""
    return _SPACES.sub(" ", text).isprintable()


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

    def __str__(self) -> str:
        return f"{self.field or 'the document'}: {self.why}"

    @property
    def why(self) -> str:
        """What is wrong with it."""
        return f"expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Schema:
    """What a value must be. A missing value (null) is checked by the schema of its parent."""

    type: type
    description: str

    def check(self, value: Any, *path: str) -> None:
        """Check a value.

        :param path: where it is; its field follows in the message.
        :raises PackageError: names the first field that is wrong.
        """
        if (wrong := self.first_violation(value, path)) is not None:
            raise PackageError(wrong.why, path=wrong.field or "the document")

    def first_violation(self, value: Any, path: FieldPath = ()) -> Violation | None:
        """Return the first violation in the value of a field; None if there is none."""
        return next(self.violations(value, path), None)

    def violations(self, value: Any, path: FieldPath = ()) -> Iterator[Violation]:
        """Yield every violation in the value of a field."""
        if self.is_meant_by(value):
            yield from self._inside(value, path)
        else:
            yield Violation(path, self.description, describe(value))

    def is_meant_by(self, value: Any) -> bool:
        """Return whether a value is of this type; its content is not looked at."""
        return type(value) is self.type

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        """Yield the violations in a value of this type."""
        del value, path
        yield from ()


@dataclass(frozen=True)
class Text(Schema):
    """Text that matches a pattern, of so many characters at most."""

    type: type = field(default=str, init=False)
    pattern: str
    longest: int | None = None

    @cached_property
    def matches(self) -> Callable[[str], re.Match[str] | None]:
        """The function that tells whether a text has this form."""
        return re.compile(self.pattern).fullmatch

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if self.longest is not None and len(value) > self.longest:
            yield Violation(path, self.description, f"more than {self.longest} characters")
        elif not self.matches(value):
            yield Violation(path, self.description, "invalid text" if value else "an empty one")


@dataclass(frozen=True)
class ListOf(Schema):
    """A list whose items all have one schema; none is null."""

    type: type = field(default=list, init=False)
    description: str = field(default="a list", kw_only=True)
    item: Schema
    least: int = 0
    """How many items it has at least."""

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if len(value) < self.least:
            yield Violation(path, self.description, f"{len(value) or 'no'} items")
        for index, item in enumerate(value):
            yield from self.item.violations(item, (*path, index))


@dataclass(frozen=True)
class MapOf(Schema):
    """A mapping with any keys of one pattern, whose values have one schema."""

    type: type = field(default=dict, init=False)
    description: str = field(default="a mapping", kw_only=True)
    key: Text
    value: Schema | None = None
    """None: any value."""
    nullable: bool = True
    """Whether a value may be null."""

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        for key, item in value.items():
            if not (isinstance(key, str) and self.key.matches(key)):
                yield Violation(path, self.key.description, "an invalid key")
            elif self.value and not (self.nullable and item is None):
                yield from self.value.violations(item, (*path, key))


@dataclass(frozen=True)
class Fields(Schema):
    """A mapping with known fields."""

    type: type = field(default=dict, init=False)
    description: str = field(default="a mapping", kw_only=True)
    fields: Mapping[str, Schema]
    required: Collection[str] = ()
    whole: str = field(default="", kw_only=True)
    """What it is called, where it has no other fields; others are allowed without it."""
    has_similar: bool = field(default=True, kw_only=True)
    """Whether another field may look like one of these: such a name is a spelling mistake, and its
    value would be silently ignored."""
    has_nulls: bool = field(default=True, kw_only=True)
    """Whether null stands for a field that is left out."""

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        for name in value.keys() - self.fields.keys() if self.whole else ():
            known = f"a field of a {self.whole} ({', '.join(self.fields)})"
            yield Violation((*path, name), known, "another name")
        if not self.has_similar:
            yield from similar_names(value, self.fields, path)
        for name, schema in self.fields.items():
            if name in self.required and name not in value:
                yield Violation((*path, name), schema.description, describe(None))
            elif name in self.required or self._is_there(value, name):
                yield from schema.violations(value.get(name), (*path, name))

    def _is_there(self, value: Json, name: str) -> bool:
        return value.get(name) is not None if self.has_nulls else name in value


def complete(optional: Mapping[str, Schema] | None = None, /, **needed: Schema) -> Fields:
    """Return the schema of a mapping in which no field is missing but the optional ones."""
    return Fields({**(optional or {}), **needed}, needed.keys())


@dataclass(frozen=True)
class AnyOf(Schema):
    """A value that has one of several schemas: the first one whose type it has."""

    type: type = field(default=object, init=False)
    alternatives: tuple[Schema, ...]

    def is_meant_by(self, value: Any) -> bool:
        """Return whether a value is of one of the types."""
        return any(each.is_meant_by(value) for each in self.alternatives)

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        meant = next(each for each in self.alternatives if each.is_meant_by(value))
        yield from meant.violations(value, path)


@dataclass(frozen=True)
class Empty(Schema):
    """A mapping with nothing in it."""

    type: type = field(default=dict, init=False)
    description: str = field(default="an empty mapping", init=False)

    def is_meant_by(self, value: Any) -> bool:
        """Return whether a value is one."""
        return super().is_meant_by(value) and not value


def or_null(inner: Schema) -> AnyOf:
    """Return the schema of what may be null, where the field has to be there."""
    return AnyOf(inner.description, (inner, Schema(type(None), "null")))


@dataclass(frozen=True)
class Row(Schema):
    """A list with as many items as schemas, one for each."""

    type: type = field(default=list, init=False)
    description: str = field(default="a list", init=False)
    items: tuple[Schema, ...]

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if len(value) != len(self.items):
            yield Violation(path, f"a list of {len(self.items)}", f"one of {len(value)}")
            return
        for index, (schema, item) in enumerate(zip(self.items, value, strict=True)):
            yield from schema.violations(item, (*path, index))


@dataclass(frozen=True)
class OneOf(Schema):
    """A text that is one of several."""

    type: type = field(default=str, init=False)
    description: str = field(init=False)
    values: Collection[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", f"one of {', '.join(sorted(self.values))}")

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if value not in self.values:
            yield Violation(path, self.description, "another text")


@dataclass(frozen=True)
class Number(Schema):
    """A number that is neither infinite nor so large that it has no use."""

    type: type = field(default=float, init=False)
    description: str = field(default="a number", kw_only=True)
    least: int = -_LARGEST
    most: int = _LARGEST
    is_whole: bool = False

    def is_meant_by(self, value: Any) -> bool:
        """Return whether a value is a number, or a whole one."""
        return type(value) is int or (type(value) is float and not self.is_whole)

    def _inside(self, value: Any, path: FieldPath) -> Iterator[Violation]:
        if not self.least <= value <= self.most:
            found = f"{value:.15g}" if abs(value) <= _LARGEST else "one that is too large"
            yield Violation(path, self.description, found)


@dataclass(frozen=True)
class Plain(Schema):
    """A value of which nothing is known but that JSON has it, and that it is not endless."""

    type: type = field(default=object, init=False)
    description: str = field(default=f"plain values, {DEPTH} in each other at most", init=False)
    most: float = math.inf
    """How many values are in it at most."""

    def violations(self, value: Any, path: FieldPath = ()) -> Iterator[Violation]:
        """Yield a violation for each value that is not plain or is too deep."""
        # by identity: what many aliases of YAML stand for is looked at once a level
        level: dict[int, tuple[FieldPath, Any]] = {id(value): (path, value)}
        seen = 0
        for _ in range(DEPTH):
            below: dict[int, tuple[FieldPath, Any]] = {}
            for place, holder in level.values():
                seen += len(holder) if type(holder) in (dict, list) else 0
                if seen > self.most:
                    yield Violation(path, f"at most {self.most} values in it", "more")
                    return
                for name, part in _parts(holder):
                    if type(holder) is dict and (type(name) is not str or _HALVES.search(name)):
                        yield Violation(place, "texts as names", "others")
                    below[id(part)] = ((*place, name), part)
                if type(holder) not in _PLAIN:
                    yield Violation(place, self.description, describe(holder))
                elif type(holder) is str and _HALVES.search(holder):
                    yield Violation(place, "text", "half a letter")
            level = below
            if not level:
                return
        deepest, _ = next(iter(level.values()))
        yield Violation(deepest[: len(path) + _SHOWN], self.description, "more")


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if type(value) is dict:
        return value.items()
    return enumerate(value) if type(value) is list else ()


def similar_names(
    names: Iterable[str], known: Iterable[str], path: FieldPath = ()
) -> Iterator[Violation]:
    """Yield a violation for each name that looks like a known one."""
    plain = {_plain(name): name for name in known}
    for name in names:
        similar = get_close_matches(_plain(name), plain, n=1, cutoff=_SIMILAR)
        if similar and name != (meant := plain[similar[0]]):
            expected = f"a name that is known (did you mean {meant}?) or one of your own"
            yield Violation((*path, name), expected, "one that could be mistaken")


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


_HALVES = re.compile(r"[\ud800-\udfff]")
"""Surrogates: JSON and pickles can have one alone, which no file and no request can."""
CONTROL = r"\x00-\x1f\x7f-\x9f\ud800-\udfff"
LINE = Text("text in one line", rf"[^{CONTROL}]*")
TEXT = Schema(str, "text")
FILLED = Text("text in one line", rf"[^{CONTROL}]+")
TEXTS = ListOf(FILLED)
MAPPING = Fields({})
PLAIN = Plain()
TRUTH = Schema(bool, "true or false")
WHOLE = Number(is_whole=True, description="a whole number")
