# SPDX-License-Identifier: Apache-2.0
"""Lists of resources: filters and pages (SOL013 clauses 5.2 and 5.4).

Rows are read and judged in their order until a page is full.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from container_update.model.objects import Json
from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.api.queries.query_filters import Filter
from container_update.vnfm.api.queries.rest_resources import RestResource
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext

# --- the selection of a list's entries and of their attributes: SOL013 clauses 5.2 and 5.3 -------
#
# none, or exclude_default             all but the attributes that are hidden by default
# all_fields                           all
# fields=a,b/c                         the required ones and these
# fields=a,b/c and exclude_default     all but the hidden ones, and these
# exclude_fields=a,b/c                 all but these; a required one stays


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
        """Read the selectors; ProblemError 400: one is wrong, or two of them exclude each other."""
        given = SELECTORS & query.keys()
        if len(given) > 1 and given != {"fields", "exclude_default"}:
            raise ProblemError(
                400,
                f"{', '.join(sorted(given))} exclude each other: only fields and exclude_default "
                "go together (SOL013 clause 5.3)",
            )
        fields, excluded = _list_values(query, "fields"), _list_values(query, "exclude_fields")
        if given == {"all_fields"}:
            return cls(None, {})
        if given == {"exclude_fields"}:
            return cls(None, _tree(path for path in excluded if path[0] not in attributes.required))
        if given == {"fields"}:
            return cls(_tree([*fields, *([name] for name in attributes.required)]), {})
        hidden = (query_filters.path_of(path) for path in attributes.hidden)
        return cls(None, _tree(path for path in hidden if not _overlaps(path, fields)))

    def names(self, known: Iterable[str]) -> list[str]:
        """Return the names of the attributes of which something is left, of all that are known."""
        if self.keep is not None:
            return list(self.keep)
        return [name for name in known if self.drop.get(name) != {}]

    def apply(self, body: Json) -> Json:
        """Return the rest of a resource."""
        return dict(_without(body if self.keep is None else _keep(body, self.keep), self.drop))


def _list_values(query: Mapping[str, str], name: str) -> list[list[str]]:
    paths = query[name].split(",") if name in query else []
    if len(paths) > _MAX_FIELDS:
        raise ProblemError(
            400, f"{name}: expected at most {_MAX_FIELDS} attributes, found {len(paths)}"
        )
    return [query_filters.path_of(path, name) for path in paths]


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


def _keep(value: Any, paths: _Paths) -> Any:
    if paths and isinstance(value, list):
        return [_keep(entry, paths) for entry in value]
    if paths and isinstance(value, dict):
        return {name: _keep(value[name], below) for name, below in paths.items() if name in value}
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


# --- the rows of a table ------------------------------------------------------------------------

_MARKER = "nextpage_opaque_marker"
_PARAMETERS = SELECTORS | {"filter", _MARKER}
_CREATED, _ID = "place_created", "place_id"
"""Labels of their own: an attribute may need the same columns."""
Place = tuple[datetime, str]
"""Where a row is in its list: when it was created, and its id."""


@dataclass(frozen=True)
class TableQuery:
    """How the resources of a table are listed, the oldest first."""

    resource: RestResource
    created: InstrumentedAttribute[datetime]
    id: InstrumentedAttribute[str]
    attributes: Attributes = field(default_factory=Attributes)

    def find(
        self, session: Session, query: Select[Any], root: Filter, marker: str | None, size: int
    ) -> Iterator[Any]:
        """Yield the rows that a filter finds, each with its place first, behind that of a marker.

        :param size: the number of rows that are taken from the database at a time.
        """
        place = [self.created.label(_CREATED), self.id.label(_ID)]
        columns: list[Any] = [*place, *self.resource.columns]
        if marker is not None:
            behind = place_of(marker, f"{_MARKER}: expected one from a Link header")
            query = query.where(self.behind(behind))
        judged = self.resource.attribute_names(root)
        with session.execute(
            query.with_only_columns(*columns).order_by(self.created, self.id),
            execution_options={"yield_per": size},
        ) as rows:
            for row in rows:
                if root.matches(self.resource.represent(row, judged)):
                    yield row

    def show(self, session: Session, row_id: str) -> Json:
        """Return the whole resource with an id."""
        of_id = select(*self.resource.columns).where(self.id == row_id)
        return self.resource.represent(session.execute(of_id).one())

    def behind(self, place: Place) -> ColumnElement[bool]:
        """Return the condition for the rows behind a place."""
        created, row_id = place
        behind = or_(self.created > created, self.id > row_id)
        return and_(self.created >= created, behind)  # the first part finds its place in an index


def marker_of(place: Place) -> str:
    """Return the marker of a page that ends at a place."""
    created, row_id = place
    return base64.urlsafe_b64encode(json.dumps([created.isoformat(), row_id]).encode()).decode()


def place_of(marker: str, expected: str) -> Place:
    """Return the place of a marker; ProblemError 400: it is none of :func:`marker_of`."""
    try:
        created, row_id = json.loads(base64.urlsafe_b64decode(marker.encode("ascii")))
        moment = datetime.fromisoformat(created)
        if moment.tzinfo is not None or not row_id.isprintable():
            raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ProblemError(400, expected) from None
    return moment, row_id


class PageRequest:
    """The parameters of a request for a list, and the headers of its response (SOL013, 5.4)."""

    def __init__(self, request: Request, response: Response) -> None:
        self._path = request.url.path
        self._headers = response.headers
        self._parameters: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            known = name.replace("-", "_")  # python-tackerclient writes exclude-fields
            if known not in _PARAMETERS:
                expected = ", ".join(sorted(_PARAMETERS))
                raise ProblemError(400, f"query: expected {expected}, found {name[:64]!r}")
            if known in self._parameters:
                raise ProblemError(400, f"query: {known} is there twice: put all into one")
            self._parameters[known] = value

    def read(self, service: ServiceContext, query: Select[Any], listing: TableQuery) -> list[Json]:
        """Return one page of what the parameters select; ``Link`` leads to the next one."""
        text, size = self._parameters.get("filter"), service.settings.page_size
        marker = self._parameters.pop(_MARKER, None)
        root = Filter() if text is None else query_filters.parse(text)
        selection = Selection.of(self._parameters, listing.attributes)
        if unknown := listing.resource.unknown(selection.keep or ()):
            raise ProblemError(400, f"query: the resource has no attribute {unknown[0][:64]!r}")
        shown = selection.names(listing.resource.names)
        with service.database.reading() as session:
            rows = list(islice(listing.find(session, query, root, marker, size + 1), size + 1))
        if len(rows) > size:
            created, row_id, *_ = rows[size - 1]
            following = urlencode({**self._parameters, _MARKER: marker_of((created, row_id))})
            self._headers["Link"] = f'<{self._path}?{following}>; rel="next"'
        return [selection.apply(listing.resource.represent(row, shown)) for row in rows[:size]]


Page = Annotated[PageRequest, Depends(PageRequest)]
"""A dependency of FastAPI."""
