"""The live side: which server of a stack stands for which VDU, and what belongs to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from container_update.model.objects import Json
from container_update.package.hot import Place

SERVER, PORT, VOLUME = "OS::Nova::Server", "OS::Neutron::Port", "OS::Cinder::Volume"


@dataclass(frozen=True)
class VnfcServer:
    """A VNFC: a server of a VDU, with the ports and volumes beside it."""

    vdu_id: str
    stack: str
    """The stack that it is a resource of (``name/id``): the top one, or one nested in it."""
    resource: str
    """Its name there."""
    server_id: str
    name: str
    """Its resource below the top: the group member's name, else the resource's."""
    ports: Mapping[str, str] = field(default_factory=dict)
    """Connection point (the resource's name) to the port's id."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Storage (the resource's name) to the volume's id."""

    def __str__(self) -> str:
        return f"{self.vdu_id} {self.name} (server {self.server_id})"


def members(
    resources: Sequence[Json], top: str, places: Mapping[str, Place]
) -> tuple[VnfcServer, ...]:
    """Return the servers of the VDUs, VDU by VDU, oldest first.

    :param resources: the stack's resources, nested ones too, as Heat lists them.
    :param top: the reference of the stack itself.
    :param places: VDU id to where its server stands in the stack's templates.
    """
    parents = {_id_of(str(found["physical_resource_id"])): found for found in resources}
    owners = [(stack_of(found) or top, found) for found in resources]
    result = []
    for vdu_id, place in places.items():
        found_here = [
            VnfcServer(
                vdu_id,
                stack,
                found["resource_name"],
                str(found["physical_resource_id"]),
                _name(found, parents.get(_id_of(stack)), place),
                _beside(owners, stack, PORT),
                _beside(owners, stack, VOLUME),
            )
            for stack, found in _in_order(owners)
            if found["resource_type"] == SERVER and _stands_at(found, stack, place, parents, top)
        ]
        result += found_here
    return tuple(result)


def stack_of(resource: Json) -> str | None:
    """Return the reference of the stack that a resource is in, from its links."""
    for link in resource.get("links", ()):
        if link["rel"] == "stack":
            return str(link["href"].partition("/stacks/")[2])
    return None


def _in_order(owners: Sequence[tuple[str, Json]]) -> list[tuple[str, Json]]:
    return sorted(owners, key=lambda entry: (entry[1]["creation_time"], entry[1]["resource_name"]))


def _stands_at(
    found: Json, stack: str, place: Place, parents: Mapping[str, Json], top: str
) -> bool:
    """Whether a server's chain of resources, up to the top stack, is that of a place."""
    names = [found["resource_name"]]
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


def _name(found: Json, parent: Json | None, place: Place) -> str:
    own = str(found["resource_name"])
    return own if parent is None or place.file is None else str(parent["resource_name"])


def _beside(owners: Sequence[tuple[str, Json]], stack: str, kind: str) -> dict[str, str]:
    return {
        str(found["resource_name"]): str(found["physical_resource_id"])
        for owner, found in owners
        if owner == stack and found["resource_type"] == kind
    }


def _id_of(reference: str) -> str:
    return reference.rpartition("/")[2]
