# SPDX-License-Identifier: Apache-2.0
"""What a server runs on, by Nova, and whether that is what its stack's template says.

A complete stack does not prove it: Heat compares a template with the one before, and does not look
at Nova where they agree. So a server that was rebuilt behind Heat's back, or after Heat had given
up, keeps what it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from container_update.model.objects import Json
from container_update.package import hot
from container_update.package.hot import StackBody

if TYPE_CHECKING:
    from container_update.openstack.client import Heat


@dataclass(frozen=True)
class Software:
    """The image and the flavour that a server has."""

    image: str
    """The image's id; empty where the server boots from a volume."""
    flavour: str
    """The flavour's name; its id where Nova tells no name (before its API version 2.47)."""
    disk: int | None = None
    """The size of its root disk in GB, where Nova tells it."""

    @classmethod
    def of(cls, server: Json | None) -> Software | None:
        """Return that of a server's resource as Heat describes it; None where Nova has none.

        Source: Nova's API reference, "Show Server Details".
        """
        attributes: Any = (server or {}).get("attributes") or {}
        flavour: Any = attributes.get("flavor")
        if not isinstance(flavour, dict):
            return None
        name = flavour.get("original_name") or flavour.get("id")
        return cls((attributes.get("image") or {}).get("id", ""), str(name), flavour.get("disk"))


def defined_software(body: StackBody, server: str) -> dict[str, str]:
    """Return the image and the flavour that a server's own stack defines, as names or ids.

    What only Heat can resolve, or is not given, is left out.
    """
    definition = body.template["resources"].get(server) or {}
    properties = hot.bind(definition.get("properties") or {}, body)
    return {
        name: value
        for name in ("image", "flavor")
        if isinstance(value := properties.get(name), str) and value
    }


def deviation(
    service: Heat,
    server: Json | None,
    body: StackBody,
    resource: str,
    known: Software | None = None,
) -> str:
    """Return in which way a server is not as its stack defines it; empty where it is.

    :param known: what the server had when its stack was this one: names may have got another
        meaning since.
    """
    live, names = Software.of(server), defined_software(body, resource)
    if live is None:
        return ""
    wrong = []
    image, flavour = names.get("image"), names.get("flavor")
    if image and live.image != image:
        expected = known.image if known else service.image_id(image)
        if expected and live.image != expected:
            wrong.append(f"image {live.image or '(a volume)'} instead of {image}")
    if flavour and live.flavour != flavour:
        names_of = {known.flavour} if known else service.flavour_names(flavour)
        if names_of and live.flavour not in names_of:
            wrong.append(f"flavour {live.flavour} instead of {flavour}")
    return ", ".join(wrong)


def as_it_is(body: StackBody, server: str, live: Software) -> StackBody:
    """Return a stack's body with a server defined as Nova has it.

    After an update to it Heat sees a difference to the body again, and takes action.
    """
    resources = dict(body.template["resources"])
    properties = dict(resources[server].get("properties") or {})
    names = defined_software(body, server)
    properties |= {"image": live.image} if "image" in names and live.image else {}
    properties |= {"flavor": live.flavour} if "flavor" in names else {}
    resources[server] = {**resources[server], "properties": properties}
    return StackBody(
        {**body.template, "resources": resources}, body.parameters, body.files, body.environment
    )
