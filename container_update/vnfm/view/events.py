# SPDX-License-Identifier: Apache-2.0
"""``GET /view/events``: what the page shows, as server-sent events.

Source: the HTML Living Standard, 9.2. Each event is a section with the values that changed since
the one before, and the ids of those that are gone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping

from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.view.feed import PACE_SECONDS, Sections

MEDIA_TYPE = "text/event-stream"
MAX_VIEWERS = 64
"""Of one process: each one has a connection."""
_ALIVE_SECONDS = 10.0
"""Time without an event after which a comment is sent: a connection that broke is noticed."""
_MAX_SECONDS = 600.0
"""Then the client has to connect, and show its token, again."""

Read = Callable[[], Sections]


async def events(hello: str, read: Read, threads: CapacityLimiter) -> AsyncIterator[str]:
    """Yield the events of one viewer.

    :param hello: the first event's data.
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
    """Return an event.

    :param data: JSON in one line.
    """
    return f"event: {name}\ndata: {data}\n\n"


def _difference(before: Mapping[str, str] | None, after: Mapping[str, str]) -> str | None:
    """Return ``{"changed": [value, ...], "removed": [id, ...]}``; None where nothing changed.

    :param before: None: nothing was sent yet.
    """
    old = before or {}
    changed = [text for id_, text in after.items() if old.get(id_) != text]
    removed = [id_ for id_ in old if id_ not in after]
    if before is not None and not changed and not removed:
        return None
    return f'{{"changed": [{", ".join(changed)}], "removed": {json.dumps(removed)}}}'
