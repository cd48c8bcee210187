# SPDX-License-Identifier: Apache-2.0
"""Which cloud the tests run on, and what it has for servers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import openstack.config

from tests.internals.stacks import Heat

REAL = os.environ.get("OS_CLOUD")
"""The real cloud's name in clouds.yaml; None: the embedded cloud."""


@dataclass(frozen=True)
class Site:
    """The images, flavors and network that servers are built with."""

    images: tuple[str, str] = ("image-1", "image-2")
    flavors: tuple[str, str] = ("small", "large")
    network: str = "net0"

    @classmethod
    def of_cloud(cls, heat: Heat) -> Site:
        """Return what ``CONTAINER_UPDATE_OS_SITE`` says; without it two images, the two smallest
        flavours and a network of the cloud."""
        if given := os.environ.get("CONTAINER_UPDATE_OS_SITE"):
            *four, network = given.split(",")
            return cls((four[0], four[1]), (four[2], four[3]), network)
        network_service = {"service_type": "network", "interface": "public"}
        session = heat._adapter.session
        networks = session.get("/v2.0/networks", endpoint_filter=network_service).json()["networks"]
        images = heat._glance.get("/images?sort=name:asc").json()["images"]
        flavors = heat._nova.get("/flavors/detail").json()["flavors"]
        flavors.sort(key=lambda flavor: flavor["vcpus"] * flavor["ram"] * max(1, flavor["disk"]))
        usable = [network["id"] for network in networks if network["subnets"]]
        return cls(_two(images, "id"), _two(flavors, "name"), usable[0])


def _two(found: list[dict[str, Any]], key: str) -> tuple[str, str]:
    one, other, *_ = (str(entry[key]) for entry in found)
    return one, other


def administrators_cloud() -> str | None:
    """Return the name in clouds.yaml of the same cloud for its administrator, where there is one:
    ``CONTAINER_UPDATE_OS_ADMIN``, or the cloud's name and ``-admin``."""
    known = openstack.config.OpenStackConfig().get_cloud_names()
    name = os.environ.get("CONTAINER_UPDATE_OS_ADMIN", f"{REAL}-admin")
    return name if name in known else None
