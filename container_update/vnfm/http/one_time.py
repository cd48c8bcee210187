# SPDX-License-Identifier: Apache-2.0
"""Links that sign a browser in: a one-time token, which the page exchanges for a session token.

Both are valid in this process only, and of both only digests are kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from container_update.vnfm.http.users import User
from container_update.vnfm.problems import ProblemError

PATH = "/page/session"
USER = User("demo")
"""The user of every session."""
LINK_SECONDS = 15 * 60.0
"""How long a link waits for its use."""
SESSION_SECONDS = 24 * 3600.0
Clock = Callable[[], float]


class OneTimeLinks:
    """The links that wait for their use, and the sessions that began with one."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._links = _Tokens(LINK_SECONDS, clock)
        self._sessions = _Tokens(SESSION_SECONDS, clock)

    def issue(self, base_url: str) -> str:
        """Return a new link to the page. What is behind ``#`` a browser sends to nobody."""
        return f"{base_url}/#once={self._links.new()}"

    def exchange(self, once: str) -> str | None:
        """Return a session token for a link's one-time token; None if it is not valid."""
        return self._sessions.new() if self._links.remove(once) else None

    def user_of(self, token: str) -> User | None:
        """Return the user of a session token; None if it is not valid."""
        return USER if self._sessions.find(token) else None


class _Tokens:
    """Random tokens that expire."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._ends: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def new(self) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._ends[_digest(token)] = self._clock() + self._seconds
        return token

    def find(self, token: str) -> bytes | None:
        """Compare with every token: the time must not depend on which one it is."""
        given, found = _digest(token), None
        with self._lock:
            for digest, end in self._ends.items():
                if hmac.compare_digest(digest, given) and self._clock() < end:
                    found = digest
        return found

    def remove(self, token: str) -> bool:
        """Remove a token; return False if it is not valid, or another request was first."""
        found = self.find(token)
        with self._lock:
            return found is not None and self._ends.pop(found, None) is not None


class SessionRequest(BaseModel):
    """The body of a request for a session."""

    model_config = ConfigDict(extra="forbid")

    once: str = Field(max_length=256, repr=False)


def router(links: OneTimeLinks) -> APIRouter:
    """Return the resource; it needs no other token, and is a part of the page, not of the API."""
    routes = APIRouter(include_in_schema=False)

    @routes.post(PATH)
    def exchange(body: SessionRequest) -> dict[str, str]:
        """Exchange the token of a link for one of a session."""
        token = links.exchange(body.once)
        if token is None:
            raise ProblemError(
                401,
                "this link was used already or has expired: enter a token of the file tokens in "
                "the service's state directory, or restart the demo, which prints a new link",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return {"token": token}

    return routes


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
