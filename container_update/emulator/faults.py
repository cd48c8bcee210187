# SPDX-License-Identifier: Apache-2.0
"""Injected faults: a script says which request is delayed, refused or loses its connection.

It is a middleware: ``cluster.middlewares.append(Faults(Fault(drop_after, method="PUT", nth=2)))``.
What happens to a request is an :data:`Effect`. Some are used as they are (:func:`drop_before`),
others are made with parameters: ``delay(0.1)``, ``answer(409)``, ``outage(20)``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from aiohttp import web

from container_update.emulator.http_server import Handler
from container_update.emulator.kubernetes.api.negotiation import flag
from container_update.emulator.kubernetes.api_errors import ApiError

_WATCH_STARTED_SECONDS = 0.02
"""When a watch, which does not end by itself, is assumed to have started."""

_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class FaultedRequest:
    """A request that a fault happens to."""

    request: web.Request
    handler: Handler
    """Lets the request take effect and returns its response."""
    faults: Faults

    def drop(self) -> web.Response:
        """Cut the connection; the returned response reaches no client."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return web.Response(status=503)

    async def then(self, act: Callable[[], object]) -> web.StreamResponse:
        """Let the request take effect, then call *act*; for a watch, soon after it started."""
        if is_watch(self.request):
            asyncio.get_running_loop().call_later(_WATCH_STARTED_SECONDS, act)
            return await self.handler(self.request)
        try:
            return await self.handler(self.request)
        finally:
            act()


Effect = Callable[[FaultedRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Fault:
    """What happens to which request."""

    effect: Effect
    method: str = "*"
    """A pattern (fnmatch), as is the path."""
    path: str = "*"
    watch: bool | None = None
    """True: only watches; False: only other requests; None: both."""
    nth: int = 1
    """The first matching request that it happens to, from 1."""
    times: int = 1
    """To how many of them, one after the other."""

    def matches(self, request: web.Request) -> bool:
        """Return whether the request is of this kind."""
        return (
            fnmatchcase(request.method, self.method)
            and fnmatchcase(request.path, self.path)
            and self.watch in (None, is_watch(request))
        )


class Faults:
    """A script of faults; a middleware of either emulator.

    :param faults: if several apply to one request, only the first of them happens.
    :param path: a pattern (fnmatch); requests with other paths are let through and not counted.
    """

    def __init__(self, *faults: Fault, path: str = "*") -> None:
        self.happened: list[Fault] = []
        """The faults that have happened, in order."""
        self._faults = faults
        self._path = path
        self._seen = [0] * len(faults)
        self._outage_end = 0.0
        self._watches: set[asyncio.Transport] = set()

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Respond to the request, with the fault that applies to it."""
        if not fnmatchcase(request.path, self._path):
            return await handler(request)
        faulted = FaultedRequest(request, handler, self)
        if asyncio.get_running_loop().time() < self._outage_end:
            return faulted.drop()
        transport = request.transport
        if transport is None or not is_watch(request):
            return await self._respond(faulted)
        self._watches.add(transport)
        try:
            return await self._respond(faulted)
        finally:
            self._watches.discard(transport)

    async def _respond(self, faulted: FaultedRequest) -> web.StreamResponse:
        fault = self._next_fault(faulted.request)
        if fault is None:
            return await faulted.handler(faulted.request)
        self.happened.append(fault)
        return await fault.effect(faulted)

    def _next_fault(self, request: web.Request) -> Fault | None:
        chosen = None
        for index, fault in enumerate(self._faults):
            if fault.matches(request):
                self._seen[index] += 1
                if chosen is None and 0 <= self._seen[index] - fault.nth < fault.times:
                    chosen = fault
        return chosen

    def cut_watches(self) -> None:
        """Cut the connection of every open watch. Call it on the server's own thread."""
        for transport in self._watches:
            transport.abort()

    def start_outage(self, seconds: float) -> None:
        """Drop every request for so long. Call it on the server's own thread."""
        self._outage_end = asyncio.get_running_loop().time() + seconds
        self.cut_watches()

    def end_outage(self) -> None:
        """End an outage. May be called from any thread."""
        self._outage_end = 0.0


def is_watch(request: web.Request) -> bool:
    """Return whether the request is a watch."""
    return flag(request.query, "watch")


# --- effects ------------------------------------------------------------------------------------


async def drop_before(faulted: FaultedRequest) -> web.StreamResponse:
    """Break the connection; the request has no effect."""
    return faulted.drop()


async def drop_after(faulted: FaultedRequest) -> web.StreamResponse:
    """Let the request take effect, then break the connection: the response is lost."""
    return await faulted.then(faulted.drop)


async def cut_watches(faulted: FaultedRequest) -> web.StreamResponse:
    """Break all watches and answer the request itself."""
    faulted.faults.cut_watches()
    return await faulted.handler(faulted.request)


def delay(seconds: float) -> Effect:
    """Let the request take effect a little later."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await faulted.handler(faulted.request)

    return effect


def raise_error(error: Exception) -> Effect:
    """Answer with an API error of the emulator; the request has no effect."""

    async def effect(_: FaultedRequest) -> web.StreamResponse:
        raise error

    return effect


def answer(status: int, message: str = "injected", retry_after: int | None = None) -> Effect:
    """Answer with an error of the Kubernetes API; the request has no effect."""
    return raise_error(ApiError(status, _REASONS.get(status, ""), message, retry_after=retry_after))


def answer_after(status: int, message: str = "injected") -> Effect:
    """Let the request take effect and answer with an error; a watch is cut."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        if is_watch(faulted.request):
            return await drop_after(faulted)
        await faulted.handler(faulted.request)
        raise ApiError(status, _REASONS.get(status, ""), message)

    return effect


def outage(seconds: float) -> Effect:
    """Drop this request and all others for so long; watches break too."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        faulted.faults.start_outage(seconds)
        return faulted.drop()

    return effect


def call_before(function: Callable[[], object]) -> Effect:
    """Call the function, then drop the request without effect, as if the client were killed."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        function()
        return faulted.drop()

    return effect


def call_after(function: Callable[[], object]) -> Effect:
    """Let the request take effect, call the function, then drop the response."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        def act() -> None:
            function()
            faulted.drop()

        return await faulted.then(act)

    return effect
