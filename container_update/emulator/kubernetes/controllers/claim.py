"""How a controller claims objects: adopts the matching that nobody controls, releases the rest."""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Controller, Key, key_of
from container_update.emulator.kubernetes.ownership import (
    adopted,
    controller_of,
    is_deleting,
    labels_of,
    released,
)
from container_update.emulator.kubernetes.selectors import matches


class ClaimingController(Controller):
    """A controller whose objects own others, which they find by a selector."""

    kind: str
    """The kind of its own objects, as owner references name it."""
    owned: str
    """The resource that they own."""

    def claim(self, owner: Json) -> list[Json]:
        """The objects that *owner* controls, after adopting and releasing, oldest first.

        An owner that is being deleted adopts nothing, and nothing that is being deleted is adopted.
        """
        selector, uid = owner["spec"]["selector"], owner["metadata"]["uid"]
        kept = []
        for obj in self.index.controlled(self.owned, uid):
            if matches(selector, labels_of(obj)):
                kept.append(obj)
            else:
                self._write(released(obj, uid))
        if is_deleting(owner):
            return kept
        for obj in self.index.loose(self.owned, owner["metadata"]["namespace"]):
            if matches(selector, labels_of(obj)) and not is_deleting(obj):
                kept.append(self._write(adopted(obj, owner)))
        return kept

    def owned_changed(self, event: str, obj: Json, previous: Json | None) -> None:
        """The handler for owned objects: their owner looks, or for an orphan all that would have
        it."""
        namespace = obj["metadata"]["namespace"]
        for version in (obj, previous):
            owner = controller_of(version) if version is not None else None
            if owner is not None and owner["kind"] == self.kind:
                self.queue.add((namespace, owner["name"]))
        if controller_of(obj) is None and event != "DELETED":
            for candidate in self.registry.list(self.resource, namespace):
                if matches(candidate["spec"]["selector"], labels_of(obj)):
                    self.queue.add(key_of(candidate))

    def look_again_when_available(self, key: Key, owner: Json, pods: list[Json]) -> None:
        """Look again when the next of the ready *pods* has been so for long enough."""
        needed = owner["spec"].get("minReadySeconds", 0)
        coming = [wait for pod in pods if (wait := pod_state.seconds_to_availability(pod, needed))]
        if coming:
            self.queue.add_after(key, min(coming))

    def _write(self, obj: Json) -> Json:
        return self.registry.update(self.owned, *key_of(obj), obj)
