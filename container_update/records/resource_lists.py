# SPDX-License-Identifier: Apache-2.0
"""The lists of resources in instantiatedVnfInfo: which entry keeps its id for which resource. Pure.

Source: SOL003 5.5.3.5 to 5.5.3.7. A virtual link is recorded by what a VNFC is reached by: the port
of a server, a Service of a CNF. A CNF's storages are the PersistentVolumeClaims of its pods.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from container_update.model.objects import Json

Entry = TypeVar("Entry")


def assign(
    entries: Sequence[Entry],
    live: Sequence[tuple[str, str]],
    identify: Callable[[Entry], tuple[str, str]],
) -> list[Entry | None]:
    """Return the entry of each live resource; None: it needs a new one.

    An entry keeps its resource while that lives, else takes over a new one of the same name.
    Surplus entries are left out.

    :param live: name (a VDU, a connection point, a storage) and resource id of each.
    :param identify: returns name and resource id of an entry.
    """
    by_resource = {identify(entry)[1]: entry for entry in entries}
    live_ids = {resource_id for _, resource_id in live}
    free: dict[str, list[Entry]] = {}
    for entry in entries:
        name, resource_id = identify(entry)
        if resource_id not in live_ids:
            free.setdefault(name, []).append(entry)
    return [
        by_resource[resource_id]
        if resource_id in by_resource
        else (free[name].pop(0) if free.get(name) else None)
        for name, resource_id in live
    ]


@dataclass(frozen=True)
class ResourceList:
    """One of the lists of resources in instantiatedVnfInfo."""

    attribute: str
    name: str
    """The attribute of an entry that names its node in the VNFD."""
    handle: str
    """The attribute of an entry that is its ResourceHandle."""

    def resource_id(self, entry: Mapping[str, Any]) -> str:
        """Return the id that the VIM knows an entry's resource by."""
        return str((entry.get(self.handle) or {}).get("resourceId", ""))

    def entries(self, info: Json, live: Sequence[tuple[str, str]], kind: str) -> list[Json]:
        """Return an entry for each name and id; *kind* is new ones' vimLevelResourceType."""
        pairs = assign(
            list(info.get(self.attribute) or ()),
            live,
            lambda entry: (str(entry.get(self.name)), self.resource_id(entry)),
        )
        return [
            {**old, self.name: name}
            if old is not None and self.resource_id(old) == resource_id
            else self._entry(name, resource_id, kind, old)
            for old, (name, resource_id) in zip(pairs, live, strict=True)
        ]

    def _entry(self, name: str, resource_id: str, kind: str, old: Json | None) -> Json:
        handle = {"resourceId": resource_id, "vimLevelResourceType": kind}
        return {"id": str(uuid.uuid4()), **(old or {}), self.name: name, self.handle: handle}

    def rename(self, info: Json, names: Mapping[str, str]) -> None:
        """Give the entries of these resources the ids of those that replaced them."""
        for entry in info.get(self.attribute) or ():
            handle = entry.get(self.handle) or {}
            if handle.get("resourceId") in names:
                handle["resourceId"] = names[handle["resourceId"]]


VNFCS = ResourceList("vnfcResourceInfo", "vduId", "computeResource")
LINKS = ResourceList("vnfVirtualLinkResourceInfo", "vnfVirtualLinkDescId", "networkResource")
STORAGES = ResourceList("virtualStorageResourceInfo", "virtualStorageDescId", "storageResource")
