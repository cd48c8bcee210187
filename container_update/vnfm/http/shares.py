# SPDX-License-Identifier: Apache-2.0
"""How many requests of a kind may be answered at once, and how many of each user: one user, or a
VIM that does not answer, keeps no thread and no connection from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fastapi import Request

from container_update.vnfm.http.authentication import user_of
from container_update.vnfm.problems import ProblemError


@dataclass(frozen=True)
class Share:
    """The requests of a kind at this moment; only the event loop counts them."""

    what: str
    each: int
    """How many a user may have."""
    together: int
    """How many all users may have."""
    retry: int
    """The seconds after which one that is refused may be sent again."""
    _running: Counter[str] = field(default_factory=Counter)
    """By user."""

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
    def taken(self, user: str) -> Iterator[None]:
        """Count a request while it is answered."""
        self._running[user] += 1
        try:
            yield
        finally:
            self._running[user] -= 1
            if not self._running[user]:
                del self._running[user]

    async def count(self, request: Request) -> AsyncIterator[None]:
        """Count a request while it is answered, or refuse it; a dependency of its routes."""
        user = user_of(request).name
        self.refuse_more(user)
        with self.taken(user):
            yield


def vim_requests() -> Share:
    """Return the share of the requests that ask a VIM in the 40 threads that answer requests."""
    return Share("requests that wait for a VIM", each=8, together=24, retry=5)


def viewers() -> Share:
    """Return the share of the endless streams of events: each one has a connection."""
    return Share("open streams of events", each=16, together=64, retry=10)
