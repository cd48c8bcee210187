# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of any API server: it records the requests, and middlewares make faults of them.

What stands between a request and its response is the same as in the embedded cluster: the effects
of :mod:`container_update.emulator.faults` work on both, before or after the server has carried the
request out.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import trustme
import yaml
from aiohttp import web
from yarl import URL

from container_update.emulator.faults import is_watch
from container_update.emulator.http_server import HttpServer, HttpServerThread
from container_update.emulator.kubernetes.api_errors import ApiError

MOST_BYTES = 64 * 1024 * 1024
PAUSE_SECONDS = 0.5
"""How often a silent watch looks whether its client is still there."""
HOP_BY_HOP = {"connection", "host", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Upstream:
    """The API server behind the proxy, and the administrator's token for it."""

    url: str
    context: ssl.SSLContext
    token: str

    @classmethod
    def of(cls, kubeconfig: str) -> Upstream:
        """Read the current context of a kubeconfig."""
        content = yaml.safe_load(Path(kubeconfig).read_text())

        def named(section: str, name: str) -> Any:
            kind = section.removesuffix("s")
            (found,) = [each[kind] for each in content[section] if each["name"] == name]
            return found

        context = named("contexts", content["current-context"])
        cluster, user = named("clusters", context["cluster"]), named("users", context["user"])
        ca = cluster.get("certificate-authority-data")
        trusted = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"),
            cadata=base64.b64decode(ca).decode() if ca else None,
        )
        token = user.get("token")
        assert token, f"{kubeconfig}: expected a user with a token, which the proxy passes on"
        return cls(cluster["server"].rstrip("/"), trusted, token)


class Proxy(HttpServerThread):
    """A proxy on loopback. Use it as a context manager.

    It passes on what it gets, with the credentials of the client, which have to be tokens.

    :param kubeconfig: of the administrator of the API server behind it.
    """

    def __init__(self, kubeconfig: str) -> None:
        super().__init__("proxy")
        self.upstream = Upstream.of(kubeconfig)
        self._server = Forwarder(self.upstream.url, self.upstream.context)
        self._authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self._port = 0

    async def _open(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = self._authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.ECDSA)
        issued.configure_cert(context)
        self._port = await self._server.start(context)

    async def _close(self) -> None:
        await self._server.stop()

    def end_watches(self) -> None:
        """End every open watch, as a server does when it restarts."""
        self._on_loop(self._server.end_watches)

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig of the administrator with the proxy's address; return the path."""
        authority = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority-data": authority,
        }
        name = "proxy"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.upstream.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path


class Forwarder(HttpServer):
    """The server of a proxy.

    :param url: of the server behind it.
    :param trusted: the authorities of that server.
    """

    def __init__(self, url: str, trusted: ssl.SSLContext) -> None:
        super().__init__()
        self._url = url
        self._trusted = trusted
        self._watches: set[asyncio.Event] = set()
        self._handling: set[asyncio.Task[Any]] = set()

    async def start(self, context: ssl.SSLContext | None = None) -> int:
        """Listen on a free port of loopback and return it; without *context*, unencrypted."""
        connector = aiohttp.TCPConnector(ssl=self._trusted, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=2**20,
        )
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return await self.listen(app, 0, context)

    async def stop(self) -> None:
        """End what has no answer yet, stop listening, and close all connections."""
        for task in self._handling:
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        await super().stop()
        await self._session.close()

    def end_watches(self) -> None:
        """End every open watch."""
        for ended in self._watches:
            ended.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        try:
            return await self.record_request(request, self.respond)
        finally:
            self._handling.discard(task)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Respond through the middlewares, with their error where they raise one."""
        try:
            return await self.through_middlewares(request, self.forward)
        except ApiError as error:
            wait = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return web.json_response(error.status(), status=error.code, headers=wait)

    def url_behind(self, request: web.Request) -> str:
        """Return where the request is passed on to."""
        return self._url + request.raw_path

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Have the API server carry the request out; return its answer."""
        async with self._answer(request) as answer:
            headers = _passed_on(answer.headers)
            if not is_watch(request) or answer.status != web.HTTPOk.status_code:
                body = await answer.read()
                return web.Response(status=answer.status, headers=headers, body=body)
            response = web.StreamResponse(status=answer.status, headers=headers)
            with suppress(ConnectionError):  # the client is gone
                await response.prepare(request)
                await self._pass_events_on(request, answer.content, response)
                await response.write_eof()
            return response

    @asynccontextmanager
    async def _answer(self, request: web.Request) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._session.request(
            request.method,
            URL(self.url_behind(request), encoded=True),
            headers=_passed_on(request.headers),
            data=await request.read() or None,
            allow_redirects=False,
        ) as answer:
            yield answer

    async def _pass_events_on(
        self, request: web.Request, events: aiohttp.StreamReader, response: web.StreamResponse
    ) -> None:
        ended = asyncio.Event()
        self._watches.add(ended)
        try:
            while not (events.at_eof() or ended.is_set()):
                if request.transport is None or request.transport.is_closing():
                    return
                with suppress(TimeoutError, asyncio.TimeoutError):
                    await response.write(await asyncio.wait_for(events.readany(), PAUSE_SECONDS))
        finally:
            self._watches.discard(ended)


def _passed_on(headers: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in HOP_BY_HOP]
