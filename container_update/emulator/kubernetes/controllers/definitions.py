# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions: served a moment after they are created, emptied before they go.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions".
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Context, Controller, Handler
from container_update.emulator.kubernetes.objects import (
    condition_of,
    has_finalizer,
    is_deleting,
    is_established,
    key_of,
    without_finalizer,
)
from container_update.emulator.kubernetes.registry import CLEANUP
from container_update.emulator.kubernetes.resources import ESTABLISHED
from container_update.emulator.kubernetes.rules import initial_status


class CustomDefinitions(Controller):
    """Establishes and empties definitions. Keys are ('', name)."""

    resource = "customresourcedefinitions"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._behaviour = context.behaviour

    def handlers(self) -> Mapping[str, Handler]:
        """Handle definitions, and every object that is removed."""
        return {self.resource: self._take_event, "*": self._object_changed}

    def reconcile(self, definition: Json) -> None:
        """Establish a new definition; delete the objects of a deleted one, then let it go."""
        if is_deleting(definition):
            self._empty(definition)
        elif not is_established(definition):
            status = initial_status.established_status(definition)
            now, then = (
                condition_of(each, ESTABLISHED) for each in (definition, {"status": status})
            )
            if (now or {}).get("status") != (then or {}).get("status"):
                self.write_status(definition, status)

    def _take_event(self, event: str, definition: Json, _previous: Json | None) -> None:
        if is_deleting(definition):
            self.queue.add(key_of(definition))
        elif event == "ADDED" or not is_established(definition):
            self.queue.add_after(key_of(definition), self._behaviour.definition_seconds)

    def _object_changed(self, event: str, _obj: Json, _previous: Json | None) -> None:
        if event == "DELETED":
            for definition in self.registry.list(self.resource, selector=is_deleting):
                self.queue.add(key_of(definition))

    def _empty(self, definition: Json) -> None:
        name = definition["metadata"]["name"]
        for obj in self.registry.list(name):
            if not is_deleting(obj):
                self.registry.delete(name, *key_of(obj))
        if not self.registry.list(name) and has_finalizer(definition, CLEANUP):
            self.registry.update(self.resource, "", name, without_finalizer(definition, CLEANUP))
