# SPDX-License-Identifier: Apache-2.0
"""The garbage collector: what happens to objects when their owners are deleted.

Background: the owner is removed at once, its dependents after it. Foreground: the owner stays,
marked as deleted, until all dependents that block its deletion are removed. Orphan: the dependents
lose their owner reference first.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import (
    Context,
    Controller,
    Handler,
    WorkQueue,
)
from container_update.emulator.kubernetes.controllers.index import Ref
from container_update.emulator.kubernetes.objects import (
    Key,
    has_finalizer,
    is_deleting,
    owner_references,
    release,
    without_finalizer,
)
from container_update.emulator.kubernetes.registry import FOREGROUND, ORPHAN


class GarbageCollector(Controller):
    """Deletes objects whose owners are gone. Keys are UIDs, since names can be used again."""

    resource = "*"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._owners = WorkQueue(context.loop, self._finish_owner)

    def handlers(self) -> Mapping[str, Handler]:
        """Handle every object."""
        return {"*": self._take_event}

    def process(self, key: Key) -> None:
        """Reconcile the object of this UID, if it still exists."""
        obj = self.stored_object(key[1])
        if obj is not None:
            self.reconcile(obj)

    def reconcile(self, obj: Json) -> None:
        """Delete the object if it has no owner left."""
        uid = obj["metadata"]["uid"]
        ref = self.index.ref_of(uid)
        if ref is None or is_deleting(obj):
            return
        removed, waiting = self._lost_owners(obj)
        if not removed and not waiting:
            return
        if len(removed) + len(waiting) < len(owner_references(obj)):
            for owner in (*removed, *waiting):
                obj = release(obj, owner)
            self.registry.update(*ref, obj)
            return
        foreground = bool(waiting) and bool(self.index.dependents(uid))
        propagation = "Foreground" if foreground else "Background"
        self.registry.delete(*ref, uid=uid, propagation=propagation)

    def _take_event(self, event: str, obj: Json, _previous: Json | None) -> None:
        metadata = obj["metadata"]
        if event == "DELETED":
            for ref in self.index.dependents(metadata["uid"]):
                self._enqueue(ref)
            for owner in owner_references(obj):
                self._owners.add(("", owner["uid"]))
            return
        if "ownerReferences" in metadata and event == "ADDED":
            self.queue.add(("", metadata["uid"]))
        if "deletionTimestamp" in metadata and metadata.get("finalizers"):
            self._owners.add(("", metadata["uid"]))

    def _enqueue(self, ref: Ref) -> None:
        obj = self.registry.get(*ref)
        if obj is not None:
            self.queue.add(("", obj["metadata"]["uid"]))

    def _lost_owners(self, obj: Json) -> tuple[list[str], list[str]]:
        """Return the UIDs of owners that are removed, and of those that wait for this object."""
        removed, waiting = [], []
        for owner in owner_references(obj):
            stored = self.stored_object(owner["uid"])
            if stored is None:
                removed.append(owner["uid"])
            elif is_deleting(stored) and has_finalizer(stored, FOREGROUND):
                waiting.append(owner["uid"])
        return removed, waiting

    def _finish_owner(self, key: Key) -> None:
        """Finish the deletion of an owner that waits for its dependents or has to orphan them."""
        ref = self.index.ref_of(key[1])
        owner = self.registry.get(*ref) if ref is not None else None
        if ref is None or owner is None or not is_deleting(owner):
            return
        dependents = self.index.dependents(key[1])
        if has_finalizer(owner, ORPHAN):
            for dependent in dependents:
                self._release(dependent, key[1])
            self.registry.update(*ref, without_finalizer(owner, ORPHAN))
        elif has_finalizer(owner, FOREGROUND):
            if not any(self._blocks(dependent, key[1]) for dependent in dependents):
                self.registry.update(*ref, without_finalizer(owner, FOREGROUND))
            for dependent in dependents:
                self._enqueue(dependent)

    def _blocks(self, ref: Ref, uid: str) -> bool:
        obj = self.registry.get(*ref)
        return obj is not None and any(
            owner["uid"] == uid and owner.get("blockOwnerDeletion")
            for owner in owner_references(obj)
        )

    def _release(self, ref: Ref, uid: str) -> None:
        obj = self.registry.get(*ref)
        if obj is not None:
            self.registry.update(*ref, release(obj, uid))

    def stop(self) -> None:
        """Stop both queues."""
        super().stop()
        self._owners.stop()
