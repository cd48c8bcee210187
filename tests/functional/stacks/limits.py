# SPDX-License-Identifier: Apache-2.0
"""What a cloud refuses, and what others do to it: arranged on the embedded cloud and a real one.

A real cloud needs an administrator for flavours and quotas.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from container_update.emulator.heat import EmbeddedOpenStack, ResourceFault
from tests.functional.stacks.site import Site
from tests.functional.stacks.vnf import until
from tests.internals.stacks import Heat, connect

NO_DISK_IS_THAT_LARGE = 10_000_000


class Limits(Protocol):
    """What a cloud has, and has no room for."""

    cores: str
    """A flavour with more cores than the site's first one and a disk of the same size."""
    disk: str
    """A flavour with a larger disk than the site's first one."""
    nowhere: str
    """A flavour that no host has room for."""

    def unknown_image(self) -> str:
        """Return the id of an image that is not there."""

    def room_for(self, *, servers: int | None = None, resizes: int | None = None) -> None:
        """Refuse all servers, or all resizes to the flavour *cores*, after so many more."""

    def lift(self) -> None:
        """Refuse nothing any more."""

    def rebuild(self, server_id: str, image: str) -> None:
        """Give a server another image without Heat."""

    def stop(self, server_id: str, status: str) -> None:
        """Bring a server to SHUTOFF or SUSPENDED without Heat."""

    def token(self) -> object:
        """Return what is another one as soon as another token is in use."""

    def expire_token(self) -> None:
        """End the validity of the token in use."""


@dataclass
class EmbeddedLimits:
    """Those of the embedded cloud."""

    cloud: EmbeddedOpenStack
    site: Site
    cores = "more-cores"
    disk = "larger-disk"
    nowhere = "no-host"

    def __post_init__(self) -> None:
        """Give the flavours their disks, and let no host have room for one of them."""
        self.cloud.faults.disks = {self.site.flavors[0]: 1, self.cores: 1, self.disk: 2}
        self.lift()

    def unknown_image(self) -> str:
        """Let the site's images be all that there are."""
        self.cloud.faults.images = set(self.site.images)
        return "image-nowhere"

    def room_for(self, *, servers: int | None = None, resizes: int | None = None) -> None:
        """Count what there is, or what is still to be resized."""
        if servers is not None:
            used = self.cloud.call(lambda heat: len(list(heat.servers())))
            self.cloud.faults.servers_allowed = used + servers
        if resizes is not None:
            fault = ResourceFault(
                "Quota exceeded for cores: Requested 1, but already used 4 of 4 cores (HTTP 403)",
                "Forbidden",
                action="UPDATE",
                where=lambda properties: properties.get("flavor") == self.cores,
                nth=resizes + 1,
            )
            self.cloud.faults.resources.append(fault)

    def lift(self) -> None:
        """Refuse only what no host has room for."""
        self.cloud.faults.servers_allowed = None
        self.cloud.faults.resources[:] = [
            ResourceFault(where=lambda properties: properties.get("flavor") == self.nowhere)
        ]

    def rebuild(self, server_id: str, image: str) -> None:
        """Change what Nova has."""
        self._set(server_id, image=image)

    def stop(self, server_id: str, status: str) -> None:
        """Change what Nova has."""
        self._set(server_id, status=status)

    def _set(self, server_id: str, **facts: str) -> None:
        def change(heat: Any) -> None:
            for server in heat.servers():
                if server.physical_id == server_id:
                    server.facts.update(facts)

        self.cloud.call(change)

    def token(self) -> object:
        """Return how many were issued."""
        return self.cloud.keystone.issued

    def expire_token(self) -> None:
        """Let Keystone forget it."""
        self.cloud.keystone.expire_tokens()


@dataclass
class RealLimits:
    """Those of a real cloud: flavours of our own, and the project's quotas."""

    heat: Heat
    admin: Heat
    site: Site
    cores: str = field(default_factory=lambda: f"cores-{uuid.uuid4()}")
    disk: str = field(default_factory=lambda: f"disk-{uuid.uuid4()}")
    nowhere: str = field(default_factory=lambda: f"nowhere-{uuid.uuid4()}")

    @classmethod
    @contextmanager
    def made(cls, heat: Heat, admin_cloud: str, site: Site) -> Iterator[RealLimits]:
        """Make the flavours; in the end delete them and lift the quotas."""
        with connect(admin_cloud) as admin:
            limits = cls(heat, admin, site)
            # quotas count what an earlier test's stacks still have
            until(lambda: not any("DELETE" in stack["stack_status"] for stack in heat.stacks()))
            first = limits._flavor(site.flavors[0])
            cores, disk = {"vcpus": first["vcpus"] + 1}, {"disk": first["disk"] + 1}
            nowhere = {"disk": NO_DISK_IS_THAT_LARGE}
            named = ((limits.cores, cores), (limits.disk, disk), (limits.nowhere, nowhere))
            ids = [limits._make({**first, **more, "name": name}) for name, more in named]
            try:
                yield limits
            finally:
                limits.lift()
                for flavor_id in ids:
                    admin._nova.delete(f"/flavors/{flavor_id}")

    def unknown_image(self) -> str:
        """Return an id that no image has."""
        return str(uuid.uuid4())

    def room_for(self, *, servers: int | None = None, resizes: int | None = None) -> None:
        """Set the quotas for servers and cores."""
        used = self.heat._nova.get("/limits").json()["limits"]["absolute"]
        if servers is not None:
            self._quota(instances=used["totalInstancesUsed"] + servers)
        if resizes is not None:
            self._quota(cores=used["totalCoresUsed"] + resizes)

    def lift(self) -> None:
        """Go back to the cloud's default quotas."""
        self.admin._nova.delete(f"/os-quota-sets/{self._project}")

    def rebuild(self, server_id: str, image: str) -> None:
        """Rebuild the server and wait for Nova."""
        self._act(server_id, {"rebuild": {"imageRef": image}}, "ACTIVE")

    def stop(self, server_id: str, status: str) -> None:
        """Stop or suspend the server and wait for Nova."""
        action = {"SHUTOFF": "os-stop", "SUSPENDED": "suspend"}[status]
        self._act(server_id, {action: None}, status)

    def _act(self, server_id: str, action: dict[str, Any], status: str) -> None:
        server = f"/servers/{server_id}"
        self.heat._nova.post(f"{server}/action", json=action)
        until(lambda: self.heat._nova.get(server).json()["server"]["status"] == status)

    def token(self) -> object:
        """Return the session's."""
        return self.heat._adapter.session.get_token()

    def expire_token(self) -> None:
        """Revoke it."""
        session = self.heat._adapter.session
        token = {"X-Subject-Token": session.get_token()}
        identity = {"service_type": "identity", "interface": "public"}
        answer = session.delete(
            "/auth/tokens", headers=token, endpoint_filter=identity, raise_exc=False
        )
        assert answer.status_code in (204, 404), "404: it was revoked already, and not used since"

    @property
    def _project(self) -> str:
        return str(self.heat._adapter.session.get_project_id())

    def _quota(self, **quotas: int) -> None:
        body = {"quota_set": quotas}
        self.admin._nova.put(f"/os-quota-sets/{self._project}", json=body)

    def _flavor(self, name: str) -> dict[str, Any]:
        known = self.admin._nova.get("/flavors/detail").json()["flavors"]
        (found,) = [flavor for flavor in known if flavor["name"] == name]
        return {key: found[key] for key in ("ram", "vcpus", "disk")}

    def _make(self, flavor: dict[str, Any]) -> str:
        answer = self.admin._nova.post("/flavors", json={"flavor": flavor})
        return str(answer.json()["flavor"]["id"])
