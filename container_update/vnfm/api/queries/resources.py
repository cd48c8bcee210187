# SPDX-License-Identifier: Apache-2.0
"""Resources: the columns that attributes are made of, how they are shown, what a database can tell.

An attribute has one definition. So what a filter judges of a row, with only the columns that it
names, is what the whole resource shows.

What a database tells of a filter has to hold for each row that the filter finds; it may hold for
others as well. Those are judged by the filter itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import ColumnElement, and_, false, or_
from sqlalchemy.orm import InstrumentedAttribute

from container_update.model.objects import Json
from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.api.queries.query_filters import KEYS, Condition, Filter, required_texts
from container_update.vnfm.store.database import timestamp

ABSENT: Any = object()
"""Stands for an attribute that a resource does not have."""
REST = ""
"""Stands for all attributes without a definition of their own; no path has this name."""

_TIME_UNIT = timedelta(milliseconds=1)
"""What is shown of a time of the tables is cut to this."""

Made = InstrumentedAttribute[Any] | sa.Label[Any]
"""What an attribute is made of."""


class Attribute(Protocol):
    """An attribute of a resource."""

    @property
    def columns(self) -> Collection[Made]:
        """What it is made of."""

    def shown(self, row: Any) -> Any:
        """Return its value in a row with these columns, or ABSENT."""

    def narrowed(self, branch: Filter) -> Iterator[ColumnElement[bool]]:
        """Yield what holds for each row in which it satisfies a part of a filter."""


@dataclass(frozen=True)
class Constant:
    """An attribute that is the same in all rows."""

    value: bool
    columns: Collection[Made] = ()

    def shown(self, _: Any) -> bool:
        """See Attribute."""
        return self.value

    def narrowed(self, branch: Filter) -> Iterator[ColumnElement[bool]]:
        """See Attribute."""
        if not branch.matches(self.value):
            yield false()


class _Column:
    """A scalar in a column of its own."""

    column: InstrumentedAttribute[Any]

    @property
    def columns(self) -> Collection[Made]:
        """See Attribute."""
        return (self.column,)

    def narrowed(self, branch: Filter) -> Iterator[ColumnElement[bool]]:
        """See Attribute."""
        if branch.branches:
            yield false()  # there is nothing below a scalar
        for condition in branch.conditions:
            if (narrowed := self._by(condition)) is not None:
                yield narrowed

    def _by(self, condition: Condition) -> ColumnElement[bool] | None:
        """Return what holds if the attribute satisfies a condition; None: nothing is known."""
        raise NotImplementedError


@dataclass(frozen=True)
class TextColumn(_Column):
    """A column with any text, absent if it is NULL.

    Values that are times are compared as such, and not by a database; nor are those with characters
    that one may not take. Which text comes first depends on the database, too.
    """

    column: InstrumentedAttribute[Any]

    def shown(self, row: Any) -> Any:
        """See Attribute."""
        value = getattr(row, self.column.key)
        return ABSENT if value is None else value

    def _by(self, condition: Condition) -> ColumnElement[bool] | None:
        if not all(map(str.isprintable, condition.values)):
            return None
        if condition.op == "cont":
            return or_(*(_contains(self.column, value) for value in condition.values))
        if any(map(query_filters.moment_of, condition.values)):
            return None
        if condition.op in ("eq", "in"):
            return self.column.in_(condition.values)
        if condition.op in ("neq", "nin"):
            return self.column.not_in(condition.values)
        return None


@dataclass(frozen=True)
class Choice:
    """A column with few values.

    :param texts: each value of the column, and how it is shown.
    """

    column: InstrumentedAttribute[Any] | sa.Label[Any]
    texts: Mapping[Any, str]

    @property
    def columns(self) -> Collection[Made]:
        """See Attribute."""
        return (self.column,)

    def shown(self, row: Any) -> str:
        """See Attribute."""
        return self.texts[getattr(row, self.column.key)]

    def narrowed(self, branch: Filter) -> Iterator[ColumnElement[bool]]:
        """See Attribute."""
        expression = self.column.element if isinstance(self.column, sa.Label) else self.column
        values = [value for value, text in self.texts.items() if branch.matches(text)]
        if len(values) < len(self.texts):
            yield expression.in_(values)


@dataclass(frozen=True)
class Time(_Column):
    """A column with a time, which the attribute shows in milliseconds."""

    column: InstrumentedAttribute[datetime]

    def shown(self, row: Any) -> str:
        """See Attribute."""
        return timestamp(getattr(row, self.column.key))

    def _by(self, condition: Condition) -> ColumnElement[bool] | None:
        moments = [query_filters.moment_of(value) for value in condition.values]
        try:
            known = [moment.astimezone(timezone.utc).replace(tzinfo=None)
                     for moment in moments if moment is not None]  # fmt: skip
            ends = [moment + _TIME_UNIT for moment in known]
        except OverflowError:
            return None
        if len(known) < len(moments):
            return None  # texts are compared by their characters
        if condition.op in ("gt", "gte"):
            return self.column >= known[0]
        if condition.op in ("lt", "lte"):
            return self.column < ends[0]
        if condition.op in ("eq", "in"):
            pairs = zip(known, ends, strict=True)
            return or_(*(and_(self.column >= at, self.column < end) for at, end in pairs))
        return None


@dataclass(frozen=True)
class Part:
    """An attribute that a function makes of columns.

    :param of: returns it from a row with the columns, or ABSENT.
    :param json: the column whose JSON has all that the attribute shows; None: there is none.
    """

    columns: Collection[Made]
    of: Callable[[Any], Any]
    json: InstrumentedAttribute[Any] | None = None

    def shown(self, row: Any) -> Any:
        """See Attribute."""
        return self.of(row)

    def narrowed(self, _: Filter) -> Iterator[ColumnElement[bool]]:
        """See Attribute; for the JSON see :meth:`Resource.documents`."""
        return iter(())


def document(column: InstrumentedAttribute[Any], *, required: bool = False) -> Part:
    """Return an attribute that is a column with JSON.

    :param required: shown if it is empty, too.
    """
    name = column.key

    def of(row: Any) -> Any:
        value = getattr(row, name)
        return value if value or required else ABSENT

    return Part((column,), of, column)


@dataclass(frozen=True)
class Resource:
    """A resource, by its attributes.

    :param body: a column with JSON, whose attributes are those without a definition of their own;
        what is null there is absent: for SOL003 a null is no text.
    """

    attributes: Mapping[str, Attribute]
    body: InstrumentedAttribute[Any] | None = None

    def columns(self, names: Collection[str]) -> list[Made]:
        """Return what the attributes with these names are made of; REST: those of the body."""
        made = {
            column.key: column
            for name, attribute in self.attributes.items()
            if name in names
            for column in attribute.columns
        }
        if self.body is not None and any(name not in self.attributes for name in names):
            made[self.body.key] = self.body
        return list(made.values())

    def reader(self, names: Collection[str]) -> Callable[[Any], Json]:
        """Return a function that returns the attributes with these names of a row, and perhaps more
        of them; the row has at least :meth:`columns`."""
        read = [(name, self.attributes[name].shown) for name in names if name in self.attributes]
        body = self.body.key if self.body is not None else ""
        needs_body = bool(body) and any(name not in self.attributes for name in names)

        def represent(row: Any) -> Json:
            found = {name: value for name, shown in read if (value := shown(row)) is not ABSENT}
            if needs_body:
                rest = getattr(row, body)
                found |= {
                    name: value
                    for name, value in rest.items()
                    if name not in self.attributes and value is not None
                }
            return found

        return represent

    @property
    def names(self) -> list[str]:
        """The names of all attributes; REST stands for those of the body."""
        return [*self.attributes, REST]

    def named(self, root: Filter) -> Collection[str]:
        """Return the names of the attributes that a filter judges."""
        return self.names if KEYS in root.branches else root.branches.keys()

    def represent(self, row: Any) -> Json:
        """Return the whole resource."""
        return self.reader(self.names)(row)

    def narrowed(self, root: Filter) -> Iterator[ColumnElement[bool]]:
        """Yield what holds for each row that a filter finds."""
        for name, branch in root.branches.items():
            if name in self.attributes:
                yield from self.attributes[name].narrowed(branch)
            elif name != KEYS and self.body is None:
                yield false()  # there is no such attribute
        for column, part in self.documents(root):
            for texts in required_texts(part):
                yield or_(*(_contains(sa.cast(column, sa.Text), text) for text in texts))

    def documents(self, root: Filter) -> Iterator[tuple[InstrumentedAttribute[Any], Filter]]:
        """Yield the columns with JSON that a filter judges, and what it demands of each."""
        rest = Filter()
        for name, branch in root.branches.items():
            attribute = self.attributes.get(name)
            if isinstance(attribute, Part) and attribute.json is not None:
                yield attribute.json, branch
            elif attribute is None and name != KEYS:
                rest.branches[name] = branch
        if self.body is not None and rest.branches:
            yield self.body, rest


def _contains(column: sa.SQLColumnExpression[Any], text: str) -> ColumnElement[bool]:
    """Return whether a text is in a column; in SQLite perhaps in other letters (upper case)."""
    return column.contains(text, autoescape=True)
