"""Attribute-based filters: ``filter=(eq,vnfdId,x);(in,instantiationState,a,b)``, SOL013 clause 5.2.

Pure. All expressions must hold. Expressions that lead into the same array are asked of the same
entry: ``(eq,parts/color,green);(eq,parts/id,3)`` finds what has a green part 3. An attribute that
is absent satisfies no expression, not even ``neq``. ``@key`` stands for the keys of a map.

A filter comes from whoever has a token: its length, expressions, values and depth are bounded, and
the parser reads every character once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.problems import ProblemError

MOST_CHARACTERS, MOST_EXPRESSIONS, MOST_VALUES, DEEPEST = 4096, 16, 64, 12

Compare = Callable[[Any, Any], bool]

_ORDER: Mapping[str, Compare] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_ONE = frozenset({"eq", "neq", *_ORDER})
_MANY = frozenset({"in", "nin", "cont", "ncont"})
_KEYS = "@key"

_HEAD = re.compile(r"\((?P<op>[^,()']*),(?P<path>[^,()']*)")
_VALUE = re.compile(r",(?:'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^',()]+))")
_ESCAPE = re.compile(r"~(.)")
_ESCAPED = {"0": "~", "1": "/", "a": ",", "b": "@"}


@dataclass(frozen=True)
class Condition:
    """What one expression asks of the attribute that its path leads to."""

    op: str
    values: tuple[str, ...]

    def holds(self, found: object) -> bool:
        """Whether a scalar of a document satisfies it."""
        if self.op in _ORDER:
            return _ordered(_ORDER[self.op], found, self.values[0])
        if self.op in ("cont", "ncont"):
            contains = isinstance(found, str) and any(value in found for value in self.values)
            return contains == (self.op == "cont")
        same = any(_same(found, value) for value in self.values)
        return same == (self.op in ("eq", "in"))


@dataclass
class Filter:
    """All expressions of a filter, as a tree that follows the attributes."""

    conditions: list[Condition] = field(default_factory=list)
    """What is asked of the attribute that this branch leads to."""
    branches: dict[str, Filter] = field(default_factory=dict)
    """Attribute to what is asked below it."""

    def matches(self, found: object) -> bool:
        """Whether a document satisfies every expression."""
        if isinstance(found, list):
            return any(self.matches(entry) for entry in found)
        if isinstance(found, dict):
            return not self.conditions and all(
                branch.matches(list(found))
                if name == _KEYS
                else name in found and branch.matches(found[name])
                for name, branch in self.branches.items()
            )
        return not self.branches and all(condition.holds(found) for condition in self.conditions)

    def at(self, path: Iterable[str]) -> Filter:
        """Return the branch that a path leads to; made where there is none yet."""
        branch = self
        for name in path:
            branch = branch.branches.setdefault(name, Filter())
        return branch


def parse(text: str) -> Filter:
    """Return the filter that a query parameter says.

    :raises ProblemError: 400: it is no filter, or a bigger one than is allowed.
    """
    if len(text) > MOST_CHARACTERS:
        raise _wrong(f"has {len(text)} characters, at most {MOST_CHARACTERS} are allowed")
    root, position, expressions, values = Filter(), 0, 0, 0
    while True:
        path, condition, position = _expression(text, position)
        root.at(path).conditions.append(condition)
        expressions, values = expressions + 1, values + len(condition.values)
        if expressions > MOST_EXPRESSIONS or values > MOST_VALUES:
            limits = f"at most {MOST_EXPRESSIONS} expressions and {MOST_VALUES} values"
            raise _wrong(f"{limits} are allowed")
        if position == len(text):
            return root
        if text[position] != ";":
            raise _wrong(f"expected ';' between expressions at character {position + 1}")
        position += 1


def find(items: Iterable[Json], text: str | None) -> list[Json]:
    """Return the items that satisfy a filter, all where there is none.

    :raises ProblemError: 400: it is no filter, or a bigger one than is allowed.
    """
    if text is None:
        return list(items)
    wanted = parse(text)
    return [item for item in items if wanted.matches(item)]


def _expression(text: str, start: int) -> tuple[list[str], Condition, int]:
    """Return the path and the condition of the expression that starts there, and where it ends."""
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
        wanted = "exactly one value" if op in _ONE else "at least one value"
        raise _wrong(f"{op!r} at character {start + 1} takes {wanted}, found {len(values)}")
    return path_of(head["path"]), Condition(op, tuple(values)), position + 1


def path_of(text: str) -> list[str]:
    """Return the attribute names of a path, '~1' and the like resolved.

    :raises ProblemError: 400: it is none.
    """
    names = text.split("/")
    if len(names) > DEEPEST or "" in names:
        raise _wrong(f"{text!r} is no path of 1 to {DEEPEST} attributes")
    return [_ESCAPE.sub(_resolved, name) for name in names]


def _resolved(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPED:
        known = ", ".join(f"~{code} for {meant}" for code, meant in _ESCAPED.items())
        raise _wrong(f"{match[0]!r} is no escape: {known}")
    return _ESCAPED[match[1]]


def _same(found: object, value: str) -> bool:
    if isinstance(found, bool):
        return value == str(found).lower()
    if isinstance(found, int | float):
        return found == _number(value)
    return found == value or (
        isinstance(found, str)
        and (moment := _moment(found)) is not None
        and moment == _moment(value)
    )


def _ordered(compare: Compare, found: object, value: str) -> bool:
    """Numbers as numbers, times as times, other texts by their characters."""
    if isinstance(found, bool):
        return False
    if isinstance(found, int | float):
        number = _number(value)
        return number is not None and compare(found, number)
    if not isinstance(found, str):
        return False
    moments = _moment(found), _moment(value)
    return compare(*moments) if None not in moments else compare(found, value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    """Return a date with time and zone; without the zone two of them could not be compared."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _wrong(why: str) -> ProblemError:
    return ProblemError(400, f"filter: {why} (SOL013 clause 5.2)")
