# SPDX-License-Identifier: Apache-2.0
"""The base of all controllers: a work queue of keys, processed on the event loop.

A controller learns of changes only from the registry's events; it does not poll. Each event adds a
key to the queue, which holds it once, and ``reconcile`` reads the present state of that object:
any number of events leads to one call. One key is processed per turn of the loop, so that the API
server can respond between two of them.
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
from container_update.emulator.kubernetes.objects import Key, key_of
from container_update.emulator.kubernetes.registry import Registry

LOG = logging.getLogger(__name__)

Handler = Callable[[str, Json, "Json | None"], None]
"""Called with the event's type, the object, and the object before (None for ADDED)."""

MIN_RETRY_SECONDS = 0.1
MAX_RETRY_SECONDS = 10.0


class WorkQueue:
    """Keys to process: each at most once, in the order in which they were added.

    :param work: processes one key. If it raises :class:`ApiError`, a conflict is tried again at
        once, any other after a time that doubles with every consecutive failure.
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
        """Process *key* soon."""
        if self._stopped:
            return
        self._keys.setdefault(key)
        if not self._running:
            self._running = True
            self._loop.call_soon(self._next)

    def add_after(self, key: Key, seconds: float) -> None:
        """Process *key* in *seconds*, or earlier if that was requested before."""
        due = self._loop.time() + max(0.0, seconds)
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = self._loop.call_at(due, self._due, key)

    def stop(self) -> None:
        """Drop all keys and accept no more."""
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
        seconds = min(MAX_RETRY_SECONDS, MIN_RETRY_SECONDS * 2**failures)
        LOG.debug("%s/%s: %s; again in %.1f s", *key, error, seconds)
        self.add_after(key, seconds)


@dataclass(frozen=True)
class Context:
    """What all controllers share."""

    registry: Registry
    loop: asyncio.AbstractEventLoop
    index: Index
    record: Recorder
    behaviour: Behaviour


class Controller(ABC):
    """Brings the objects of one resource to their desired state."""

    resource: str
    """The plural of the resource that the keys are about."""

    def __init__(self, context: Context) -> None:
        self.registry = context.registry
        self.index = context.index
        self.record = context.record
        self.loop = context.loop
        self.queue = WorkQueue(context.loop, self.process)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of events by resource."""
        return {self.resource: self.enqueue}

    def process(self, key: Key) -> None:
        """Reconcile the object of this key, if it still exists."""
        obj = self.registry.get(self.resource, *key)
        if obj is not None:
            self.reconcile(obj)

    @abstractmethod
    def reconcile(self, obj: Json) -> None:
        """Bring the object closer to its desired state; may raise ApiError."""

    def enqueue(self, _event: str, obj: Json, _previous: Json | None) -> None:
        """Handle an event of a controller's own object."""
        self.queue.add(key_of(obj))

    def stop(self) -> None:
        """Stop processing keys."""
        self.queue.stop()

    def stored_object(self, uid: str) -> Json | None:
        """Return the object of this UID, of any resource, or None."""
        ref = self.index.ref_of(uid)
        return self.registry.get(*ref) if ref is not None else None

    def write_status(self, obj: Json, status: Json) -> Json:
        """Write *status* if it differs, and return the object as stored."""
        if status == obj.get("status"):
            return obj
        body = {**obj, "status": status}
        return self.registry.update(self.resource, *key_of(obj), body, subresource="status")
