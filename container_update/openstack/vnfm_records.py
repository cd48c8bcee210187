# SPDX-License-Identifier: Apache-2.0
"""What a VNFM records of a VNF that is a Heat stack. Pure.

:func:`records` is the result of a change of the package, as every strategy returns it.
:func:`instantiated_info` writes instantiatedVnfInfo from the live stack, independent of earlier
records.

Source: SOL003 5.5.2.2 and the specification's lists of attributes to be updated, "process for
OpenStack VIM": the stack's id in ``instance_id``, servers, connection points and volumes by their
ids. Heat decides which ids change: an entry whose resource was replaced by one of the same name
gets its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.openstack.vnfcs import PORT, SERVER, VOLUME, VnfcServer
from container_update.records.vnf_records import Records

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

    :param before: the VNFCs of the changed VDUs; *after* too, *live*: those of every VDU.
    :param stack_id: the id of the stack that the VNF is now; None where it stays.
    """
    return replace(
        _live(live),
        vnfd_id=vnfd_id,
        network_resources=_renamed_ids(_by_name(before, "ports"), _by_name(after, "ports")),
        storage_resources=_renamed_ids(_by_name(before, "volumes"), _by_name(after, "volumes")),
        instance_ref=stack_id,
    )


def _live(members: Sequence[VnfcServer]) -> Records:
    """Return the records of the live VNFCs."""
    ports = dict.fromkeys(pair for member in members for pair in member.ports.items())
    return Records(vnfcs=vnfcs(members), links=tuple(ports), link_kind=PORT, storage_kind=VOLUME)


def vnfcs(members: Sequence[VnfcServer]) -> tuple[Vnfc, ...]:
    """Return the VNFCs as every strategy reports them."""
    return tuple(
        Vnfc(member.vdu_id, member.server_id, "", SERVER, member.name, storages=member.volumes)
        for member in members
    )


def _renamed_ids(old: _Ids, new: _Ids) -> dict[str, str]:
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


def instantiated_info(info: Json, members: Sequence[VnfcServer], stack_id: str) -> Json:
    """Return instantiatedVnfInfo for a live stack.

    :param info: the recorded one; what is not about resources stays.
    """
    metadata = {**(info.get("metadata") or {}), "stack_id": stack_id}
    records = replace(_live(members), instance_ref=stack_id)
    after: Json = records.apply_to({"instantiatedVnfInfo": {**info, "metadata": metadata}})
    described: Json = after["instantiatedVnfInfo"]
    for entry, member in zip(described["vnfcResourceInfo"], members, strict=True):
        entry["metadata"] = {"stack_id": member.stack.rpartition("/")[2]}
        entry.setdefault("storageResourceIds", [])
    return described
