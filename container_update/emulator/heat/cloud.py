# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud as a whole: Keystone and Heat on a thread of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml

from container_update.emulator import private_file
from container_update.emulator.heat import keystone
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.heat import HeatService
from container_update.emulator.heat.keystone import Keystone
from container_update.emulator.heat.server import CloudServer
from container_update.emulator.http_server import HttpServerThread

Result = TypeVar("Result")

CLOUD = "embedded"
"""The name of the cloud in its clouds.yaml."""


class EmbeddedOpenStack(HttpServerThread):
    """An OpenStack cloud on loopback with one user, one project and no stacks.

    Use it as a context manager, or :meth:`start` and :meth:`stop` it.

    :param port: where to listen on 127.0.0.1; 0 for any free port.
    :param faults: which resources fail; it may be changed while the cloud runs.

    Example::

        from container_update.emulator.heat import EmbeddedOpenStack, ResourceFault

        with EmbeddedOpenStack() as cloud:
            cloud.faults.resources.append(ResourceFault(name="VDU1"))
            connection = openstack.connect(**cloud.auth())
            stack = connection.create_stack("vnf", template_file="vnf.yaml")
    """

    def __init__(self, *, port: int = 0, faults: CloudFaults | None = None) -> None:
        super().__init__("embedded-openstack")
        self.port = port
        self.faults = faults or CloudFaults()
        self.keystone = Keystone(self._urls)
        self.heat = HeatService(self.faults, lambda: self._urls()["orchestration"])
        self._server: CloudServer = CloudServer(self.keystone, self.heat, self.faults)

    async def _open(self) -> None:
        self.port = await self._server.start(self.port)

    async def _close(self) -> None:
        running = list(self.heat.engine.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._server.stop()

    def _urls(self) -> dict[str, str]:
        return {
            "identity": f"{self.url}/identity",
            "orchestration": f"{self.url}/heat-api/v1/{self.keystone.project_id}",
            "image": f"{self.url}/image/v2",
            "compute": f"{self.url}/compute/v2.1",
        }

    @property
    def url(self) -> str:
        """The base URL of all its services."""
        return f"http://127.0.0.1:{self.port}"

    def auth(self) -> dict[str, str]:
        """Return what the client libraries call ``auth``."""
        return {
            "auth_url": f"{self.url}/identity",
            "username": keystone.USER,
            "password": self.keystone.password,
            "project_name": keystone.PROJECT,
            "user_domain_name": keystone.DOMAIN,
            "project_domain_name": keystone.DOMAIN,
        }

    def clouds_yaml(self) -> str:
        """Return a clouds.yaml with the one cloud :data:`CLOUD`."""
        cloud = {"auth": self.auth(), "region_name": keystone.REGION, "identity_api_version": "3"}
        return yaml.safe_dump({"clouds": {CLOUD: cloud}}, sort_keys=False)

    def write_clouds_yaml(self, path: str | os.PathLike[str]) -> Path:
        """Write the clouds.yaml, readable by its owner only, and return the path."""
        return private_file.write(path, self.clouds_yaml())

    def call(self, function: Callable[[HeatService], Result]) -> Result:
        """Run ``function(heat)`` on the cloud's own thread and return its result."""
        return self._on_loop(lambda: function(self.heat))

    def release(self) -> None:
        """Let the resources that are stuck continue."""
        self.call(lambda _: self.faults.release())
