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
from container_update.emulator.heat.faults import Troubles
from container_update.emulator.heat.heat import Heat
from container_update.emulator.heat.keystone import Keystone
from container_update.emulator.heat.server import Server
from container_update.emulator.kubernetes.api.server import Middleware, RequestRecord
from container_update.emulator.loop_thread import LoopThread

Result = TypeVar("Result")

CLOUD = "embedded"
"""What the cloud is called in its clouds.yaml."""


class EmbeddedOpenStack(LoopThread):
    """An OpenStack cloud on loopback with one user, one project and no stacks.

    Use it as a context manager, or :meth:`start` and :meth:`stop` it.

    :param port: where to listen on 127.0.0.1; 0 for any free port.
    :param troubles: what goes wrong; it may be changed while the cloud runs.
    """

    def __init__(self, *, port: int = 0, troubles: Troubles | None = None) -> None:
        super().__init__("embedded-openstack")
        self.port = port
        self.troubles = troubles or Troubles()
        self.keystone = Keystone(self._urls)
        self.heat = Heat(self.troubles, lambda: self._urls()["orchestration"])
        self._server = Server(self.keystone, self.heat)

    async def _open(self) -> None:
        self.port = await self._server.start(self.port)

    async def _close(self) -> None:
        running = [stack.task for stack in self.heat.stacks if stack.task and not stack.task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._server.stop()

    # --- how to reach it ------------------------------------------------------------------------

    def _urls(self) -> dict[str, str]:
        return {
            "identity": f"{self.url}/identity",
            "orchestration": f"{self.url}/heat-api/v1/{self.keystone.project_id}",
        }

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def auth(self) -> dict[str, str]:
        """What the client libraries call ``auth``."""
        return {
            "auth_url": f"{self.url}/identity",
            "username": keystone.USER,
            "password": self.keystone.password,
            "project_name": keystone.PROJECT,
            "user_domain_name": keystone.DOMAIN,
            "project_domain_name": keystone.DOMAIN,
        }

    def clouds_yaml(self) -> str:
        """A clouds.yaml with the one cloud :data:`CLOUD`."""
        cloud = {"auth": self.auth(), "region_name": keystone.REGION, "identity_api_version": "3"}
        return yaml.safe_dump({"clouds": {CLOUD: cloud}}, sort_keys=False)

    def write_clouds_yaml(self, path: str | os.PathLike[str]) -> Path:
        """Write the clouds.yaml, readable by its owner only; the path."""
        return private_file.write(path, self.clouds_yaml())

    # --- looking inside -------------------------------------------------------------------------

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests that came so far, in order."""
        return list(self._server.requests)

    @property
    def middlewares(self) -> list[Middleware]:
        """What stands between requests and answers; see :mod:`container_update.emulator.faults`."""
        return self._server.middlewares

    def call(self, function: Callable[[Heat], Result]) -> Result:
        """Run ``function(heat)`` on the cloud's own thread and return its result."""
        return self._on_the_loop(lambda: function(self.heat))

    def release(self) -> None:
        """Let the resources that are stuck go on."""
        self.call(lambda _: self.troubles.release())
