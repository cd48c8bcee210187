# SPDX-License-Identifier: Apache-2.0
"""The resources under ``/view``: events, past operations, drafts of requests, a pod's log.

They are the page's own and change with it, so the OpenAPI document does not have them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import ColumnElement, or_, select

from container_update.model.objects import Json
from container_update.vnfm.api import parts
from container_update.vnfm.api.queries.lists import marker_of, place_of
from container_update.vnfm.batches import members_of
from container_update.vnfm.http.users import user_of
from container_update.vnfm.lcm.live import pod_details
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.queries import by_id
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Batch, Instance, OperationRow
from container_update.vnfm.view import drafts, summaries
from container_update.vnfm.view.events import MAX_VIEWERS, MEDIA_TYPE, events
from container_update.vnfm.view.feed import Feed, Sections
from container_update.vnfm.view.resources import LiveResources
from container_update.vnfm.view.table import Wanted

_PAGE_SIZE = 50
_THREADS = 16
"""In which the events of all viewers are read."""
_Text = Annotated[str, Query(**parts.QUERY_TEXT)]


def router(service: ServiceContext) -> APIRouter:
    """Return the resources."""
    routes = APIRouter(prefix="/view", include_in_schema=False)
    _add_events(routes, service)
    _add_operations(routes, service)
    _add_drafts(routes, service)
    _add_pods(routes, service)
    return routes


def _add_events(routes: APIRouter, service: ServiceContext) -> None:
    feed, live = Feed(service), LiveResources(service)
    viewers: set[Request] = set()
    threads = CapacityLimiter(_THREADS)

    @routes.get("/events", response_class=StreamingResponse)
    async def watch(request: Request, wanted: Annotated[Wanted, Depends()]) -> StreamingResponse:
        """Send what the page shows, and from then on what changes of it."""
        if len(viewers) >= MAX_VIEWERS:
            raise ProblemError(
                503, f"{MAX_VIEWERS} viewers are connected: close a page that is not needed",
                headers={"Retry-After": "10"},
            )  # fmt: skip
        user = user_of(request)
        hello = json.dumps({"user": user.name, "mayChange": user.may_change})

        def read() -> Sections:
            sections = feed.read().seen(wanted)
            shown = [wanted.instance] if wanted.instance in sections["instances"] else []
            return {**sections, "resources": {id_: live.read(id_) for id_ in shown}}

        async def stream() -> AsyncIterator[str]:
            viewers.add(request)
            try:
                async for text in events(hello, read, threads):
                    yield text
            finally:
                viewers.discard(request)

        return StreamingResponse(stream(), media_type=MEDIA_TYPE)


def _add_operations(routes: APIRouter, service: ServiceContext) -> None:
    @routes.get("/operations")
    def past(
        instance: _Text = "",
        text: _Text = "",
        operation: _Text = "",
        state: _Text = "",
        before: str = "",
    ) -> list[Json]:
        """Return operations, the last one first, 50 at a time; who looks for nothing in particular
        gets a batch in place of its operations.

        :param instance: of this VNF instance only.
        :param text: is in the instance's name, the user's name or the name of a package.
        :param operation: the LcmOperationType.
        :param state: the LcmOperationStateType.
        :param before: the marker of an entry: those behind it.
        """
        query = select(OperationRow).order_by(OperationRow.started.desc(), OperationRow.id)
        batches = select(Batch).order_by(Batch.started.desc(), Batch.id)
        given = {
            OperationRow.instance_id: instance,
            OperationRow.operation: operation,
            OperationRow.state: state,
        }
        is_all = not any((*given.values(), text))
        if is_all:
            query = query.where(OperationRow.batch_id.is_(None))
        query = query.where(*(column == value for column, value in given.items() if value))
        if text:
            columns = (
                OperationRow.instance_name, OperationRow.requested_by, OperationRow.old_package,
                OperationRow.new_package, OperationRow.id,
            )  # fmt: skip
            query = query.where(or_(*(each.icontains(text, autoescape=True) for each in columns)))
        if before:
            started, id_ = place_of(before, "before: expected the marker of an entry")
            query = query.where(*_behind(OperationRow, started, id_))
            batches = batches.where(*_behind(Batch, started, id_))
        entries: list[tuple[datetime, str, Json]] = []
        with service.database.reading() as session:
            for row in session.scalars(query.limit(_PAGE_SIZE)):
                entries.append((row.started, row.id, summaries.operation(row)))
            for each in session.scalars(batches.limit(_PAGE_SIZE if is_all else 0)):
                shown = summaries.batch(each, members_of(session, each))
                entries.append((each.started, each.id, shown))
        entries.sort(key=lambda entry: entry[1])
        entries.sort(key=lambda entry: entry[0], reverse=True)
        return [
            {**shown, "marker": marker_of((started, id_))}
            for started, id_, shown in entries[:_PAGE_SIZE]
        ]


def _behind(
    table: type[OperationRow | Batch], started: datetime, id_: str
) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of what is behind an entry of the history."""
    return table.started <= started, or_(table.started < started, table.id > id_)


def _add_drafts(routes: APIRouter, service: ServiceContext) -> None:
    @routes.get("/drafts/{api}/{instance_id}")
    def draft(api: str, instance_id: str, operation: _Text, vnfd_id: _Text = "") -> Json:
        """Return the body of a request about a VNF instance, to be completed by a person."""
        with service.database.reading() as session, parts.unprocessable(service):
            row = by_id(session, Instance, instance_id, api)
            return drafts.draft(service, session, row, operation, vnfd_id)


def _add_pods(routes: APIRouter, service: ServiceContext) -> None:
    @routes.get("/pods/{api}/{instance_id}/{name}")
    def pod(api: str, instance_id: str, name: str) -> Json:
        """Return the last Events of a pod of a VNF instance, and the end of its logs."""
        with service.database.reading() as session:
            row = by_id(session, Instance, instance_id, api)
        return pod_details.details_of(service, row, name)
