"""What of a VNF's records follows the resources of its stack. Pure.

Source: the specification's lists of attributes to be updated, "process for OpenStack VIM". Which
ids change is Heat's matter: the VNFCs before and after are compared, VDU by VDU in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from container_update.model.outcome import Vnfc
from container_update.operations.vnf_records import Records, Storage
from container_update.package import hot
from container_update.stacks.vnfcs import Member

_Ids = Mapping[tuple[str, str], Sequence[str]]
"""VDU and resource name to the ids of its VNFCs' resources of that name."""


def records(
    vnfd_id: str,
    before: Sequence[Member],
    after: Sequence[Member],
    live: Sequence[Member],
    stack_id: str | None,
) -> Records:
    """The attributes that the specification lists.

    :param before: the VNFCs of the changed VDUs as they were.
    :param after: the same as they are.
    :param live: the VNFCs of every VDU.
    :param stack_id: the id of the stack that the VNF is now; None where it stays.
    """
    old, new = _by_name(before, "volumes"), _by_name(after, "volumes")
    renamed = _renamed(old, new)
    there = {id_ for ids in new.values() for id_ in ids}
    return Records(
        vnfd_id=vnfd_id,
        vnfcs=vnfcs(live),
        network_resources=_renamed(_by_name(before, "ports"), _by_name(after, "ports")),
        storage_resources=renamed,
        gone_storages=frozenset(
            id_ for ids in old.values() for id_ in ids if id_ not in renamed and id_ not in there
        ),
        new_storages=tuple(
            Storage(name, id_, member.server_id)
            for member in after
            for name, id_ in member.volumes.items()
            if (member.vdu_id, name) not in old
        ),
        instance_ref=stack_id,
    )


def vnfcs(members: Sequence[Member]) -> tuple[Vnfc, ...]:
    """The VNFCs as every strategy tells them."""
    return tuple(
        Vnfc(member.vdu_id, member.server_id, "", hot.SERVER, member.name) for member in members
    )


def _renamed(old: _Ids, new: _Ids) -> dict[str, str]:
    return {
        was: now
        for name in old
        for was, now in zip(old[name], new.get(name, ()), strict=False)
        if was != now
    }


def _by_name(members: Sequence[Member], what: str) -> _Ids:
    found: dict[tuple[str, str], list[str]] = {}
    for member in members:
        for name, id_ in getattr(member, what).items():
            found.setdefault((member.vdu_id, name), []).append(id_)
    return found
