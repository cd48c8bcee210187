"""What every controller stands on: a queue of keys, worked off on the event loop.

A controller learns of changes only through the registry's events; there is no polling. Events name
keys, the queue holds each key once, and ``reconcile`` looks at the state as it is when the key's
turn comes. So however many events there were, one look settles them. One key is worked off per turn
of the loop: the API server answers between two of them.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.index import Index
from container_update.emulator.kubernetes.events import Recorder
from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour
from container_update.emulator.kubernetes.registry import Registry

LOG = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace ('' for none) and name."""

Handler = Callable[[str, Json, "Json | None"], None]
"""Called with the event's type, the object, and what it was before."""

FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 10.0


def key_of(obj: Json) -> Key:
    """The key of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class WorkQueue:
    """Keys to look at: each at most once, in the order they came in.

    :param work: looks at one key. It may raise :class:`ApiError`: a conflict is tried again at
        once, anything else after a time that doubles with every failure in a row.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[Key], None]) -> None:
        self._loop = loop
        self._work = work
        self._keys: dict[Key, None] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._running = False
        self._stopped = False

    def add(self, key: Key) -> None:
        """Look at *key* soon."""
        if self._stopped:
            return
        self._keys.setdefault(key)
        if not self._running:
            self._running = True
            self._loop.call_soon(self._next)

    def add_after(self, key: Key, seconds: float) -> None:
        """Look at *key* in *seconds*, or earlier where that was already asked for."""
        due = self._loop.time() + max(0.0, seconds)
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = self._loop.call_at(due, self._due, key)

    def stop(self) -> None:
        """Forget everything and take nothing more."""
        self._stopped = True
        self._keys.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _next(self) -> None:
        self._running = False
        if not self._keys:
            return
        key = next(iter(self._keys))
        del self._keys[key]
        try:
            self._work(key)
            self._failures.pop(key, None)
        except ApiError as error:
            self._retry(key, error)
        finally:
            if self._keys and not self._running:
                self._running = True
                self._loop.call_soon(self._next)

    def _retry(self, key: Key, error: ApiError) -> None:
        if error.code == 409:
            self.add(key)
            return
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2**failures)
        LOG.debug("%s/%s: %s; again in %.1f s", *key, error, seconds)
        self.add_after(key, seconds)


@dataclass(frozen=True)
class Context:
    """What controllers share."""

    registry: Registry
    loop: asyncio.AbstractEventLoop
    index: Index
    record: Recorder
    behaviour: Behaviour


class Controller(ABC):
    """Brings the objects of one resource to what they ask for."""

    resource: str
    """The plural name of the resource that keys are about."""

    def __init__(self, context: Context) -> None:
        self.registry = context.registry
        self.index = context.index
        self.record = context.record
        self.loop = context.loop
        self.queue = WorkQueue(context.loop, self.reconcile)

    @abstractmethod
    def handlers(self) -> Mapping[str, Handler]:
        """Resource to what is called for each of its events."""

    @abstractmethod
    def reconcile(self, key: Key) -> None:
        """Look at the object and do what is due. Any ApiError may leave it."""

    def enqueue(self, _event: str, obj: Json, _previous: Json | None) -> None:
        """The handler for a controller's own objects."""
        self.queue.add(key_of(obj))

    def stop(self) -> None:
        """Look at nothing more."""
        self.queue.stop()

    def write_status(self, obj: Json, status: Json) -> Json:
        """Write *status*, unless it is what the object has.

        :returns: the object as it then is.
        """
        if status == obj.get("status"):
            return obj
        namespace, name = key_of(obj)
        body = {**obj, "status": status}
        return self.registry.update(self.resource, namespace, name, body, subresource="status")
