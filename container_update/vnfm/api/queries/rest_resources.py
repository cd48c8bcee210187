# SPDX-License-Identifier: Apache-2.0
"""Resources: the columns that attributes are made of, how they are shown, what a database can tell.

An attribute has one definition. So what a filter judges of a row, with only the columns that it
names, is what the whole resource shows.

What a database tells of a filter has to hold for each row that the filter finds; it may hold for
others as well. Those are judged by the filter itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa
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


@dataclass(frozen=True)
class Attribute:
    """An attribute of a resource.

    :param columns: what it is made of.
    :param shown: returns its value in a row with these columns, or ABSENT.
    :param narrowed: yields what holds for each row in which it satisfies a part of a filter.
    :param json: the column whose JSON has all that the attribute shows (for it see
        :meth:`Resource.documents`); None: there is none.
    """

    columns: Collection[Made]
    shown: Callable[[Any], Any]
    narrowed: Callable[[Filter], Iterable[sa.ColumnElement[bool]]] = lambda _: ()
    json: InstrumentedAttribute[Any] | None = None


def constant(value: bool) -> Attribute:
    """Return an attribute that is the same in all rows."""
    return Attribute((), lambda _: value, lambda part: () if part.matches(value) else (sa.false(),))


def choice(column: Made, texts: Mapping[Any, str]) -> Attribute:
    """Return an attribute that is a column with few values.

    :param texts: each value of the column, and how it is shown.
    """
    expression = column.element if isinstance(column, sa.Label) else column

    def narrowed(branch: Filter) -> Iterator[sa.ColumnElement[bool]]:
        values = [value for value, text in texts.items() if branch.matches(text)]
        if len(values) < len(texts):
            yield expression.in_(values)

    return Attribute((column,), lambda row: texts[getattr(row, column.key)], narrowed)


def _scalar(
    column: InstrumentedAttribute[Any],
    shown: Callable[[Any], Any],
    by: Callable[[InstrumentedAttribute[Any], Condition], sa.ColumnElement[bool] | None],
) -> Attribute:
    """Return an attribute that is a scalar in a column of its own.

    :param shown: returns what is shown of a value of the column.
    :param by: returns what holds if the attribute satisfies a condition; None: nothing is known.
    """

    def narrowed(branch: Filter) -> Iterator[sa.ColumnElement[bool]]:
        if branch.branches:
            yield sa.false()  # there is nothing below a scalar
        for condition in branch.conditions:
            if (holds := by(column, condition)) is not None:
                yield holds

    return Attribute((column,), lambda row: shown(getattr(row, column.key)), narrowed)


def text(column: InstrumentedAttribute[Any]) -> Attribute:
    """Return an attribute that is a column with any text, absent if it is NULL."""
    return _scalar(column, lambda value: ABSENT if value is None else value, _text_by)


def _text_by(
    column: InstrumentedAttribute[Any], condition: Condition
) -> sa.ColumnElement[bool] | None:
    """See :func:`_scalar`.

    Values that are times are compared as such, and not by a database; nor are those with characters
    that one may not take. Which text comes first depends on the database, too.
    """
    if not all(map(str.isprintable, condition.values)):
        return None
    if condition.op == "cont":
        return sa.or_(*(_contains(column, value) for value in condition.values))
    if any(map(query_filters.moment_of, condition.values)):
        return None
    if condition.op in ("eq", "in"):
        return column.in_(condition.values)
    if condition.op in ("neq", "nin"):
        return column.not_in(condition.values)
    return None


def time(column: InstrumentedAttribute[datetime]) -> Attribute:
    """Return an attribute that is a column with a time, which it shows in milliseconds."""
    return _scalar(column, timestamp, _time_by)


def _time_by(
    column: InstrumentedAttribute[datetime], condition: Condition
) -> sa.ColumnElement[bool] | None:
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
        return column >= known[0]
    if condition.op in ("lt", "lte"):
        return column < ends[0]
    if condition.op in ("eq", "in"):
        pairs = zip(known, ends, strict=True)
        return sa.or_(*(sa.and_(column >= at, column < end) for at, end in pairs))
    return None


def document(column: InstrumentedAttribute[Any], *, required: bool = False) -> Attribute:
    """Return an attribute that is a column with JSON.

    :param required: shown if it is empty, too.
    """
    name = column.key

    def of(row: Any) -> Any:
        value = getattr(row, name)
        return value if value or required else ABSENT

    return Attribute((column,), of, json=column)


@dataclass(frozen=True)
class RestResource:
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
            values = {name: value for name, shown in read if (value := shown(row)) is not ABSENT}
            if needs_body:
                rest = getattr(row, body)
                values |= {
                    name: value
                    for name, value in rest.items()
                    if name not in self.attributes and value is not None
                }
            return values

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

    def narrowed(self, root: Filter) -> Iterator[sa.ColumnElement[bool]]:
        """Yield what holds for each row that a filter finds."""
        for name, branch in root.branches.items():
            if name in self.attributes:
                yield from self.attributes[name].narrowed(branch)
            elif name != KEYS and self.body is None:
                yield sa.false()  # there is no such attribute
        for column, part in self.documents(root):
            for texts in required_texts(part):
                yield sa.or_(*(_contains(sa.cast(column, sa.Text), text) for text in texts))

    def documents(self, root: Filter) -> Iterator[tuple[InstrumentedAttribute[Any], Filter]]:
        """Yield the columns with JSON that a filter judges, and what it demands of each."""
        rest = Filter()
        for name, branch in root.branches.items():
            attribute = self.attributes.get(name)
            if attribute is not None and attribute.json is not None:
                yield attribute.json, branch
            elif attribute is None and name != KEYS:
                rest.branches[name] = branch
        if self.body is not None and rest.branches:
            yield self.body, rest


def _contains(column: sa.SQLColumnExpression[Any], text: str) -> sa.ColumnElement[bool]:
    """Return whether a text is in a column; in SQLite perhaps in other letters (upper case)."""
    return column.contains(text, autoescape=True)
