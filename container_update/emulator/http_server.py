# SPDX-License-Identifier: Apache-2.0
"""What both emulators' HTTP servers share: a loopback port, middlewares, records of requests."""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from container_update.emulator.loop_thread import LoopThread

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]
"""Stands between a request and its response. It may respond itself, raise the emulator's API error,
or call the handler that it is given."""

MAX_RECORDS = 100_000
"""How many requests are remembered."""
MAX_BODY_BYTES = 8 * 1024 * 1024


@dataclass
class RequestRecord:
    """A request that the server received."""

    method: str
    path: str
    query: str
    status: int = 0
    """0 until there is a response."""
    seconds: float = 0.0
    """Until the response was complete; 0 before."""


class HttpServer:
    """A server on a loopback port."""

    def __init__(self) -> None:
        self.requests: deque[RequestRecord] = deque(maxlen=MAX_RECORDS)
        self.middlewares: list[Middleware] = []
        """The first is called first. May be changed while the server runs."""
        self._runner: web.AppRunner | None = None
        self._unanswered: dict[int, RequestRecord] = {}

    async def listen(
        self, app: web.Application, port: int, context: ssl.SSLContext | None = None
    ) -> int:
        """Listen on 127.0.0.1.

        :param port: 0 for any free port.
        :returns: the port.
        """
        app.on_response_prepare.append(self._record_status)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=context)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner:
            await self._runner.cleanup()

    async def record_request(self, request: web.Request, respond: Handler) -> web.StreamResponse:
        """Respond, and keep a record of the request."""
        record = RequestRecord(request.method, request.path, request.query_string)
        self.requests.append(record)
        self._unanswered[id(request)] = record
        began = time.monotonic()
        try:
            response = await respond(request)
        finally:
            del self._unanswered[id(request)]
            record.seconds = time.monotonic() - began
        record.status = response.status
        return response

    async def _record_status(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Record the status when the response begins: that to a watch ends long after it."""
        record = self._unanswered.get(id(request))
        if record:
            record.status = response.status

    async def through_middlewares(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Respond with *handler*, unless a middleware does something else."""
        for middleware in reversed(self.middlewares):
            handler = _wrap(middleware, handler)
        return await handler(request)


def _wrap(middleware: Middleware, handler: Handler) -> Handler:
    async def call(request: web.Request) -> web.StreamResponse:
        return await middleware(request, handler)

    return call


class HttpServerThread(LoopThread):
    """A server on a thread of its own, whose requests can be looked at and disturbed."""

    _server: HttpServer

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests received so far, in order."""
        return list(self._server.requests)

    def clear_requests(self) -> None:
        """Forget the requests received so far."""
        self._server.requests.clear()

    @property
    def middlewares(self) -> list[Middleware]:
        """Called between request and response; see :mod:`container_update.emulator.faults`."""
        return self._server.middlewares
