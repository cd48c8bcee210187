"""What a VNFM records of a VNF that is a Heat stack. Pure.

:func:`records` is the result of a change of the package, as every strategy returns it.
:func:`described` writes instantiatedVnfInfo from the live stack, independent of earlier records.

Source: SOL003 5.5.2.2 and the specification's lists of attributes to be updated, "process for
OpenStack VIM": the stack's id in ``instance_id``, servers, connection points and volumes by their
ids. Heat decides which ids change: an entry whose resource was replaced by one of the same name
gets its id.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.operations.vnf_records import Records, Storage, assign, vnfc_info
from container_update.stacks.vnfcs import PORT, SERVER, VOLUME, VnfcServer

STACK = "instance_id"
"""The attribute in which the specification has the stack's id."""

_Ids = Mapping[tuple[str, str], Sequence[str]]
"""VDU and resource name to the ids of its VNFCs' resources of that name."""


def records(
    vnfd_id: str,
    before: Sequence[VnfcServer],
    after: Sequence[VnfcServer],
    live: Sequence[VnfcServer],
    stack_id: str | None,
) -> Records:
    """Return the attributes that the specification lists.

    :param before: the VNFCs of the changed VDUs as they were.
    :param after: the same as they are.
    :param live: the VNFCs of every VDU.
    :param stack_id: the id of the stack that the VNF is now; None where it stays.
    """
    old, new = _by_name(before, "volumes"), _by_name(after, "volumes")
    renamed = _renamed(old, new)
    present = {id_ for ids in new.values() for id_ in ids}
    return Records(
        vnfd_id=vnfd_id,
        vnfcs=vnfcs(live),
        network_resources=_renamed(_by_name(before, "ports"), _by_name(after, "ports")),
        storage_resources=renamed,
        gone_storages=frozenset(
            id_ for ids in old.values() for id_ in ids if id_ not in renamed and id_ not in present
        ),
        new_storages=tuple(
            Storage(name, id_, member.server_id)
            for member in after
            for name, id_ in member.volumes.items()
            if (member.vdu_id, name) not in old
        ),
        instance_ref=stack_id,
    )


def vnfcs(members: Sequence[VnfcServer]) -> tuple[Vnfc, ...]:
    """Return the VNFCs as every strategy reports them."""
    return tuple(
        Vnfc(member.vdu_id, member.server_id, "", SERVER, member.name) for member in members
    )


def _renamed(old: _Ids, new: _Ids) -> dict[str, str]:
    return {
        was: now
        for name in old
        for was, now in zip(old[name], new.get(name, ()), strict=False)
        if was != now
    }


def _by_name(members: Sequence[VnfcServer], attribute: str) -> _Ids:
    ids: dict[tuple[str, str], list[str]] = {}
    for member in members:
        for name, id_ in getattr(member, attribute).items():
            ids.setdefault((member.vdu_id, name), []).append(id_)
    return ids


# --- as it is -----------------------------------------------------------------------------------


def described(info: Json, members: Sequence[VnfcServer], stack_id: str) -> Json:
    """Return instantiatedVnfInfo for a live stack.

    :param info: the recorded one; what is not about resources stays.
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
    return {**after, "vnfcInfo": vnfc_info(after)}


@dataclass(frozen=True)
class _List:
    """One of the lists of resources in instantiatedVnfInfo."""

    attribute: str
    name: str
    """The attribute of an entry that names its node in the VNFD."""
    handle: str
    """The attribute of an entry that is its ResourceHandle."""
    kind: str
    """vimLevelResourceType."""

    def resource_id(self, entry: Mapping[str, Any]) -> str:
        """Return the id that the VIM knows an entry's resource by."""
        return str((entry.get(self.handle) or {}).get("resourceId", ""))

    def entries(self, info: Json, live: Sequence[tuple[str, str]]) -> list[Json]:
        """Return one entry for each name and resource id, in their order."""
        pairs = assign(
            list(info.get(self.attribute) or ()),
            live,
            lambda entry: (str(entry.get(self.name)), self.resource_id(entry)),
        )
        return [
            old
            if old is not None and self.resource_id(old) == resource_id
            else self._entry(name, resource_id, old)
            for old, (name, resource_id) in zip(pairs, live, strict=True)
        ]

    def _entry(self, name: str, resource_id: str, old: Json | None) -> Json:
        handle = {"resourceId": resource_id, "vimLevelResourceType": self.kind}
        return {"id": str(uuid.uuid4()), **(old or {}), self.name: name, self.handle: handle}


_VNFCS = _List("vnfcResourceInfo", "vduId", "computeResource", SERVER)
_LINKS = _List("vnfVirtualLinkResourceInfo", "vnfVirtualLinkDescId", "networkResource", PORT)
_STORAGES = _List("virtualStorageResourceInfo", "virtualStorageDescId", "storageResource", VOLUME)
