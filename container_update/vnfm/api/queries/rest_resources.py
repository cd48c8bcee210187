# SPDX-License-Identifier: Apache-2.0
"""Resources: the columns that attributes are made of, and how they are shown.

An attribute has one definition. So what a filter judges of a row is what the whole resource shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute

from container_update.model.objects import Json
from container_update.vnfm.api.queries.query_filters import KEYS, Filter

REST = ""
"""Stands for all attributes without a definition of their own; no path has this name."""


@dataclass(frozen=True)
class RestResource:
    """A resource, by its attributes.

    :param columns: what is read of a row.
    :param attributes: each returns its value in such a row; None where the resource does not have
        it: for SOL003 a null is no text.
    :param has_body: the attributes without a definition of their own are in the column ``body``.
    """

    columns: Sequence[InstrumentedAttribute[Any] | sa.Label[Any]]
    attributes: Mapping[str, Callable[[Any], Any]]
    has_body: bool = False
    absent: frozenset[str] = frozenset()
    """Attributes of the specification that this service has no value for."""

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return the names that no attribute has; none where there is a body, which has any."""
        if self.has_body:
            return []
        return [each for each in names if each not in self.attributes and each not in self.absent]

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
        values = {name: self.attributes[name](row) for name in names if name in self.attributes}
        if self.has_body and any(name not in self.attributes for name in names):
            values |= {n: value for n, value in row.body.items() if n not in self.attributes}
        return {name: value for name, value in values.items() if value is not None}
