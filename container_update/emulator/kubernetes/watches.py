"""What watches see: the recent past of every resource, and what happens from now on.

The history is bounded. A watch that wants to go on from a version that is no longer in it is told
so with 410, as the API server does, and has to list again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.registry import Registry

Selector = Callable[[Json], bool]


@dataclass(frozen=True)
class Event:
    """A committed write."""

    version: int
    type: str
    object: Json
    previous: Json | None


@dataclass
class _Past:
    """The recent events of one resource."""

    floor: int
    """Everything after this version is still known."""
    events: deque[Event] = field(default_factory=deque)


class Watch:
    """One client's view: events that wait to be sent, until it is closed.

    Events are (type, object) as the client is to see them: an object that stops matching the
    selector is DELETED, one that begins to match is ADDED.
    """

    def __init__(self, namespace: str | None, selector: Selector | None) -> None:
        self._namespace = namespace
        self._selector = selector
        self._waiting: deque[tuple[str, Json]] = deque()
        self._news = asyncio.Event()
        self.closed = False

    def offer(self, event: Event) -> None:
        """Queue the event if this client is to see it."""
        seen = self._as_seen(event)
        if seen:
            self._waiting.append(seen)
            self._news.set()

    def begin_with(self, objects: list[Json]) -> None:
        """Queue the present state as ADDED."""
        self._waiting.extend(("ADDED", entry) for entry in objects if self._matches(entry))

    def close(self) -> None:
        """End it; whoever waits returns."""
        self.closed = True
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Return when there is something to take, when it is closed, or after *seconds*."""
        if self._waiting or self.closed:
            return
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def take(self) -> list[tuple[str, Json]]:
        """Everything that waits."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _matches(self, entry: Json) -> bool:
        if self._namespace is not None and entry["metadata"].get("namespace") != self._namespace:
            return False
        return self._selector is None or self._selector(entry)

    def _as_seen(self, event: Event) -> tuple[str, Json] | None:
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
    """The history of a registry and all open watches on it.

    :param history: how many events are kept for each resource.
    """

    def __init__(self, registry: Registry, history: int) -> None:
        self._registry = registry
        self._history = history
        self._first = int(registry.resource_version)
        self._past: dict[str, _Past] = {}
        self._open: dict[str, list[Watch]] = {}
        registry.subscribe(self._note)

    def open(
        self,
        resource: str,
        namespace: str | None,
        selector: Selector | None,
        after: int | None,
    ) -> Watch:
        """A watch from version *after* on; from the present state where that is None.

        ApiError 410 where the history does not reach back that far.
        """
        watch = Watch(namespace, selector)
        if after is None:
            watch.begin_with(self._registry.list(resource, namespace))
        else:
            past = self._of(resource)
            self.check_version(resource, after)
            for event in past.events:
                if event.version > after:
                    watch.offer(event)
        self._open.setdefault(resource, []).append(watch)
        return watch

    def check_version(self, resource: str, version: int) -> None:
        """ApiError 410 where what came after *version* is no longer known."""
        floor = self._of(resource).floor
        if version < floor:
            raise api_errors.expired(f"too old resource version: {version} ({floor})")

    def close(self, resource: str, watch: Watch) -> None:
        """Forget a watch."""
        watch.close()
        if watch in self._open.get(resource, []):
            self._open[resource].remove(watch)

    def close_all(self) -> None:
        """End every watch, as a server does that goes away; a client may watch again."""
        for watches in self._open.values():
            for watch in watches:
                watch.close()
        self._open.clear()

    def forget_history(self) -> None:
        """Know nothing of the past: every version but the present one is too old from now on."""
        self._first = int(self._registry.resource_version)
        self._past.clear()

    def _of(self, resource: str) -> _Past:
        return self._past.setdefault(resource, _Past(self._first))

    def _note(self, kind: str, resource: str, body: Json, previous: Json | None) -> None:
        event = Event(int(body["metadata"]["resourceVersion"]), kind, body, previous)
        past = self._of(resource)
        past.events.append(event)
        if len(past.events) > self._history:
            past.floor = past.events.popleft().version
        for watch in self._open.get(resource, []):
            watch.offer(event)
