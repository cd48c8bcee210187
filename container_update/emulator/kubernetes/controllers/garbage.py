"""The garbage collector: what happens to objects when their owners go.

Background: an owner goes at once, its dependents after it. Foreground: the owner stays, marked,
until all dependents that block its deletion are gone. Orphan: the dependents are let go first.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import (
    Context,
    Controller,
    Handler,
    Key,
    WorkQueue,
)
from container_update.emulator.kubernetes.controllers.index import Ref
from container_update.emulator.kubernetes.ownership import is_deleting, owner_references, released

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class GarbageCollector(Controller):
    """Deletes what has lost its owners. Keys are UIDs, since names may be given anew."""

    resource = "*"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._owners = WorkQueue(context.loop, self._release_owner)

    def handlers(self) -> Mapping[str, Handler]:
        """Everything."""
        return {"*": self._changed}

    def reconcile(self, key: Key) -> None:
        """Look whether the object of this UID still has an owner."""
        ref = self.index.where(key[1])
        obj = self.registry.get(*ref) if ref is not None else None
        if ref is None or obj is None or is_deleting(obj):
            return
        gone, going = self._lost_owners(obj)
        if not gone and not going:
            return
        if len(gone) + len(going) < len(owner_references(obj)):
            for uid in (*gone, *going):
                obj = released(obj, uid)
            self.registry.update(*ref, obj)
            return
        uid = obj["metadata"]["uid"]
        foreground = bool(going) and bool(self.index.dependents(uid))
        propagation = "Foreground" if foreground else "Background"
        self.registry.delete(*ref, uid=uid, propagation=propagation)

    def _changed(self, event: str, obj: Json, _previous: Json | None) -> None:
        metadata = obj["metadata"]
        if event == "DELETED":
            for ref in self.index.dependents(metadata["uid"]):
                self._look_at(ref)
            for owner in owner_references(obj):
                self._owners.add(("", owner["uid"]))
            return
        if "ownerReferences" in metadata and event == "ADDED":
            self.queue.add(("", metadata["uid"]))
        if "deletionTimestamp" in metadata and metadata.get("finalizers"):
            self._owners.add(("", metadata["uid"]))

    def _look_at(self, ref: Ref) -> None:
        obj = self.registry.get(*ref)
        if obj is not None:
            self.queue.add(("", obj["metadata"]["uid"]))

    def _lost_owners(self, obj: Json) -> tuple[list[str], list[str]]:
        """The UIDs of owners that are gone, and of those that wait for this object to go."""
        gone, going = [], []
        for owner in owner_references(obj):
            ref = self.index.where(owner["uid"])
            stored = self.registry.get(*ref) if ref is not None else None
            if stored is None:
                gone.append(owner["uid"])
            elif is_deleting(stored) and _has_finalizer(stored, FOREGROUND):
                going.append(owner["uid"])
        return gone, going

    def _release_owner(self, key: Key) -> None:
        """Work on an owner that waits for its dependents, or for letting them go."""
        ref = self.index.where(key[1])
        owner = self.registry.get(*ref) if ref is not None else None
        if ref is None or owner is None or not is_deleting(owner):
            return
        dependents = self.index.dependents(key[1])
        if _has_finalizer(owner, ORPHAN):
            for dependent in dependents:
                self._release(dependent, key[1])
            self._finish(ref, owner, ORPHAN)
        elif _has_finalizer(owner, FOREGROUND):
            if not any(self._blocks(dependent, key[1]) for dependent in dependents):
                self._finish(ref, owner, FOREGROUND)
            for dependent in dependents:
                self._look_at(dependent)

    def _blocks(self, ref: Ref, uid: str) -> bool:
        obj = self.registry.get(*ref)
        return obj is not None and any(
            owner["uid"] == uid and owner.get("blockOwnerDeletion")
            for owner in owner_references(obj)
        )

    def _release(self, ref: Ref, uid: str) -> None:
        obj = self.registry.get(*ref)
        if obj is not None:
            self.registry.update(*ref, released(obj, uid))

    def _finish(self, ref: Ref, owner: Json, finalizer: str) -> None:
        metadata = owner["metadata"]
        kept = [entry for entry in metadata["finalizers"] if entry != finalizer]
        self.registry.update(*ref, {**owner, "metadata": {**metadata, "finalizers": kept}})

    def stop(self) -> None:
        """Stop both queues."""
        super().stop()
        self._owners.stop()


def _has_finalizer(obj: Json, finalizer: str) -> bool:
    return finalizer in (obj["metadata"].get("finalizers") or [])
