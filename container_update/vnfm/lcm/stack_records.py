"""What a VNFM records of a VNF that is a Heat stack: instantiatedVnfInfo, from what is live. Pure.

Source: SOL003 5.5.2.2 and the attributes that the specification of a change of the package lists:
the stack's id in ``instance_id``, servers, connection points and volumes by their ids. An entry
whose resource was replaced by one of the same name goes on with that one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json
from container_update.package import hot
from container_update.stacks.vnfcs import PORT, VOLUME, Member
from container_update.vnfm.lcm import records

STACK = "instance_id"
"""Where the specification has the stack's id."""


def described(info: Json, members: Sequence[Member], stack_id: str) -> Json:
    """instantiatedVnfInfo as a stack is.

    :param info: as it was recorded; what is not about resources stays.
    :param members: every VNFC.
    :param stack_id: the VNF's stack.
    """
    volumes = _STORAGES.entries(info, [pair for each in members for pair in each.volumes.items()])
    ports = _LINKS.entries(info, [pair for each in members for pair in each.ports.items()])
    servers = _VNFCS.entries(info, [(each.vdu_id, each.server_id) for each in members])
    storage_ids = {_STORAGES.resource_id(entry): entry["id"] for entry in volumes}
    after: Json = {
        **info,
        STACK: stack_id,
        "metadata": {**(info.get("metadata") or {}), "stack_id": stack_id},
        _VNFCS.attribute: [
            {
                **entry,
                "storageResourceIds": [storage_ids[id_] for id_ in member.volumes.values()],
                "metadata": {"stack_id": member.stack.rpartition("/")[2]},
            }
            for entry, member in zip(servers, members, strict=True)
        ],
        _LINKS.attribute: ports,
        _STORAGES.attribute: volumes,
    }
    return {**after, "vnfcInfo": records.vnfc_info(after)}


@dataclass(frozen=True)
class _List:
    """One of the lists of resources."""

    attribute: str
    name: str
    """The attribute of an entry that says what of the VNFD it is."""
    handle: str
    """Its ResourceHandle."""
    kind: str
    """vimLevelResourceType."""

    def resource_id(self, entry: Mapping[str, Any]) -> str:
        """The id that the VIM knows an entry's resource by."""
        return str((entry.get(self.handle) or {}).get("resourceId", ""))

    def entries(self, info: Json, wanted: Iterable[tuple[str, str]]) -> list[Json]:
        """One entry for each name and resource id, in their order."""
        wanted = list(wanted)
        recorded: list[Json] = list(info.get(self.attribute) or ())
        known = {self.resource_id(entry): entry for entry in recorded}
        there = {resource_id for _, resource_id in wanted}
        free = [entry for entry in recorded if self.resource_id(entry) not in there]
        return [
            known.get(resource_id) or self._entry(name, resource_id, free)
            for name, resource_id in wanted
        ]

    def _entry(self, name: str, resource_id: str, free: list[Json]) -> Json:
        """An entry that goes on with another resource, or a new one."""
        old = next((entry for entry in free if entry.get(self.name) == name), None)
        if old is not None:
            free.remove(old)
        handle = {"resourceId": resource_id, "vimLevelResourceType": self.kind}
        return {"id": str(uuid.uuid4()), **(old or {}), self.name: name, self.handle: handle}


_VNFCS = _List("vnfcResourceInfo", "vduId", "computeResource", hot.SERVER)
_LINKS = _List("vnfVirtualLinkResourceInfo", "vnfVirtualLinkDescId", "networkResource", PORT)
_STORAGES = _List("virtualStorageResourceInfo", "virtualStorageDescId", "storageResource", VOLUME)
