# SPDX-License-Identifier: Apache-2.0
"""Attribute-based filters: ``filter=(eq,vnfdId,x);(in,instantiationState,a,b)``, SOL013 clause 5.2.

Pure. All expressions must hold. Expressions about the same array must hold for the same entry:
``(eq,parts/color,green);(eq,parts/id,3)`` finds what has a green part 3. An absent attribute
satisfies no expression, not even ``neq``. ``@key`` stands for the keys of a map.

Filters are not trusted: their length, expressions, values and depth are limited, and the parser
reads every character once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from container_update.model.objects import Json
from container_update.model.times import time_of
from container_update.vnfm.problems import ProblemError

_MAX_CHARACTERS, _MAX_EXPRESSIONS, _MAX_VALUES, _MAX_DEPTH = 4096, 16, 64, 12

Compare = Callable[[Any, Any], bool]

_ORDER: Mapping[str, Compare] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_ONE = frozenset({"eq", "neq", *_ORDER})
_MANY = frozenset({"in", "nin", "cont", "ncont"})
KEYS = "@key"
"""In a path: the keys of a map."""

_HEAD = re.compile(r"\((?P<op>[^,()']*),(?P<path>[^,()']*)")
_VALUE = re.compile(r",(?:'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^',()]+))")
_ESCAPE = re.compile(r"~(.)")
_ESCAPED = {"0": "~", "1": "/", "a": ",", "b": "@"}


@dataclass(frozen=True)
class Condition:
    """The operator and the values of one expression."""

    op: str
    values: tuple[str, ...]

    def holds(self, attribute: object) -> bool:
        """Return whether a scalar attribute satisfies it."""
        if self.op in _ORDER:
            return _compare(_ORDER[self.op], attribute, self.values[0])
        if self.op in ("cont", "ncont"):
            contains = isinstance(attribute, str) and any(
                value in attribute for value in self.values
            )
            return contains == (self.op == "cont")
        same = any(_same(attribute, value) for value in self.values)
        return same == (self.op in ("eq", "in"))


@dataclass
class Filter:
    """All expressions of a filter, as a tree of attributes."""

    conditions: list[Condition] = field(default_factory=list)
    """Those for the attribute of this branch."""
    branches: dict[str, Filter] = field(default_factory=dict)
    """Those for the attributes below it, by their names."""

    def matches(self, value: object) -> bool:
        """Return whether a document satisfies every expression."""
        if isinstance(value, list):
            return any(self.matches(entry) for entry in value)
        if isinstance(value, dict):
            return not self.conditions and self._matches_object(value)
        return not self.branches and all(condition.holds(value) for condition in self.conditions)

    def _matches_object(self, value: Json) -> bool:
        for name, branch in self.branches.items():
            if name == KEYS:
                if not branch.matches(list(value)):
                    return False
            elif name not in value or not branch.matches(value[name]):
                return False
        return True

    def at(self, path: Iterable[str]) -> Filter:
        """Return the branch at a path; create it if necessary."""
        branch = self
        for name in path:
            branch = branch.branches.setdefault(name, Filter())
        return branch


def parse(text: str) -> Filter:
    """Parse the query parameter ``filter``.

    :raises ProblemError: 400: it is malformed or exceeds a limit.
    """
    if len(text) > _MAX_CHARACTERS:
        raise _wrong(f"has {len(text)} characters, at most {_MAX_CHARACTERS} are allowed")
    root, position, expressions, values = Filter(), 0, 0, 0
    while True:
        path, condition, position = _expression(text, position)
        root.at(path).conditions.append(condition)
        expressions, values = expressions + 1, values + len(condition.values)
        if expressions > _MAX_EXPRESSIONS or values > _MAX_VALUES:
            limits = f"at most {_MAX_EXPRESSIONS} expressions and {_MAX_VALUES} values"
            raise _wrong(f"{limits} are allowed")
        if position == len(text):
            return root
        if text[position] != ";":
            raise _wrong(f"expected ';' between expressions at character {position + 1}")
        position += 1


def _expression(text: str, start: int) -> tuple[list[str], Condition, int]:
    """Return the path and the condition of the expression at a position, and where it ends."""
    head = _HEAD.match(text, start)
    if head is None:
        raise _wrong(f"expected '(operator,attribute,value)' at character {start + 1}")
    op, position, values = head["op"], head.end(), []
    if op not in _ONE | _MANY:
        raise _wrong(f"expected one of {', '.join(sorted(_ONE | _MANY))}, not {op!r}")
    while (value := _VALUE.match(text, position)) is not None:
        values.append(
            value["plain"] if value["quoted"] is None else value["quoted"].replace("''", "'")
        )
        position = value.end()
    if text[position : position + 1] != ")":
        quoting = "a value with one of ,()' stands in quotes, '' for a quote in it"
        raise _wrong(f"expected a value or ')' at character {position + 1}; {quoting}")
    if not values or (op in _ONE and len(values) > 1):
        expected = "exactly one value" if op in _ONE else "at least one value"
        raise _wrong(f"{op!r} at character {start + 1} takes {expected}, found {len(values)}")
    return path_of(head["path"]), Condition(op, tuple(values)), position + 1


def path_of(text: str, parameter: str = "filter") -> list[str]:
    """Return the attribute names of a path, with escapes like '~1' resolved.

    :raises ProblemError: 400: it is malformed or too deep.
    """
    names = text.split("/")
    if len(names) > _MAX_DEPTH or "" in names:
        raise _wrong(f"{text!r} is no path of 1 to {_MAX_DEPTH} attributes", parameter)
    return [_ESCAPE.sub(_resolve, name) for name in names]


def _resolve(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPED:
        known = ", ".join(f"~{code} for {meant}" for code, meant in _ESCAPED.items())
        raise _wrong(f"{match[0]!r} is no escape: {known}")
    return _ESCAPED[match[1]]


def _same(attribute: object, value: str) -> bool:
    if isinstance(attribute, bool):
        return value == str(attribute).lower()
    return attribute == value or _compare(operator.eq, attribute, value)


def _compare(compare: Compare, attribute: object, value: str) -> bool:
    """Compare numbers as numbers, times as times, other texts by their characters."""
    if isinstance(attribute, int | float) and not isinstance(attribute, bool):
        number = _number(value)
        return number is not None and compare(attribute, number)
    if not isinstance(attribute, str):
        return False
    moment = _value_moment(value)
    other = None if moment is None else _moment_of(attribute)
    return compare(attribute, value) if other is None else compare(other, moment)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _moment_of(text: str) -> datetime | None:
    """Return a date with time and zone; without the zone two of them could not be compared."""
    try:
        moment = time_of(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


_value_moment = lru_cache(maxsize=64)(_moment_of)
"""The same for a filter's value, which is compared with many attributes."""


def _wrong(why: str, parameter: str = "filter") -> ProblemError:
    return ProblemError(400, f"{parameter}: {why} (SOL013 clause 5.2)")
