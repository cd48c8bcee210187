# SPDX-License-Identifier: Apache-2.0
"""The selection of a list's entries and of their attributes: SOL013 clauses 5.2 and 5.3. Pure.

The parameters of clause 5.3:

======================================  =========================================================
none, or ``exclude_default``            all but the attributes that are hidden by default
``all_fields``                          all
``fields=a,b/c``                        the required ones and these
``fields=a,b/c`` and ``exclude_default``  all but the hidden ones, and these
``exclude_fields=a,b/c``                all but these; a required one stays
======================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.problems import ProblemError

_MAX_FIELDS = 64
SELECTORS = frozenset({"all_fields", "fields", "exclude_fields", "exclude_default"})

_Paths = dict[str, Any]
"""Paths as a tree of attributes; an empty branch stands for everything below it."""


@dataclass(frozen=True)
class Attributes:
    """The attributes of a resource that the specification treats specially."""

    required: frozenset[str] = frozenset()
    """Those with a minimum cardinality of one; they are in every answer."""
    hidden: tuple[str, ...] = ()
    """The paths that are excluded by default."""


@dataclass(frozen=True)
class Selection:
    """What the selectors of a request leave of each resource."""

    keep: _Paths | None
    """The attributes to keep, None for all."""
    drop: _Paths
    """Those of them to drop."""

    @classmethod
    def of(cls, query: Mapping[str, str], attributes: Attributes) -> Selection:
        """Read the selectors.

        :param query: the request's query parameters; those of other clauses are ignored.
        :raises ProblemError: 400: a parameter is wrong, or two of them exclude each other.
        """
        return cls(*_selection(query, attributes))

    def names(self, known: Iterable[str]) -> list[str]:
        """Return the names of the attributes of which something is left, of all that are known."""
        if self.keep is not None:
            return list(self.keep)
        return [name for name in known if self.drop.get(name) != {}]

    def apply(self, body: Json) -> Json:
        """Return what is left of a resource."""
        return dict(_without(body if self.keep is None else _kept(body, self.keep), self.drop))


def _selection(query: Mapping[str, str], attributes: Attributes) -> tuple[_Paths | None, _Paths]:
    """Return the attributes to keep, None for all, and those of them to drop."""
    given = SELECTORS & query.keys()
    if len(given) > 1 and given != {"fields", "exclude_default"}:
        raise ProblemError(
            400,
            f"{', '.join(sorted(given))} exclude each other: only fields and exclude_default "
            "go together (SOL013 clause 5.3)",
        )
    fields, excluded = _listed(query, "fields"), _listed(query, "exclude_fields")
    if given == {"all_fields"}:
        return None, {}
    if given == {"exclude_fields"}:
        return None, _tree(path for path in excluded if path[0] not in attributes.required)
    if given == {"fields"}:
        return _tree([*fields, *([name] for name in attributes.required)]), {}
    hidden = (query_filters.path_of(path) for path in attributes.hidden)
    return None, _tree(path for path in hidden if not _overlaps(path, fields))


def _listed(query: Mapping[str, str], name: str) -> list[list[str]]:
    paths = query[name].split(",") if name in query else []
    if len(paths) > _MAX_FIELDS:
        raise ProblemError(
            400, f"{name}: expected at most {_MAX_FIELDS} attributes, found {len(paths)}"
        )
    return [query_filters.path_of(path) for path in paths]


def _overlaps(path: list[str], listed: list[list[str]]) -> bool:
    """Return whether the path, one above it or one below it is listed."""
    return any(path[: len(other)] == other[: len(path)] for other in listed)


def _tree(paths: Iterable[list[str]]) -> _Paths:
    """Return the paths as a tree; a path absorbs those below it."""
    root: _Paths = {}
    for path in sorted(paths, key=len, reverse=True):
        branch = root
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = {}
    return root


def _kept(value: Any, paths: _Paths) -> Any:
    if paths and isinstance(value, list):
        return [_kept(entry, paths) for entry in value]
    if paths and isinstance(value, dict):
        return {name: _kept(value[name], below) for name, below in paths.items() if name in value}
    return value


def _without(value: Any, paths: _Paths) -> Any:
    if paths and isinstance(value, list):
        return [_without(entry, paths) for entry in value]
    if paths and isinstance(value, dict):
        return {
            name: _without(below, paths.get(name, {}))
            for name, below in value.items()
            if paths.get(name) != {}
        }
    return value
