"""What controllers look up all the time, kept up to date by the registry's events.

Without it each event would list a namespace: a hundred rollouts at once would be quadratic.
Objects keep the order in which they came into being, which settles what timestamps of a second's
resolution leave open.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.ownership import controller_uid, owner_references


class Ref(NamedTuple):
    """Where an object is stored."""

    resource: str
    namespace: str
    name: str


class Index:
    """Objects by UID, by owner, by controller and by namespace."""

    def __init__(self) -> None:
        self._refs: dict[str, Ref] = {}
        self._controlled: defaultdict[tuple[str, str], dict[str, Json]] = defaultdict(dict)
        self._loose: defaultdict[tuple[str, str], dict[str, Json]] = defaultdict(dict)
        self._dependents: defaultdict[str, dict[Ref, None]] = defaultdict(dict)
        self._namespaces: defaultdict[str, dict[Ref, Json]] = defaultdict(dict)

    def apply(self, event: str, resource: str, obj: Json, previous: Json | None) -> None:
        """Take in one event of the registry."""
        metadata = obj["metadata"]
        ref = Ref(resource, metadata.get("namespace", ""), metadata["name"])
        if previous is not None:
            self._move(ref, previous, None if event == "DELETED" else obj)
        elif event == "DELETED":
            self._move(ref, obj, None)
        if event == "DELETED":
            self._refs.pop(metadata["uid"], None)
            self._namespaces[ref.namespace].pop(ref, None)
            return
        self._refs[metadata["uid"]] = ref
        self._namespaces[ref.namespace][ref] = obj
        self._place(ref, obj)

    def controlled(self, resource: str, uid: str) -> list[Json]:
        """The objects of *resource* whose controller has this UID, oldest first."""
        found = self._controlled.get((resource, uid))
        return list(found.values()) if found else []

    def loose(self, resource: str, namespace: str) -> list[Json]:
        """The objects of *resource* that no controller has claimed, oldest first."""
        found = self._loose.get((resource, namespace))
        return list(found.values()) if found else []

    def dependents(self, uid: str) -> list[Ref]:
        """Everything that names this UID as an owner."""
        found = self._dependents.get(uid)
        return list(found) if found else []

    def where(self, uid: str) -> Ref | None:
        """Where the object of this UID is; None where there is none."""
        return self._refs.get(uid)

    def inside(self, namespace: str) -> list[tuple[Ref, Json]]:
        """Everything in a namespace."""
        found = self._namespaces.get(namespace)
        return list(found.items()) if found else []

    def _move(self, ref: Ref, old: Json, new: Json | None) -> None:
        """Take the object out of the places where it no longer belongs."""
        old_place = self._home(ref, old)
        if new is None or self._home(ref, new) is not old_place:
            old_place.pop(ref.name, None)
        kept = _owner_uids(new) if new is not None else set()
        for uid in _owner_uids(old) - kept:
            found = self._dependents[uid]
            found.pop(ref, None)
            if not found:
                del self._dependents[uid]

    def _place(self, ref: Ref, obj: Json) -> None:
        self._home(ref, obj)[ref.name] = obj
        for uid in _owner_uids(obj):
            self._dependents[uid][ref] = None

    def _home(self, ref: Ref, obj: Json) -> dict[str, Json]:
        uid = controller_uid(obj)
        if uid is None:
            return self._loose[ref.resource, ref.namespace]
        return self._controlled[ref.resource, uid]


def _owner_uids(obj: Json) -> set[str]:
    return {owner["uid"] for owner in owner_references(obj)}
