# SPDX-License-Identifier: Apache-2.0
"""Events: reports of the controllers and the kubelet about objects.

The same report about the same object is one Event whose count goes up, as in Kubernetes.
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
"""How many of the 253 characters of an Event's name its object's name may take."""


@dataclass(frozen=True)
class _Report:
    kind: str
    component: str
    reason: str
    message: str
    field_path: str


class Recorder:
    """Writes Events into the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._numbers = itertools.count(1)
        self._known: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}

    def normal(self, component: str, obj: Json, reason: str, message: str, field: str = "") -> None:
        """Report something expected about the object, or about the *field* of that path."""
        self._write(obj, _Report("Normal", component, reason, message, field))

    def warning(
        self, component: str, obj: Json, reason: str, message: str, field: str = ""
    ) -> None:
        """Report a problem."""
        self._write(obj, _Report("Warning", component, reason, message, field))

    def forget(self, uid: str) -> None:
        """Forget the reports about an object that was deleted."""
        self._known.pop(uid, None)

    def _write(self, obj: Json, report: _Report) -> None:
        known = self._known.setdefault(obj["metadata"]["uid"], {})
        stored = known.get((report.reason, report.message))
        if stored is not None and self._count_up(*stored):
            return
        body = self._body(obj, report)
        namespace = body["metadata"]["namespace"]
        try:
            self._registry.create("events", namespace, body)
        except ApiError as error:
            if error.code not in {403, 404}:
                raise
            return  # the namespace is deleted or being deleted
        known[report.reason, report.message] = (namespace, body["metadata"]["name"])

    def _count_up(self, namespace: str, name: str) -> bool:
        event = self._registry.get("events", namespace, name)
        if event is None:
            return False
        body = {**event, "count": event.get("count", 1) + 1, "lastTimestamp": stamp()}
        self._registry.update("events", namespace, name, body)
        return True

    def _body(self, obj: Json, report: _Report) -> Json:
        metadata, now = obj["metadata"], stamp()
        about = {
            "kind": obj["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": obj["apiVersion"],
            "resourceVersion": metadata["resourceVersion"],
            "fieldPath": report.field_path,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:_LONGEST_BASE]}.{next(self._numbers):016x}",
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": {key: value for key, value in about.items() if value},
            "reason": report.reason,
            "message": report.message,
            "source": {"component": report.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": report.kind,
            "eventTime": None,
            "reportingComponent": report.component,
            "reportingInstance": "",
        }
