# SPDX-License-Identifier: Apache-2.0
"""The demo's service, cluster and packages in the test's process, with a client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests
import uvicorn

from container_update import Options
from tests.internals.service import (
    Scene,
    Service,
    Settings,
    Stage,
    demo,
    read_tokens,
    server_config,
)
from tests.vnfm.waiting import until

SETTLED = frozenset({"COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK"})
SCENES = {scene.name: scene for scene in demo.SCENES}


@dataclass
class Site:
    """A running service and its client."""

    stage: Stage
    service: Service
    url: str
    token: str
    commands: str
    """What the demo prints."""
    client: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.client.headers.update({"X-Auth-Token": self.token, "Version": "2.0.0"})
        self.client.trust_env = False

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request, check that it succeeds and return the response."""
        url = path if path.startswith("http") else self.url + path
        answer = self.client.request(method, url, json=body, timeout=30)
        assert answer.ok, answer.text
        return answer

    def request(self, scene: Scene, step: str) -> Any:
        """Return the content of one of the demo's request files."""
        return json.loads((self.stage.folder / f"{scene.name}-{step}.json").read_text())

    def create(self, scene: Scene, name: str, description: str = "") -> str:
        """Create an instance of a scene's old package and return its path."""
        vnfd = next(
            package["vnfdId"]
            for package in self.call("GET", "/vnfpkgm/v1/vnf_packages").json()
            if f" {package['vnfdId']} --name {scene.name} " in self.commands
        )
        path = f"/vnflcm/{scene.api}/vnf_instances"
        body = {
            "vnfdId": vnfd,
            "vnfInstanceName": name,
            "vnfInstanceDescription": description,
        }
        return f"{path}/{self.call('POST', path, body).json()['id']}"

    def instantiated(self, scene: Scene, name: str) -> str:
        """Create and instantiate an instance and return its path."""
        path = self.create(scene, name)
        accepted = self.call("POST", f"{path}/instantiate", self.request(scene, "instantiate"))
        ended = self.settled(accepted)
        assert ended["operationState"] == "COMPLETED", ended
        return path

    def settled(self, accepted: requests.Response) -> Any:
        """Wait for the end of the occurrence that a response names and return it."""

        def read_operation() -> Any:
            operation = self.call("GET", accepted.headers["Location"]).json()
            return operation if operation["operationState"] in SETTLED else None

        return until(read_operation, "the operation to settle", 60)

    def remove(self, path: str) -> None:
        """Terminate and delete an instance."""
        accepted = self.call("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
        ended = self.settled(accepted)
        assert ended["operationState"] == "COMPLETED", ended
        self.call("DELETE", path)


@contextmanager
def running(**changed: Any) -> Iterator[Site]:
    """Yield a service that runs in threads of this process."""
    options = Options(drain_seconds=0.1, grace_period=2, timeout=60, undo_timeout=60)
    with demo.stage() as stage, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", changed.pop("port", 0)))
        port = sock.getsockname()[1]
        service_settings = {
            "host": "127.0.0.1",
            "port": port,
            "callback_hosts": ("127.0.0.1",),
            **changed,
        }
        settings = Settings(state_dir=stage.state_dir, **service_settings)
        service = Service(settings, options)
        commands = stage.prepare(service.context)
        server = uvicorn.Server(server_config(service.app, settings))
        thread = threading.Thread(target=server.run, args=([sock],), name="uvicorn")
        thread.start()
        token = "" if settings.auth == "none" else read_tokens(settings.token_path)["admin"].value
        site = Site(stage, service, settings.base_url, token, commands)
        try:
            until(lambda: server.started or not thread.is_alive(), "the service to answer")
            yield site
        finally:
            site.client.close()
            server.should_exit = True
            thread.join()
