# SPDX-License-Identifier: Apache-2.0
"""Watches: the recent events of every resource, and the events from now on.

The history is bounded. A watch from a version that it no longer covers is refused with 410, as the
API server does, and the client has to list again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.registry import Registry

Selector = Callable[[Json], bool]


@dataclass(frozen=True)
class WriteEvent:
    """A committed write."""

    version: int
    type: str
    object: Json
    previous: Json | None


@dataclass
class _History:
    """The recent events of one resource."""

    floor: int
    """All events after this version are kept."""
    events: deque[WriteEvent] = field(default_factory=deque)

    def since(self, version: int) -> Iterable[WriteEvent]:
        """Return the events after *version*, oldest first.

        They are few, at the end of what may be a hundred thousand: it is read from there.
        """
        newest_first = takewhile(lambda event: event.version > version, reversed(self.events))
        return reversed(list(newest_first))


class WatchQueue:
    """The events that wait to be sent to one client.

    Events are (type, object) as the client sees them: an object that no longer matches the selector
    is DELETED, one that begins to match is ADDED.
    """

    def __init__(self, namespace: str | None, selector: Selector | None) -> None:
        self._namespace = namespace
        self._selector = selector
        self._waiting: deque[tuple[str, Json]] = deque()
        self._changed = asyncio.Event()
        self.closed = False

    def offer(self, event: WriteEvent) -> None:
        """Queue the event if it concerns this client."""
        visible = self._visible(event)
        if visible:
            self._waiting.append(visible)
            self._changed.set()

    def start_with(self, objects: list[Json]) -> None:
        """Queue the present state as ADDED events."""
        self._waiting.extend(("ADDED", entry) for entry in objects if self._matches(entry))

    def close(self) -> None:
        """Close it; :meth:`wait` returns."""
        self.closed = True
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Return when events are queued, when it is closed, or after *seconds*."""
        if self._waiting or self.closed:
            return
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def take(self) -> list[tuple[str, Json]]:
        """Return the queued events and empty the queue."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _matches(self, entry: Json) -> bool:
        if self._namespace is not None and entry["metadata"].get("namespace") != self._namespace:
            return False
        return self._selector is None or self._selector(entry)

    def _visible(self, event: WriteEvent) -> tuple[str, Json] | None:
        previous = event.previous
        if previous is not None and not self._matches(previous):
            previous = None
        if event.type != "DELETED" and self._matches(event.object):
            return ("MODIFIED" if previous else "ADDED"), event.object
        if previous is None:
            return None
        if event.type == "DELETED":
            return "DELETED", event.object
        metadata = {**previous["metadata"], "resourceVersion": str(event.version)}
        return "DELETED", {**previous, "metadata": metadata}


class Watches:
    """The histories of a registry's resources, and all open watches.

    :param history: how many events are kept for each resource.
    """

    def __init__(self, registry: Registry, history: int) -> None:
        self._registry = registry
        self._limit = history
        self._first = int(registry.resource_version)
        self._histories: dict[str, _History] = {}
        self._open: dict[str, list[WatchQueue]] = {}
        registry.subscribe(self._record)

    def open(
        self,
        resource: str,
        namespace: str | None,
        selector: Selector | None,
        after: int | None,
    ) -> WatchQueue:
        """Open a watch.

        :param after: the version to continue from; None: start with the present state.
        :raises ApiError: 410 if the history does not reach back that far.
        """
        watch = WatchQueue(namespace, selector)
        if after is None:
            watch.start_with(self._registry.list(resource, namespace))
        else:
            self.check_version(resource, after)
            for event in self._history_of(resource).since(after):
                watch.offer(event)
        self._open.setdefault(resource, []).append(watch)
        return watch

    def check_version(self, resource: str, version: int) -> None:
        """Raise ApiError (410) if events after *version* are no longer kept."""
        floor = self._history_of(resource).floor
        if version < floor:
            raise api_errors.expired_error(f"too old resource version: {version} ({floor})")

    def close(self, resource: str, watch: WatchQueue) -> None:
        """Close a watch."""
        watch.close()
        if watch in self._open.get(resource, []):
            self._open[resource].remove(watch)

    def close_all(self) -> None:
        """Close every watch, as a server does when it stops; clients may watch again."""
        for watches in self._open.values():
            for watch in watches:
                watch.close()
        self._open.clear()

    def forget_history(self) -> None:
        """Make every version but the present one too old to watch from."""
        self._first = int(self._registry.resource_version)
        self._histories.clear()

    def _history_of(self, resource: str) -> _History:
        return self._histories.setdefault(resource, _History(self._first))

    def _record(self, kind: str, resource: str, body: Json, previous: Json | None) -> None:
        event = WriteEvent(int(body["metadata"]["resourceVersion"]), kind, body, previous)
        history = self._history_of(resource)
        history.events.append(event)
        if len(history.events) > self._limit:
            history.floor = history.events.popleft().version
        for watch in self._open.get(resource, []):
            watch.offer(event)
