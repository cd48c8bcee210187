# SPDX-License-Identifier: Apache-2.0
"""How many requests may ask a VIM at once: some of the threads that answer requests, of which each
user has a share. A VIM that does not answer keeps no thread from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi import Request

from container_update.vnfm.http.authentication import user_of
from container_update.vnfm.problems import ProblemError

_TOGETHER, _EACH = 24, 8
"""Of the 40 threads that answer requests."""
_RETRY = {"Retry-After": "5"}


@dataclass(frozen=True)
class VimRequests:
    """The requests that ask a VIM at this moment; only the event loop counts them."""

    _running: Counter[str] = field(default_factory=Counter)
    """By user."""

    async def count(self, request: Request) -> AsyncIterator[None]:
        """Count a request while it is answered; a dependency of the routes that ask a VIM.

        :raises ProblemError: 429: the user has as many as one may have; 503: all users have.
        """
        user = user_of(request).name
        if self._running[user] >= _EACH:
            raise ProblemError(
                429,
                f"{_EACH} requests of {user} wait for a VIM: send this one when one is answered",
                headers=_RETRY,
            )
        if self._running.total() >= _TOGETHER:
            raise ProblemError(
                503, f"{_TOGETHER} requests wait for a VIM: send this one later", headers=_RETRY
            )
        self._running[user] += 1
        try:
            yield
        finally:
            self._running.subtract((user,))
            if not self._running[user]:
                del self._running[user]
