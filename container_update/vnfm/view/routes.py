# SPDX-License-Identifier: Apache-2.0
"""The resources under ``/view``: events, past operations, drafts of requests, a pod's log.

They are the page's own and change with it, so the OpenAPI document does not have them.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.model.requests import CONFIG_PATHS, DEF_FILES, UPGRADE_TYPE
from container_update.package.csar import Csar
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.api import parts
from container_update.vnfm.api.queries.lists import marker_of, place_of
from container_update.vnfm.batches import members_of
from container_update.vnfm.http.authentication import user_of
from container_update.vnfm.lcm.live.resources import details_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Batch, Instance, OperationRow, by_id
from container_update.vnfm.view import summaries
from container_update.vnfm.view.feed import PACE_SECONDS, Feed, Sections, live_resources
from container_update.vnfm.view.summaries import Wanted

_PAGE_SIZE = 50
_THREADS = 16
"""In which the events of all viewers are read."""
_Text = Annotated[str, Query(**parts.QUERY_TEXT)]


def router(service: ServiceContext) -> APIRouter:
    """Return the resources."""
    routes = APIRouter(prefix="/view", include_in_schema=False)
    _add_events(routes, service)
    _add_operations(routes, service)

    @routes.get("/drafts/{api}/{instance_id}")
    def draft(api: str, instance_id: str, operation: _Text, vnfd_id: _Text = "") -> Json:
        """Return the body of a request about a VNF instance, to be completed by a person."""
        with service.database.reading() as session, parts.unprocessable(service):
            row = by_id(session, Instance, instance_id, api)
            return _draft(service, session, row, operation, vnfd_id)

    @routes.get(
        "/pods/{api}/{instance_id}/{name}", dependencies=[Depends(service.vim_requests.count)]
    )
    def pod(api: str, instance_id: str, name: str) -> Json:
        """Return the last Events of a pod of a VNF instance, and the end of its logs."""
        with service.database.reading() as session:
            row = by_id(session, Instance, instance_id, api)
        return details_of(service, row.id, name)

    return routes


def _add_events(routes: APIRouter, service: ServiceContext) -> None:
    feed, live = Feed(service), live_resources(service)
    threads = CapacityLimiter(_THREADS)

    @routes.get("/events", response_class=StreamingResponse)
    async def watch(request: Request, wanted: Annotated[Wanted, Depends()]) -> StreamingResponse:
        """Send what the page shows, and from then on what changes of it."""
        user = user_of(request)
        service.viewers.refuse_more(user.name)
        hello = json.dumps({"user": user.name, "mayChange": user.may_change})

        def read() -> Sections:
            sections = feed.read().sections_for(wanted)
            shown = [wanted.instance] if wanted.instance in sections["instances"] else []
            return {**sections, "resources": {id_: live(id_) for id_ in shown}}

        async def stream() -> AsyncIterator[str]:
            # others that were not refused either may have begun since: this one ends
            with suppress(ProblemError), service.viewers.take(user.name):
                async for text in events(hello, read, threads):
                    yield text

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

        :param text: is in the name of the instance, the user or a package, or in the reason.
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
                OperationRow.instance_name, OperationRow.requested_by, OperationRow.why,
                OperationRow.old_package, OperationRow.new_package, OperationRow.id,
            )  # fmt: skip
            query = query.where(or_(*(each.icontains(text, autoescape=True) for each in columns)))
        if before:
            started, id_ = place_of(before, "before: expected the marker of an entry")
            query = query.where(*_behind(OperationRow, started, id_))
            batches = batches.where(*_behind(Batch, started, id_))
        entries: list[tuple[datetime, str, Json]] = []
        with service.database.reading() as session:
            names = {row.id: summaries.name_of(row) for row in session.scalars(select(Instance))}
            for row in session.scalars(query.limit(_PAGE_SIZE)):
                entries.append((row.started, row.id, summaries.operation(row, names)))
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
    """Return the conditions for an entry of the history."""
    return table.started <= started, or_(table.started < started, table.id > id_)


# --- server-sent events -------------------------------------------------------------------------
# Source: the HTML Living Standard, 9.2. Each event is a section with the values that changed since
# the one before, and the ids of those that are gone.


MEDIA_TYPE = "text/event-stream"
_ALIVE_SECONDS = 10.0
"""Time without an event after which a comment is sent: a connection that broke is noticed."""
_MAX_SECONDS = 600.0
"""Then the client has to connect, and show its token, again."""

Read = Callable[[], Sections]


async def events(hello: str, read: Read, threads: CapacityLimiter) -> AsyncIterator[str]:
    """Yield the events of one viewer.

    :param read: returns the sections; it blocks, as long as a VIM does not answer.
    :param threads: those in which it may: never all that the requests of others need.
    """
    yield event("hello", hello)
    began = spoke = time.monotonic()
    sent: Sections = {}
    while time.monotonic() - began < _MAX_SECONDS:
        try:
            sections = await to_thread.run_sync(read, limiter=threads)
        except SQLAlchemyError:
            sections = sent
            yield event("outage", '"The database does not answer"')
        for name, values in sections.items():
            if (data := _difference(sent.get(name), values)) is not None:
                spoke = time.monotonic()
                yield event(name, data)
        sent = sections
        if time.monotonic() - spoke > _ALIVE_SECONDS:
            spoke = time.monotonic()
            yield ": alive\n\n"
        await asyncio.sleep(PACE_SECONDS)


def event(name: str, data: str) -> str:
    """Return an event; its data is JSON in one line."""
    return f"event: {name}\ndata: {data}\n\n"


def _difference(before: Mapping[str, str] | None, after: Mapping[str, str]) -> str | None:
    """Return ``{"changed": [value, ...], "removed": [id, ...]}``; None where nothing changed."""
    old = before or {}
    changed = [text for id_, text in after.items() if old.get(id_) != text]
    removed = [id_ for id_ in old if id_ not in after]
    if before is not None and not changed and not removed:
        return None
    return f'{{"changed": [{", ".join(changed)}], "removed": {json.dumps(removed)}}}'


# --- drafts of requests -------------------------------------------------------------------------


_CONFIG = frozenset({"ConfigMap", "Secret"})


def _draft(
    service: ServiceContext, session: Session, row: Instance, operation: str, vnfd_id: str
) -> Json:
    """Return the body of a request about an instance; ProblemError 422 for another operation."""
    package = packages.of_vnfd(session, vnfd_id or row.vnfd_id)
    with packages.open_package(service, package) as files:
        if operation == "INSTANTIATE":
            return _instantiation(files, row, session)
        if operation == "MODIFY_INFO":
            return _modification(files, vnfd_id)
        if operation == "CHANGE_VNFPKG":
            vim_type = vims.type_of(instances.vims_of(service, row))
            is_stack = vims.kind_of({"vimType": vim_type}) == vims.OPENSTACK
            return _change(files, vnfd_id, row, is_stack=is_stack)
    raise ProblemError(422, f"operation: there are no drafts of {operation[:64]!r}")


def _instantiation(files: Csar, row: Instance, session: Session) -> Json:
    """Return a draft; in a namespace of its own where the product runs in the default one."""
    running = session.scalars(select(Instance).where(Instance.instantiated))
    taken = {(each["product"], each["namespace"]) for each in map(summaries.instance, running)}
    name = re.sub("[^a-z0-9]+", "-", summaries.name_of(row).lower())[:63].strip("-")
    is_taken = (summaries.instance(row)["product"], "default") in taken
    namespace = name if is_taken and name else "default"
    params = {DEF_FILES: list(files.manifest_files()), "namespace": namespace}
    flavours = [flavour.id for flavour in files.flavours if flavour.id]
    body: Json = {"flavourId": flavours[0] if flavours else "default"}
    return {**body, "additionalParams": params} if params[DEF_FILES] else body


def _modification(files: Csar, vnfd_id: str) -> Json:
    config = [
        path
        for path in files.manifest_files()
        if any(each.key.kind in _CONFIG for each in files.manifests(path, "default"))
    ]
    body: Json = {"vnfdId": vnfd_id}
    return {**body, "metadata": {CONFIG_PATHS: config}} if config else body


def _change(files: Csar, vnfd_id: str, row: Instance, *, is_stack: bool) -> Json:
    info: Mapping[str, Any] = row.body.get("instantiatedVnfInfo") or {}
    vdus: Iterable[str] = files.vdus(info.get("flavourId"))
    params: Json = {UPGRADE_TYPE: "RollingUpdate"}
    if is_stack:
        params["vdu_params"] = [{"vdu_id": vdu} for vdu in vdus]
    else:
        params[DEF_FILES] = list(files.manifest_files())
    return {"vnfdId": vnfd_id, "additionalParams": params}
