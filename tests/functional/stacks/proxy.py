# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of the Keystone and the Heat of a real cloud.

Keystone's catalogue, and the links and redirects of Heat, name the proxy. Requests to other
services go past it. The paths are those of the embedded cloud, and so are the faults.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

import openstack.config
import yaml
from aiohttp import web

from container_update.emulator.heat.api_errors import OpenStackApiError
from container_update.emulator.http_server import Handler, HttpServerThread
from tests.functional.proxy import Forwarder

KEYSTONE, HEAT = "/identity", "/heat-api"
"""Where they are on the proxy."""


@dataclass
class NeverComplete:
    """A middleware: clients see no end of the next change of one of a VNF's stacks but this one,
    until they cancel, undo or delete it."""

    end: str
    """What stands in the place of COMPLETE in the status of the stack."""
    complete: int = 0
    """How many updates before it are complete."""
    _stack: str = ""

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Change what is read of the stack."""
        is_write = request.method in ("PUT", "DELETE") or request.path.endswith("/actions")
        if self._stack and is_write and self._stack in request.path:
            self.end = "COMPLETE"
        elif not self._stack and request.method == "PUT":
            self._stack = "" if self.complete else request.path.rpartition("/")[0]
            self.complete -= 1
        elif not self._stack and request.path.endswith("/stacks") and request.method == "POST":
            name = (await request.json())["stack_name"]
            self._stack = f"/stacks/{name}" if name.startswith("vnf-") else ""
        answer = await handler(request)
        if request.method == "GET" and self._stack and self._stack in request.path:
            assert isinstance(answer, web.Response)
            assert isinstance(answer.body, bytes)
            status = rb'("stack_status": "[A-Z]+)_COMPLETE'
            answer.body = re.sub(status, rb"\1_" + self.end.encode(), answer.body)
        return answer


@dataclass
class FirstDeletionFails:
    """A middleware: the first deletion of a stack fails, as clients see it."""

    stack: str
    deletions: int = 0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lose the first deletion, and show the stack in DELETE_FAILED until the second one."""
        if f"/stacks/{self.stack}/" not in request.path:
            return await handler(request)
        self.deletions += request.method == "DELETE"
        if self.deletions != 1:
            return await handler(request)
        if request.method == "DELETE":
            return web.Response(status=web.HTTPNoContent.status_code)
        answer = await handler(request)
        assert isinstance(answer, web.Response)
        assert isinstance(answer.body, bytes)
        status = rb'("stack_status": )"[A-Z_]+"'
        answer.body = re.sub(status, rb'\1"DELETE_FAILED"', answer.body)
        return answer


async def answer_with_loopback(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Have clients read an address on loopback where a stack's port CP1 has another one."""
    answer = await handler(request)
    if request.path.endswith("/resources/CP1"):
        assert isinstance(answer, web.Response)
        assert isinstance(answer.body, bytes)
        answer.body = re.sub(rb'("ip_address": )"[^"]+"', rb'\1"127.0.0.1"', answer.body)
    return answer


class CloudProxy(HttpServerThread):
    """A proxy on loopback. Use it as a context manager.

    :param cloud: the real cloud's name in clouds.yaml.
    """

    def __init__(self, cloud: str) -> None:
        super().__init__("cloud-proxy")
        self._cloud = openstack.config.OpenStackConfig().get_one(cloud)
        session = self._cloud.get_session()
        heat = session.get_endpoint(
            service_type="orchestration",
            interface=self._cloud.get_interface("orchestration"),
            region_name=self._cloud.region_name,
        )
        assert heat, f"the catalogue of {cloud} has no orchestration"
        keystone = str(self._cloud.config["auth"]["auth_url"]).rstrip("/").removesuffix("/v3")
        authority = session.verify if isinstance(session.verify, str) else None
        self._server = _CloudForwarder(
            {KEYSTONE: keystone, HEAT: heat.partition("/v1/")[0]},
            ssl.create_default_context(cafile=authority),
        )

    async def _open(self) -> None:
        self._server.address = f"http://127.0.0.1:{await self._server.start()}"

    async def _close(self) -> None:
        await self._server.stop()

    async def revoke_token_of(self, request: web.Request) -> None:
        """Have Keystone forget the token of a request."""
        await self._server.revoke(request.headers["X-Auth-Token"])

    def auth(self) -> dict[str, str]:
        """Return what the client libraries call ``auth``, with the proxy as Keystone."""
        return {**self._cloud.config["auth"], "auth_url": f"{self._server.address}{KEYSTONE}/v3"}

    def write_clouds_yaml(self, path: Path) -> Path:
        """Write the clouds.yaml in use, with the proxy as this cloud, and return its path."""
        clouds = openstack.config.OpenStackConfig().cloud_config["clouds"]
        changed = {**clouds[self._cloud.name], "auth": self.auth()}
        path.write_text(yaml.safe_dump({"clouds": {**clouds, self._cloud.name: changed}}))
        return path


class _CloudForwarder(Forwarder):
    """The server of the proxy.

    :param behind: the URL of the service behind each prefix of a path.
    """

    def __init__(self, behind: dict[str, str], trusted: ssl.SSLContext) -> None:
        super().__init__("", trusted)
        self.address = ""
        self._behind = behind

    def url_behind(self, request: web.Request) -> str:
        """Return the URL at the service that the path begins with."""
        for prefix, url in self._behind.items():
            if request.raw_path.startswith(prefix):
                return url + request.raw_path.removeprefix(prefix)
        raise OpenStackApiError(404, "NotFound", f"{request.path} is behind no proxy")

    async def revoke(self, token: str) -> None:
        """Revoke a token, by itself."""
        url, headers = f"{self._behind[KEYSTONE]}/v3/auth/tokens", {"X-Auth-Token": token}
        headers["X-Subject-Token"] = token
        async with self._session.delete(url, headers=headers) as answer:
            assert answer.status == web.HTTPNoContent.status_code, await answer.text()

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Respond through the middlewares, with their error as the service writes it."""
        try:
            return await self.through_middlewares(request, self.forward)
        except OpenStackApiError as error:
            # Keystone's middleware stands before Heat
            is_keystone = request.path.startswith(KEYSTONE) or error.status == 401
            body = error.keystone_body() if is_keystone else error.heat_body()
            return web.json_response(body, status=error.status, headers=error.headers)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Have the service carry the request out; return its answer with the proxy's addresses."""
        answer = await super().forward(request)
        assert isinstance(answer, web.Response)
        body = answer.body or b""
        assert isinstance(body, bytes)
        for prefix, url in self._behind.items():
            here = self.address + prefix
            body = body.replace(url.encode(), here.encode())
            if "Location" in answer.headers:
                answer.headers["Location"] = answer.headers["Location"].replace(url, here)
        answer.body = body
        return answer
