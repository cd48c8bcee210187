"""Faults on purpose: a script that says which request meets which trouble.

A middleware: ``cluster.middlewares.append(Faults(Fault(drop_after, method="PUT", nth=2)))``. What
can happen to a request is an :data:`Effect`; those without parameters are used as they are, the
others are made: ``delay(0.1)``, ``answer(409)``, ``away(20)``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from aiohttp import web

from container_update.emulator.kubernetes.api.negotiation import flag
from container_update.emulator.kubernetes.api.server import Handler
from container_update.emulator.kubernetes.api_errors import ApiError

_WATCH_HAS_BEGUN = 0.02
"""Seconds after which a watch, which does not end by itself, is taken to be under way."""

_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class Encounter:
    """A request that meets a fault."""

    request: web.Request
    handler: Handler
    """Lets the request take effect."""
    faults: Faults

    def drop(self) -> web.Response:
        """Cut the connection; the response goes nowhere."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return web.Response(status=503)

    async def then(self, act: Callable[[], object]) -> web.StreamResponse:
        """Let it take effect and act before it is answered; a watch is let begin first."""
        if is_watch(self.request):
            asyncio.get_running_loop().call_later(_WATCH_HAS_BEGUN, act)
            return await self.handler(self.request)
        try:
            return await self.handler(self.request)
        finally:
            act()


Effect = Callable[[Encounter], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Fault:
    """What happens to which request."""

    effect: Effect
    method: str = "*"
    """A pattern (fnmatch), as is the path."""
    path: str = "*"
    watch: bool | None = None
    """Only watches, or only others; None: both."""
    nth: int = 1
    """The first of the fitting requests that it happens to, from 1."""
    times: int = 1
    """To how many of them, one after the other."""

    def fits(self, request: web.Request) -> bool:
        """Whether the request is of this kind."""
        return (
            fnmatchcase(request.method, self.method)
            and fnmatchcase(request.path, self.path)
            and self.watch in (None, is_watch(request))
        )


class Faults:
    """A script of faults; a middleware of the embedded cluster.

    :param faults: where several happen to one request, the first of them does.
    :param path: a pattern (fnmatch); requests with other paths are let through and not counted.
    """

    def __init__(self, *faults: Fault, path: str = "*") -> None:
        self.happened: list[Fault] = []
        """What has happened so far, in order."""
        self._faults = faults
        self._path = path
        self._seen = [0] * len(faults)
        self._away_until = 0.0
        self._watches: set[asyncio.Transport] = set()

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let the request through, or not."""
        if not fnmatchcase(request.path, self._path):
            return await handler(request)
        encounter = Encounter(request, handler, self)
        if asyncio.get_running_loop().time() < self._away_until:
            return encounter.drop()
        transport = request.transport
        if transport is None or not is_watch(request):
            return await self._meet(encounter)
        self._watches.add(transport)
        try:
            return await self._meet(encounter)
        finally:
            self._watches.discard(transport)

    async def _meet(self, encounter: Encounter) -> web.StreamResponse:
        fault = self._due(encounter.request)
        if fault is None:
            return await encounter.handler(encounter.request)
        self.happened.append(fault)
        return await fault.effect(encounter)

    def _due(self, request: web.Request) -> Fault | None:
        due = None
        for index, fault in enumerate(self._faults):
            if fault.fits(request):
                self._seen[index] += 1
                if due is None and 0 <= self._seen[index] - fault.nth < fault.times:
                    due = fault
        return due

    def cut_watches(self) -> None:
        """Cut the connection of every open watch; on the cluster's own thread."""
        for transport in self._watches:
            transport.abort()

    def go_away(self, seconds: float) -> None:
        """Drop everything for so long; on the cluster's own thread."""
        self._away_until = asyncio.get_running_loop().time() + seconds
        self.cut_watches()

    def come_back(self) -> None:
        """End an absence; from any thread."""
        self._away_until = 0.0


def is_watch(request: web.Request) -> bool:
    """Whether the request is a watch."""
    return flag(request.query, "watch")


# --- what can happen ----------------------------------------------------------------------------


async def drop_before(encounter: Encounter) -> web.StreamResponse:
    """The connection breaks and the request has no effect."""
    return encounter.drop()


async def drop_after(encounter: Encounter) -> web.StreamResponse:
    """The request takes effect, then the connection breaks: its answer is lost."""
    return await encounter.then(encounter.drop)


async def cut_watches(encounter: Encounter) -> web.StreamResponse:
    """All watches break, the request itself is answered."""
    encounter.faults.cut_watches()
    return await encounter.handler(encounter.request)


def delay(seconds: float) -> Effect:
    """The request takes effect a little later."""

    async def effect(encounter: Encounter) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await encounter.handler(encounter.request)

    return effect


def answer(status: int, message: str = "injected", retry_after: int | None = None) -> Effect:
    """The request is refused and has no effect."""
    error = ApiError(status, _REASONS.get(status, ""), message, retry_after=retry_after)

    async def effect(_: Encounter) -> web.StreamResponse:
        raise error

    return effect


def answer_after(status: int, message: str = "injected") -> Effect:
    """The request takes effect and is answered with an error; a watch is cut."""

    async def effect(encounter: Encounter) -> web.StreamResponse:
        if is_watch(encounter.request):
            return await drop_after(encounter)
        await encounter.handler(encounter.request)
        raise ApiError(status, _REASONS.get(status, ""), message)

    return effect


def away(seconds: float) -> Effect:
    """The server is away from this request on; watches break too."""

    async def effect(encounter: Encounter) -> web.StreamResponse:
        encounter.faults.go_away(seconds)
        return encounter.drop()

    return effect


def call_before(function: Callable[[], object]) -> Effect:
    """Call back, then drop the request without effect: the end of a client that is killed."""

    async def effect(encounter: Encounter) -> web.StreamResponse:
        function()
        return encounter.drop()

    return effect


def call_after(function: Callable[[], object]) -> Effect:
    """Let the request take effect, call back, then drop its answer."""

    async def effect(encounter: Encounter) -> web.StreamResponse:
        def act() -> None:
            function()
            encounter.drop()

        return await encounter.then(act)

    return effect
