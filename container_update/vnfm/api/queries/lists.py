"""Lists of resources: filters that the database applies, and pages (SOL013 clauses 5.2 and 5.4).

The database leaves out what a filter's expressions about columns exclude; what remains is judged by
the whole filter. So a column only has to find every row that the filter could find. Rows are read
in batches until a page is full.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Protocol
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from sqlalchemy import ColumnElement, Select, and_, or_
from sqlalchemy.orm import InstrumentedAttribute, Session

from container_update.model.objects import Json
from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.api.queries.attribute_selectors import Attributes, select
from container_update.vnfm.api.queries.query_filters import Condition, Filter
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext

_MARKER = "nextpage_opaque_marker"
_BATCH = 200
"""Maximum number of rows that are in memory beside those of the page."""
_TIME_UNIT = timedelta(milliseconds=1)
"""What is shown of a time of the tables is cut to this."""


class Column(Protocol):
    """An attribute of a resource that is a column."""

    def narrowed(self, condition: Condition) -> ColumnElement[bool] | None:
        """Return what holds for each row whose attribute satisfies a condition; None: nothing."""


@dataclass(frozen=True)
class Text:
    """A column with any text. Values that are times are compared as such, and not here; nor are
    those with characters that a database may not take."""

    column: InstrumentedAttribute[Any]

    def narrowed(self, condition: Condition) -> ColumnElement[bool] | None:
        """See Column."""
        if any(
            query_filters.moment_of(value) or not value.isprintable() for value in condition.values
        ):
            return None
        if condition.op in ("eq", "in"):
            return self.column.in_(condition.values)
        if condition.op in ("neq", "nin"):
            return self.column.not_in(condition.values)
        return None


@dataclass(frozen=True)
class Choice:
    """A column with few values.

    :param values: each text that the attribute may be, and the column's value for it.
    """

    column: InstrumentedAttribute[Any]
    values: Mapping[str, Any]

    def narrowed(self, condition: Condition) -> ColumnElement[bool] | None:
        """See Column."""
        return self.column.in_(
            [value for text, value in self.values.items() if condition.holds(text)]
        )


@dataclass(frozen=True)
class Time:
    """A column with a time, which the attribute shows in milliseconds."""

    column: InstrumentedAttribute[datetime]

    def narrowed(self, condition: Condition) -> ColumnElement[bool] | None:
        """See Column."""
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
class Listing:
    """How the resources of a table are listed, the oldest first."""

    represent: Callable[[Session, Any], Json]
    created: InstrumentedAttribute[datetime]
    id: InstrumentedAttribute[str]
    columns: Mapping[str, Column]
    """The attributes that are columns."""
    attributes: Attributes = field(default_factory=Attributes)

    def narrowed(self, root: Filter) -> Iterator[ColumnElement[bool]]:
        """Yield what holds for each row that a filter finds."""
        for name, column in self.columns.items():
            branch = root.branches.get(name, Filter())
            for condition in branch.conditions:
                if (narrowed := column.narrowed(condition)) is not None:
                    yield narrowed

    def after(self, marker: str) -> ColumnElement[bool]:
        """Return the condition for the rows behind the last one of a page.

        :raises ProblemError: 400: the marker is none of :meth:`marker`.
        """
        try:
            created, row_id = json.loads(base64.urlsafe_b64decode(marker.encode("ascii")))
            moment = datetime.fromisoformat(created)
            if moment.tzinfo is not None or not row_id.isprintable():
                raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ProblemError(400, f"{_MARKER}: expected one from a Link header") from None
        behind = or_(self.created > moment, self.id > row_id)
        return and_(self.created >= moment, behind)  # the first part finds its place in an index

    def marker(self, row: Any) -> str:
        """Return the marker of a page that ends with a row."""
        place = [getattr(row, self.created.key).isoformat(), getattr(row, self.id.key)]
        return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


class PageRequest:
    """The parameters of a request for a list, and the headers of its response (SOL013, 5.4)."""

    def __init__(self, request: Request, response: Response) -> None:
        self._path = request.url.path
        self._parameters = dict(request.query_params)
        self._headers = response.headers

    def read(self, service: ServiceContext, query: Select[Any], listing: Listing) -> list[Json]:
        """Return one page of what the parameters select; ``Link`` leads to the next one.

        :param query: all rows, without an order.
        """
        text, size = self._parameters.get("filter"), service.settings.page_size
        marker = self._parameters.pop(_MARKER, None)
        root = Filter() if text is None else query_filters.parse(text)
        query = query.where(*listing.narrowed(root)).order_by(listing.created, listing.id)
        found: list[Json] = []
        end = ""
        with service.database.reading() as session:
            for row, body in _rows(session, query, listing, marker, min(size + 1, _BATCH)):
                if text is not None and not root.matches(body):
                    continue
                if len(found) == size:
                    following = urlencode({**self._parameters, _MARKER: end})
                    self._headers["Link"] = f'<{self._path}?{following}>; rel="next"'
                    break
                found.append(body)
                end = listing.marker(row)
        return select(found, self._parameters, listing.attributes)


def _rows(
    session: Session, query: Select[Any], listing: Listing, marker: str | None, batch: int
) -> Iterator[tuple[Any, Json]]:
    """Yield the rows behind a marker, and what they represent, batch by batch."""
    while True:
        limited = query if marker is None else query.where(listing.after(marker))
        rows = list(session.scalars(limited.limit(batch)))
        for row in rows:
            yield row, listing.represent(session, row)
        if len(rows) < batch:
            return
        marker, batch = listing.marker(rows[-1]), _BATCH
        session.expunge_all()


Page = Annotated[PageRequest, Depends(PageRequest)]
"""A dependency of FastAPI."""
