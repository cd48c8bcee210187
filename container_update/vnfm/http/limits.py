"""What stands around every request: who may be asked for, how much may come, how fast.

Pure ASGI, so that bodies are counted as they come in, chunked ones too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.vnfm.http.error_responses import respond
from container_update.vnfm.problems import Problem
from container_update.vnfm.settings import Settings, is_loopback

CHUNK_SECONDS = 30.0
"""How long the next part of a body may take."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def install(app: FastAPI, settings: Settings) -> None:
    """Put all of it around *app*; what is added last is outermost."""
    app.add_middleware(BodyLimit, most=lambda scope: _most(scope, settings))
    app.add_middleware(OwnHosts, hosts=own_hosts(settings))
    app.add_middleware(SecurityHeaders)


def _most(scope: Scope, settings: Settings) -> int:
    upload = scope["method"] == "PUT" and scope["path"].endswith("/package_content")
    return settings.upload_bytes if upload else settings.request_bytes


def own_hosts(settings: Settings) -> frozenset[str] | None:
    """Return the names that the service is asked for by; None where they cannot be known.

    A page of elsewhere may make a browser send requests to a loopback address under a name of its
    own (DNS rebinding): on loopback, and wherever ``endpoint`` says the name, others are refused.
    """
    named = urlsplit(settings.endpoint).hostname
    if not named and not is_loopback(settings.host):
        return None
    return _LOOPBACK | {settings.host} | ({named} if named else set())


class SecurityHeaders:
    """What browsers are told to do with every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


class OwnHosts:
    """Refuses what was meant for another host, and changes that a page of elsewhere asks for."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        problem = self._problem(scope) if scope["type"] == "http" else None
        await (respond(problem) if problem else self._app)(scope, receive, send)

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host, origin = _hostname(f"//{headers.get('host', '')}"), headers.get("origin")
        if not host or (self._hosts is not None and host not in self._hosts):
            return Problem(
                400,
                "Host: expected a name of this service; where clients know it by another one, "
                "set [vnfm] endpoint",
            )
        foreign = origin is not None and _hostname(origin) not in {host, *(self._hosts or ())}
        if foreign and scope["method"] not in _SAFE:
            return Problem(403, "Origin: pages of other hosts may not change anything here")
        return None


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class BodyLimit:
    """Refuses bodies that are too big, whether they say so or not, and those that stand still."""

    def __init__(self, app: ASGIApp, most: Callable[[Scope], int]) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._most(scope)
        said = Headers(scope=scope).get("content-length", "0")
        if not said.isdecimal() or int(said[:20]) > most:
            await respond(Problem(413, _too_big(most)))(scope, receive, send)
            return
        await self._app(scope, _counting(receive, most), send)


def _counting(receive: Receive, most: int) -> Receive:
    """*receive*, with an end; once the whole body came it only waits for the client to go."""
    size, whole = 0, False

    async def counted() -> Message:
        nonlocal size, whole
        try:
            message = await asyncio.wait_for(receive(), None if whole else CHUNK_SECONDS)
        except asyncio.TimeoutError:
            detail = f"the body stood still for {CHUNK_SECONDS:g} seconds: send it again"
            raise HTTPException(408, detail) from None
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > most:
                raise HTTPException(413, _too_big(most))
        return message

    return counted


def _too_big(most: int) -> str:
    return f"the body has more than {most} bytes, which is what is allowed here"
