# SPDX-License-Identifier: Apache-2.0
"""Resources: the columns that attributes are made of, and how they are shown.

An attribute has one definition. So what a filter judges of a row, with only the columns that it
names, is what the whole resource shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.orm import InstrumentedAttribute

from container_update.model.objects import Json
from container_update.vnfm.api.queries.query_filters import KEYS, Filter, moment_of
from container_update.vnfm.store.database import timestamp

ABSENT: Any = object()
"""Stands for an attribute that a resource does not have."""
REST = ""
"""Stands for all attributes without a definition of their own; no path has this name."""

Made = InstrumentedAttribute[Any] | sa.Label[Any]
"""What an attribute is made of."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a resource.

    :param of: returns it from a row with these columns, or ABSENT.
    :param text: the column with just what is shown, where that is a text.
    """

    columns: Collection[Made]
    of: Callable[[Any], Any]
    text: InstrumentedAttribute[Any] | None = None


def constant(value: Any) -> Attribute:
    """Return an attribute that is the same in all rows."""
    return Attribute((), lambda _: value)


def plain(column: InstrumentedAttribute[Any]) -> Attribute:
    """Return an attribute that is a column with a text, absent if it is NULL."""

    def of(row: Any) -> Any:
        value = getattr(row, column.key)
        return ABSENT if value is None else value

    return Attribute((column,), of, column)


def choice(column: Made, texts: Mapping[Any, str]) -> Attribute:
    """Return an attribute that is a column with few values.

    :param texts: each value of the column, and how it is shown.
    """
    return Attribute((column,), lambda row: texts[getattr(row, column.key)])


def time(column: InstrumentedAttribute[Any]) -> Attribute:
    """Return an attribute that is a column with a time."""
    return Attribute((column,), lambda row: timestamp(getattr(row, column.key)))


def document(column: InstrumentedAttribute[Any], *, required: bool = False) -> Attribute:
    """Return an attribute that is a column with JSON.

    :param required: shown if it is empty, too.
    """

    def of(row: Any) -> Any:
        value = getattr(row, column.key)
        return value if value or required else ABSENT

    return Attribute((column,), of)


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
        read = [(name, self.attributes[name].of) for name in names if name in self.attributes]
        body = self.body.key if self.body is not None else ""
        needs_body = bool(body) and any(name not in self.attributes for name in names)

        def represent(row: Any) -> Json:
            found = {name: value for name, of in read if (value := of(row)) is not ABSENT}
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

    def narrowed(self, root: Filter) -> Iterator[ColumnElement[bool]]:
        """Yield what holds for each row that a filter finds, where an index may know it: which text
        an attribute is. Of a time there are several texts, and some a database does not take."""
        for name, branch in root.branches.items():
            column = self.attributes[name].text if name in self.attributes else None
            if column is None:
                continue
            for condition in branch.conditions:
                texts = [v for v in condition.values if v.isprintable() and not moment_of(v)]
                if condition.op in ("eq", "in") and len(texts) == len(condition.values):
                    yield column.in_(texts)

    def represent(self, row: Any) -> Json:
        """Return the whole resource."""
        return self.reader(self.names)(row)
