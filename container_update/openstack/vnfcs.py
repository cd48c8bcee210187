# SPDX-License-Identifier: Apache-2.0
"""The VNFCs of a live stack: its servers by VDU, with their ports and volumes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from container_update.model.objects import Json
from container_update.openstack.software import Software
from container_update.package.hot import Place

SERVER, PORT, VOLUME = "OS::Nova::Server", "OS::Neutron::Port", "OS::Cinder::Volume"
ATTACHMENT = "OS::Cinder::VolumeAttachment"


@dataclass(frozen=True)
class VnfcServer:
    """A server of a VDU (a VNFC), with the ports and volumes of its stack."""

    vdu_id: str
    stack: str
    """The stack that it is a resource of (``name/id``): the top one, or one nested in it."""
    resource: str
    """The name of its resource in that stack."""
    server_id: str
    name: str
    """The name among the VDU's VNFCs: the group member's, else the resource's."""
    ports: Mapping[str, str] = field(default_factory=dict)
    """Connection point (the resource's name) to the port's id. As the volumes: those of its stack
    that are not another server's."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Storage (the resource's name) to the volume's id."""
    group: str | None = None
    """The scaling group's own stack (``name/id``) whose member the server's stack is."""
    software: Software | None = None
    """What the server runs on, where that was read."""
    deviation: str = ""
    """In which way that is not what its stack says."""

    def __str__(self) -> str:
        return f"{self.vdu_id} {self.name} (server {self.server_id})"


def members(
    resources: Sequence[Json], top: str, places: Mapping[str, Place]
) -> tuple[VnfcServer, ...]:
    """Return the servers of the VDUs, VDU by VDU, oldest first.

    :param resources: the stack's resources, nested ones too, as Heat lists them.
    """
    parents = {_id_of(str(resource["physical_resource_id"])): resource for resource in resources}
    owners = [(stack_of(resource) or top, resource) for resource in resources]
    in_order = sorted(owners, key=lambda pair: (pair[1]["creation_time"], pair[1]["resource_name"]))
    servers = []
    for vdu_id, place in places.items():
        for stack, server in in_order:
            if server["resource_type"] != SERVER or not _is_at(place, server, stack, parents, top):
                continue
            named = server if place.file is None else parents.get(_id_of(stack), server)
            in_group = place.grouped and place.file is not None
            of_others = _of_others(server["resource_name"], owners, stack)
            servers.append(
                VnfcServer(
                    vdu_id,
                    stack,
                    server["resource_name"],
                    str(server["physical_resource_id"]),
                    str(named["resource_name"]),
                    _ids(owners, stack, PORT, of_others),
                    _ids(owners, stack, VOLUME, of_others),
                    stack_of(named) if in_group else None,
                )
            )
    return tuple(servers)


def stack_of(resource: Json) -> str | None:
    """Return the reference of the stack that a resource is in, from its links."""
    for link in resource.get("links", ()):
        if link["rel"] == "stack":
            return str(link["href"].partition("/stacks/")[2])
    return None


def _is_at(place: Place, server: Json, stack: str, parents: Mapping[str, Json], top: str) -> bool:
    """Return whether the resources from the top stack down to a server are those of a place."""
    names = [server["resource_name"]]
    while _id_of(stack) != _id_of(top):
        parent = parents.get(_id_of(stack))
        if parent is None:
            return False
        names.insert(0, parent["resource_name"])
        stack = stack_of(parent) or top
    expected = [place.head] + ["*"] * place.grouped
    expected += [place.server] if place.file and place.server else []
    return len(names) == len(expected) and all(
        pattern in ("*", name) for pattern, name in zip(expected, names, strict=True)
    )


def _of_others(server: str, owners: Sequence[tuple[str, Json]], stack: str) -> set[str]:
    """Return the names of a stack's resources that only other servers than this one use."""
    own = [resource for owner, resource in owners if owner == stack]
    kinds = {str(resource["resource_name"]): resource["resource_type"] for resource in own}
    needs: dict[str, set[str]] = {name: set() for name in kinds}
    for resource in own:
        for name in set(resource.get("required_by") or ()) & set(kinds):
            needs[name].add(resource["resource_name"])

    def used_by(user: str) -> set[str]:
        """Return what a server needs and has attached, without what other servers need."""
        attached = (n for n, kind in kinds.items() if kind == ATTACHMENT and user in needs[n])
        used: set[str] = set()
        queue = {user, *attached}
        while queue:
            used |= queue
            # what another server needs is that one's: nothing is followed through it
            further = (needs[name] for name in queue if name == user or kinds[name] != SERVER)
            queue = set().union(*further) - used
        return used

    others = (name for name, kind in kinds.items() if kind == SERVER and name != server)
    return set().union(*map(used_by, others)) - used_by(server)


def _ids(
    owners: Sequence[tuple[str, Json]], stack: str, kind: str, left_out: Collection[str]
) -> dict[str, str]:
    """Return the ids of a stack's own resources of a type, by their names."""
    return {
        str(resource["resource_name"]): str(resource["physical_resource_id"])
        for owner, resource in owners
        if owner == stack
        and resource["resource_type"] == kind
        and resource["resource_name"] not in left_out
    }


def _id_of(reference: str) -> str:
    return reference.rpartition("/")[2]
