# SPDX-License-Identifier: Apache-2.0
"""Resources: the columns that attributes are made of, and how they are shown.

An attribute has one definition. So what a filter judges of a row is what the whole resource shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute

from container_update.model.objects import Json
from container_update.vnfm.api.queries.query_filters import KEYS, Filter
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

    :param shown: returns its value in a row with these columns, or ABSENT.
    """

    columns: Collection[Made]
    shown: Callable[[Any], Any]


def constant(value: bool) -> Attribute:
    """Return an attribute that is the same in all rows."""
    return Attribute((), lambda _: value)


def choice(column: Made, texts: Mapping[Any, str]) -> Attribute:
    """Return an attribute that is a column with few values, each with its text."""
    return Attribute((column,), lambda row: texts[getattr(row, column.key)])


def text(column: InstrumentedAttribute[Any]) -> Attribute:
    """Return an attribute that is a column with any text, absent if it is NULL."""

    def represent_value(row: Any) -> Any:
        value = getattr(row, column.key)
        return ABSENT if value is None else value

    return Attribute((column,), represent_value)


def time(column: InstrumentedAttribute[datetime]) -> Attribute:
    """Return an attribute that is a column with a time, which it shows in milliseconds."""
    return Attribute((column,), lambda row: timestamp(getattr(row, column.key)))


def document(column: InstrumentedAttribute[Any], *, required: bool = False) -> Attribute:
    """Return an attribute that is a column with JSON; a *required* one is shown empty too."""
    name = column.key

    def of(row: Any) -> Any:
        value = getattr(row, name)
        return value if value or required else ABSENT

    return Attribute((column,), of)


@dataclass(frozen=True)
class RestResource:
    """A resource, by its attributes.

    :param body: a column with JSON, whose attributes are those without a definition of their own;
        what is null there is absent: for SOL003 a null is no text.
    """

    attributes: Mapping[str, Attribute]
    body: InstrumentedAttribute[Any] | None = None
    absent: frozenset[str] = frozenset()
    """Attributes of the specification that this service has no value for."""

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return the names that no attribute has; none where there is a body, which has any."""
        if self.body is not None:
            return []
        return [each for each in names if each not in self.attributes and each not in self.absent]

    @cached_property
    def columns(self) -> list[Made]:
        """What the attributes are made of."""
        made = {column.key: column for each in self.attributes.values() for column in each.columns}
        if self.body is not None:
            made[self.body.key] = self.body
        return list(made.values())

    @property
    def names(self) -> list[str]:
        """The names of all attributes; REST stands for those of the body."""
        return [*self.attributes, REST]

    def attribute_names(self, root: Filter) -> Collection[str]:
        """Return the names of the attributes that a filter judges."""
        return self.names if KEYS in root.branches else root.branches.keys()

    def represent(self, row: Any, names: Collection[str] | None = None) -> Json:
        """Return the attributes with these names of a row, and perhaps more; None: all."""
        names = self.names if names is None else names
        values = {
            name: value
            for name in names
            if name in self.attributes and (value := self.attributes[name].shown(row)) is not ABSENT
        }
        if self.body is not None and any(name not in self.attributes for name in names):
            values |= {
                name: value
                for name, value in getattr(row, self.body.key).items()
                if name not in self.attributes and value is not None
            }
        return values
