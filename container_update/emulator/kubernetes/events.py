"""Events: what a controller or the kubelet tells people that it has done, and why.

The same news of the same object is one Event whose count goes up, as the API's recorders do it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import ApiError

if TYPE_CHECKING:
    from container_update.emulator.kubernetes.registry import Registry


_LONGEST_BASE = 236
"""Of an Event's 253 characters, those that its object's name may take."""


@dataclass(frozen=True)
class _News:
    kind: str
    component: str
    reason: str
    message: str
    part: str


class Recorder:
    """Writes Events into the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._numbers = itertools.count(1)
        self._known: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}

    def normal(self, component: str, obj: Json, reason: str, message: str, part: str = "") -> None:
        """Something went as it should. *part*: the field of the object that it is about."""
        self._write(obj, _News("Normal", component, reason, message, part))

    def warning(self, component: str, obj: Json, reason: str, message: str, part: str = "") -> None:
        """Something did not go as it should."""
        self._write(obj, _News("Warning", component, reason, message, part))

    def forget(self, uid: str) -> None:
        """The object is gone: its news will not be repeated."""
        self._known.pop(uid, None)

    def _write(self, obj: Json, news: _News) -> None:
        known = self._known.setdefault(obj["metadata"]["uid"], {})
        stored = known.get((news.reason, news.message))
        if stored is not None and self._count_up(*stored):
            return
        body = self._body(obj, news)
        namespace = body["metadata"]["namespace"]
        try:
            self._registry.create("events", namespace, body)
        except ApiError as error:
            if error.code not in {403, 404}:
                raise
            return  # The namespace is gone or going: there is nobody left to tell.
        known[news.reason, news.message] = (namespace, body["metadata"]["name"])

    def _count_up(self, namespace: str, name: str) -> bool:
        event = self._registry.get("events", namespace, name)
        if event is None:
            return False
        body = {**event, "count": event.get("count", 1) + 1, "lastTimestamp": stamp()}
        self._registry.update("events", namespace, name, body)
        return True

    def _body(self, obj: Json, news: _News) -> Json:
        metadata, now = obj["metadata"], stamp()
        about = {
            "kind": obj["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": obj["apiVersion"],
            "resourceVersion": metadata["resourceVersion"],
            "fieldPath": news.part,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:_LONGEST_BASE]}.{next(self._numbers):016x}",
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": {key: value for key, value in about.items() if value},
            "reason": news.reason,
            "message": news.message,
            "source": {"component": news.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": news.kind,
            "eventTime": None,
            "reportingComponent": news.component,
            "reportingInstance": "",
        }
