# SPDX-License-Identifier: Apache-2.0
"""Watches over HTTP: events as lines of JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes import tables
from container_update.emulator.kubernetes.api import listing
from container_update.emulator.kubernetes.api.encoding import Encoder
from container_update.emulator.kubernetes.api.negotiation import (
    Representation,
    flag,
    representation,
)
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import ApiError, not_decodable
from container_update.emulator.kubernetes.registry import Registry
from container_update.emulator.kubernetes.watches import Watches, WatchQueue

LONGEST_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class WatchSource:
    """What the responses to watches are made from."""

    registry: Registry
    watches: Watches
    encoder: Encoder
    bookmark_seconds: float = 1.0
    """How long nothing happens before a bookmark is sent."""


async def stream(
    request: web.Request, target: RequestTarget, source: WatchSource
) -> web.StreamResponse:
    """Answer a watch; return when the client leaves, the time is over or the watch is closed.

    A version that is too old is answered with one ERROR event with the 410, as the API server does.
    """
    query = request.query
    after = _after(query)
    selector = listing.selector(target, query)
    lines = _Lines(
        target, representation(request.headers.get("Accept", "")), query.get("includeObject")
    )
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        watch = source.watches.open(target.resource.key, target.namespace, selector, after)
    except ApiError as error:
        await response.write(_line("ERROR", compact(error.status())))
        return response
    sender = _Sender(response, watch, lines, source)
    seconds = float(query.get("timeoutSeconds") or 0) or LONGEST_SECONDS
    try:
        await sender.begin(query)
        await sender.send_until(time.monotonic() + seconds)
    except ConnectionError:
        return response
    finally:
        source.watches.close(target.resource.key, watch)
    return response


def _after(query: Mapping[str, str]) -> int | None:
    """Return the version to continue from; None: start with the present state."""
    version = query.get("resourceVersion", "")
    if version in ("", "0") or flag(query, "sendInitialEvents"):
        return None
    if not version.isdigit():
        raise not_decodable(f'resourceVersion: Invalid value: "{version}": it is no number')
    return int(version)


def _line(kind: str, text: str) -> bytes:
    return f'{{"type":"{kind}","object":{text}}}\n'.encode()


class _Lines:
    """Writes events in the representation that the client requested."""

    def __init__(self, target: RequestTarget, form: Representation, include: str | None) -> None:
        self._target = target
        self._form = form
        self._include = include or tables.METADATA
        self._with_columns = True

    def event(self, kind: str, body: Json, encoder: Encoder) -> bytes:
        if self._form is Representation.TABLE:
            return _line(kind, compact(self._table([body], body["metadata"]["resourceVersion"])))
        if self._form is Representation.PARTIAL:
            return _line(kind, compact(tables.partial(body)))
        return _line(kind, encoder.single(body, self._target.api_version))

    def bookmark(self, version: str, annotations: Json | None) -> bytes:
        metadata: Json = {"resourceVersion": version}
        if annotations:
            metadata["annotations"] = annotations
        if self._form is Representation.TABLE:
            table = self._table([], version)
            if annotations:
                table["metadata"] = metadata
            return _line("BOOKMARK", compact(table))
        body: Json = {
            "kind": self._target.resource.kind,
            "apiVersion": self._target.api_version,
            "metadata": metadata,
        }
        if self._target.resource.has_status and not self._target.resource.custom:
            body |= {"spec": {}, "status": {}}
        return _line("BOOKMARK", compact(body))

    def _table(self, items: list[Json], version: str) -> Json:
        metadata = {"resourceVersion": version}
        columns, self._with_columns = self._with_columns, False
        return tables.table(
            self._target.resource.key, items, metadata, include=self._include, with_columns=columns
        )


class _Sender:
    """Sends the events of a watch, and bookmarks while there are none."""

    def __init__(
        self, response: web.StreamResponse, watch: WatchQueue, lines: _Lines, source: WatchSource
    ) -> None:
        self._response = response
        self._watch = watch
        self._lines = lines
        self._source = source
        self._bookmarks = False
        self._last_bookmark = ""

    async def begin(self, query: Mapping[str, str]) -> None:
        """Send the initial state, and the bookmark that says it is complete."""
        self._bookmarks = flag(query, "allowWatchBookmarks")
        if flag(query, "sendInitialEvents"):
            await self._send()
            await self._bookmark({INITIAL_EVENTS_END: "true"})

    async def send_until(self, end: float) -> None:
        """Send events until *end* (of the monotonic clock)."""
        await self._send()
        while not self._watch.closed:
            rest = end - time.monotonic()
            if rest <= 0:
                return
            pause = self._source.bookmark_seconds if self._bookmarks else rest
            await self._watch.wait(min(rest, pause))
            # a closed watch gets no more events, so it knows no version to continue from
            if not await self._send() and self._bookmarks and not self._watch.closed:
                await self._bookmark(None)

    async def _send(self) -> bool:
        events = self._watch.take()
        if not events:
            return False
        text = b"".join(
            self._lines.event(kind, body, self._source.encoder) for kind, body in events
        )
        await self._response.write(text)
        return True

    async def _bookmark(self, annotations: Json | None) -> None:
        """Send the version that a watch could continue from; never the same one twice."""
        version = self._source.registry.resource_version
        if annotations is None and version == self._last_bookmark:
            return
        self._last_bookmark = version
        await self._response.write(self._lines.bookmark(version, annotations))
