# SPDX-License-Identifier: Apache-2.0
"""Limits for every request: its host and origin, and the size of its body; and for those of a user
and of all users together.

The middlewares are pure ASGI: they count a body as it arrives, also a chunked one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.cluster.credentials import is_loopback
from container_update.vnfm.http.authentication import SAFE, user_of
from container_update.vnfm.http.error_responses import respond
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

CHUNK_SECONDS = 30.0
"""Maximum time to wait for the next part of a body."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
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

_Origin: TypeAlias = tuple[str, str, int | None]
_PORTS = {"http": 80, "https": 443}


def install(app: FastAPI, settings: Settings) -> None:
    """Add the middlewares to *app*; the last one is the outermost."""
    app.add_middleware(body_limit, settings=settings)
    hosts, origin = _own_hosts(settings), _origin(settings.endpoint)
    app.add_middleware(_own_hosts_only, hosts=hosts, endpoint=origin)
    app.add_middleware(_security_headers)


def _own_hosts(settings: Settings) -> frozenset[str] | None:
    """Return the service's host names, against DNS rebinding; None where they are not known."""
    named = urlsplit(settings.endpoint).hostname
    if not named and not is_loopback(settings.host):
        return None
    return _LOOPBACK | {settings.host} | ({named} if named else set())


def _security_headers(app: ASGIApp) -> ASGIApp:
    """Add headers that restrict what a browser does with a response."""

    async def add(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, with_headers(send, _HEADERS))

    return add


def with_headers(send: Send, added: Mapping[str, str]) -> Send:
    """Return *send* that adds headers to a response that lacks them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _own_hosts_only(
    app: ASGIApp, hosts: Collection[str] | None, endpoint: _Origin | None
) -> ASGIApp:
    """Refuse requests for other hosts, and changes that a foreign page requests."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        problem = _host_problem(scope, hosts, endpoint) if scope["type"] == "http" else None
        await (respond(problem) if problem else app)(scope, receive, send)

    return check


def _host_problem(
    scope: Scope, hosts: Collection[str] | None, endpoint: _Origin | None
) -> ProblemError | None:
    headers = Headers(scope=scope)
    own = _origin(f"{scope['scheme']}://{headers.get('host', '')}")
    host, origin = own and own[1], headers.get("origin")
    if not host or (hosts is not None and host not in hosts):
        return ProblemError(
            400,
            "Host: expected a name of this service; where clients know it by another one, "
            "set [vnfm] endpoint",
        )
    foreign = origin is not None and _origin(origin) not in {own, endpoint} - {None}
    if foreign and scope["method"] not in SAFE:
        return ProblemError(
            403,
            "Origin: pages of other origins may not change anything here; where a proxy has "
            "another scheme, name or port than the service, set [vnfm] endpoint",
        )
    return None


def _origin(url: str) -> _Origin | None:
    """Return scheme, host and port of a URL (RFC 6454, section 4); None where it has no host."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def body_limit(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Refuse a body that is too big, with or without a Content-Length, or that does not go on."""

    async def limit(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        is_upload = scope["method"] == "PUT" and scope["path"].endswith("/package_content")
        maximum = settings.upload_bytes if is_upload else settings.request_bytes
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > maximum:
            await respond(ProblemError(413, _too_big(maximum)))(scope, receive, send)
            return
        await app(scope, _counting(receive, maximum), send)

    return limit


def _counting(receive: Receive, maximum: int) -> Receive:
    """Return *receive* with the limits; after the whole body it may wait for a disconnect."""
    size, complete = 0, False

    async def count_bytes() -> Message:
        nonlocal size, complete
        try:
            message = await asyncio.wait_for(receive(), None if complete else CHUNK_SECONDS)
        except asyncio.TimeoutError:
            detail = f"the body stood still for {CHUNK_SECONDS:g} seconds: send it again"
            raise HTTPException(408, detail) from None
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > maximum:
                raise HTTPException(413, _too_big(maximum))
        return message

    return count_bytes


def _too_big(maximum: int) -> str:
    return f"the body has more than {maximum} bytes, which is what is allowed here"


# --- how many requests of a kind are answered at once ---------------------------------------------
# One user, or a VIM that does not answer, keeps no thread and no connection from the others.


@dataclass(frozen=True)
class Share:
    """The requests of a kind at this moment."""

    what: str
    each: int
    """How many a user may have."""
    together: int
    """How many all users may have."""
    retry: int
    """The seconds after which one that is refused may be sent again."""
    _running: Counter[str] = field(default_factory=Counter)
    """By user."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse_more(self, user: str) -> None:
        """Raise ProblemError where one more is too many: 429 of this user, 503 of all users."""
        for status, number, most, whose in (
            (429, self._running[user], self.each, f"{user} has"),
            (503, self._running.total(), self.together, "all users together have"),
        ):
            if number >= most:
                text = f"{whose} {most} {self.what}, which is the limit: wait until one has ended"
                raise ProblemError(status, text, headers={"Retry-After": str(self.retry)})

    @contextmanager
    def take(self, user: str) -> Iterator[None]:
        """Count a request while it is answered, or refuse it."""
        with self._lock:
            self.refuse_more(user)
            self._running[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[user] -= 1
                if not self._running[user]:
                    del self._running[user]

    async def count(self, request: Request) -> AsyncIterator[None]:
        """Count a request while it is answered, or refuse it; a dependency of its routes."""
        with self.take(user_of(request).name):
            yield
