# SPDX-License-Identifier: Apache-2.0
"""Users: the owners of tokens, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request


@dataclass(frozen=True)
class User:
    """The owner of a token."""

    name: str
    may_change: bool = True
    """May send every request; else only those that read."""


ANYBODY = User("anybody")
"""The user where no token is needed."""


def user_of(request: Request) -> User:
    """Return the user whose token a request has."""
    user: User = getattr(request.state, "user", ANYBODY)
    return user
