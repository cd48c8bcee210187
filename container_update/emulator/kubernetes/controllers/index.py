# SPDX-License-Identifier: Apache-2.0
"""An index of all objects, kept up to date by the registry's events.

Without it, controllers would list a namespace at each event. Objects are in the order in which they
were created, which timestamps of one second's resolution do not tell.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.objects import controller_of, owner_references


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
        self._orphans: defaultdict[tuple[str, str], dict[str, Json]] = defaultdict(dict)
        self._dependents: defaultdict[str, dict[Ref, None]] = defaultdict(dict)
        self._namespaces: defaultdict[str, dict[Ref, Json]] = defaultdict(dict)

    def apply(self, event: str, resource: str, obj: Json, previous: Json | None) -> None:
        """Update the index for one event of the registry."""
        metadata = obj["metadata"]
        ref = Ref(resource, metadata.get("namespace", ""), metadata["name"])
        if previous is not None:
            self._remove(ref, previous, None if event == "DELETED" else obj)
        elif event == "DELETED":
            self._remove(ref, obj, None)
        if event == "DELETED":
            self._refs.pop(metadata["uid"], None)
            self._namespaces[ref.namespace].pop(ref, None)
            return
        self._refs[metadata["uid"]] = ref
        self._namespaces[ref.namespace][ref] = obj
        self._add(ref, obj)

    def controlled_objects(self, resource: str, uid: str) -> list[Json]:
        """Return the objects of *resource* whose controller has this UID, oldest first."""
        return list(self._controlled.get((resource, uid), {}).values())

    def orphans(self, resource: str, namespace: str) -> list[Json]:
        """Return the objects of *resource* without a controller, oldest first."""
        return list(self._orphans.get((resource, namespace), {}).values())

    def dependents(self, uid: str) -> list[Ref]:
        """Return everything that has an owner of this UID."""
        return list(self._dependents.get(uid, {}))

    def ref_of(self, uid: str) -> Ref | None:
        """Return where the object of this UID is stored, or None."""
        return self._refs.get(uid)

    def in_namespace(self, namespace: str) -> list[tuple[Ref, Json]]:
        """Return everything in a namespace."""
        return list(self._namespaces.get(namespace, {}).items())

    def _remove(self, ref: Ref, old: Json, new: Json | None) -> None:
        """Remove the object from the groups to which it no longer belongs."""
        group = self._group(ref, old)
        if new is None or self._group(ref, new) is not group:
            group.pop(ref.name, None)
        kept = _owner_uids(new) if new is not None else set()
        for uid in _owner_uids(old) - kept:
            self._dependents[uid].pop(ref, None)
            if not self._dependents[uid]:
                del self._dependents[uid]

    def _add(self, ref: Ref, obj: Json) -> None:
        self._group(ref, obj)[ref.name] = obj
        for uid in _owner_uids(obj):
            self._dependents[uid][ref] = None

    def _group(self, ref: Ref, obj: Json) -> dict[str, Json]:
        controller = controller_of(obj)
        if controller is None:
            return self._orphans[ref.resource, ref.namespace]
        return self._controlled[ref.resource, controller["uid"]]


def _owner_uids(obj: Json) -> set[str]:
    return {owner["uid"] for owner in owner_references(obj)}
