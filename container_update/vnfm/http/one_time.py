# SPDX-License-Identifier: Apache-2.0
"""A link that signs a browser in once: the page exchanges its secret for a token.

The secret is valid in this process only, and of it only a digest is kept.
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

from container_update.vnfm.problems import ProblemError

PATH = "/page/session"
LINK_SECONDS = 15 * 60.0
"""How long the link waits for its use."""


class OneTimeLink:
    """The link that waits for its use, if there is one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._digest, self._token, self._end = b"", "", 0.0
        self._lock = threading.Lock()

    def issue(self, base_url: str, token: str) -> str:
        """Return a new link to the page, in place of the one before. What is behind ``#`` a browser
        sends to nobody.

        :param token: what the page gets for it.
        """
        once = secrets.token_urlsafe(32)
        with self._lock:
            self._digest, self._token = _digest(once), token
            self._end = self._clock() + LINK_SECONDS
        return f"{base_url}/#once={once}"

    def exchange(self, once: str) -> str | None:
        """Return the token for the link's secret; None if that is not valid, or was used."""
        with self._lock:
            is_right = hmac.compare_digest(self._digest, _digest(once))
            if not is_right or self._clock() >= self._end:
                return None
            self._digest = b""
            return self._token


class SessionRequest(BaseModel):
    """The body of a request for a token."""

    model_config = ConfigDict(extra="forbid")

    once: str = Field(max_length=256, repr=False)


def router(link: OneTimeLink) -> APIRouter:
    """Return the resource; it needs no other token, and is a part of the page, not of the API."""
    routes = APIRouter(include_in_schema=False)

    @routes.post(PATH)
    def exchange(body: SessionRequest) -> dict[str, str]:
        """Exchange the secret of a link for a token."""
        token = link.exchange(body.once)
        if token is None:
            raise ProblemError(
                401,
                "this link was used already or has expired: enter a token of the file tokens in "
                "the service's state directory, or restart the demo, which prints a new link",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return {"token": token}

    return routes


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
