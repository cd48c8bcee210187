# SPDX-License-Identifier: Apache-2.0
"""Controllers that own objects: they adopt what matches their selector, and release the rest."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.objects import (
    adopt,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    release,
)
from container_update.emulator.kubernetes.selectors import matches


class ClaimingController(Controller):
    """A controller whose objects own others, selected by labels."""

    kind: str
    """The kind of its own objects, as in owner references."""
    owned: str
    """The resource of the owned objects."""
    component: str
    """The reporter of its Events."""
    created, deleted = "Created pod: {pod}", "Deleted pod: {pod}"
    refused = "Error creating: {error}"
    """The messages of its Events about pods; ``{owner}`` is the owner's name."""

    def handlers(self) -> Mapping[str, Handler]:
        """Handle its own objects and the owned ones."""
        return {self.resource: self.enqueue, self.owned: self.owned_changed}

    def claim(self, owner: Json) -> list[Json]:
        """Adopt and release objects, and return those that *owner* controls, oldest first.

        A deleted owner adopts nothing, and a deleted object is not adopted.
        """
        uid = owner["metadata"]["uid"]
        kept = []
        for obj in self.index.controlled_objects(self.owned, uid):
            if self.selects(owner, obj):
                kept.append(obj)
            else:
                self._write(release(obj, uid))
        if is_deleting(owner):
            return kept
        for obj in self.index.orphans(self.owned, owner["metadata"]["namespace"]):
            if self.selects(owner, obj) and not is_deleting(obj):
                kept.append(self._write(adopt(obj, owner)))
        return kept

    def selects(self, owner: Json, obj: Json) -> bool:
        """Return whether an object of its namespace may be the owner's, by its labels."""
        return matches(owner["spec"]["selector"], labels_of(obj))

    def owned_changed(self, event: str, obj: Json, previous: Json | None) -> None:
        """Handle an event of an owned object or of an orphan that an owner may adopt."""
        namespace = obj["metadata"]["namespace"]
        for version in (obj, previous):
            owner = controller_of(version) if version is not None else None
            if owner is not None and owner["kind"] == self.kind:
                self.queue.add((namespace, owner["name"]))
        if controller_of(obj) is None and event != "DELETED":
            for candidate in self.registry.list(self.resource, namespace):
                if self.selects(candidate, obj):
                    self.queue.add(key_of(candidate))

    def requeue_when_available(self, owner: Json, pods: list[Json]) -> None:
        """Process *owner* again when the next of the ready *pods* becomes available."""
        needed = owner["spec"].get("minReadySeconds", 0)
        waits = [wait for pod in pods if (wait := pod_state.seconds_to_availability(pod, needed))]
        if waits:
            self.queue.add_after(key_of(owner), min(waits))

    def create_pod(self, owner: Json, body: Json) -> None:
        """Create a pod and report it, or the server's refusal, which is raised."""
        try:
            pod = self.registry.create("pods", owner["metadata"]["namespace"], body)
        except ApiError as error:
            names = {"pod": body["metadata"].get("name"), "owner": owner["metadata"]["name"]}
            text = self.refused.format(error=error.message, **names)
            self.record.warning(self.component, owner, "FailedCreate", text)
            raise
        self._report("SuccessfulCreate", self.created, owner, pod)

    def delete_pod(self, owner: Json, pod: Json) -> None:
        """Delete a pod and report it."""
        self.registry.delete("pods", *key_of(pod), uid=pod["metadata"]["uid"])
        self._report("SuccessfulDelete", self.deleted, owner, pod)

    def _report(self, reason: str, text: str, owner: Json, pod: Json) -> None:
        message = text.format(pod=pod["metadata"]["name"], owner=owner["metadata"]["name"])
        self.record.normal(self.component, owner, reason, message)

    def _write(self, obj: Json) -> Json:
        return self.registry.update(self.owned, *key_of(obj), obj)
