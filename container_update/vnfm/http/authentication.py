# SPDX-License-Identifier: Apache-2.0
"""Authentication of requests by a token: of a file, or of Keystone.

OpenStack's clients send it as ``X-Auth-Token``; SOL013 clause 8.3 has ``Authorization: Bearer``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cachetools import TTLCache
from fastapi import APIRouter, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from container_update.cluster.private_file import private_text
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings


@dataclass(frozen=True)
class User:
    """The owner of a token."""

    name: str
    may_change: bool = True
    """May send every request; else only those that read."""


ANONYMOUS = User("anonymous")
"""The user where no token is needed."""


def user_of(request: Request) -> User:
    """Return the user whose token a request has."""
    user: User = getattr(request.state, "user", ANONYMOUS)
    return user


@dataclass(frozen=True)
class Token:
    """A token of the file."""

    value: str = field(repr=False)
    may_change: bool = True


Check = Callable[[str], User | None]
"""Returns the user of a token; None for an invalid one."""

READING = "x-reads-only"
"""In a route's ``openapi_extra``: it changes nothing, whatever its method."""

_MIN_LENGTH = 16
"""Minimum number of characters of a token in the file."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
_ROLES: Mapping[str, bool] = {"read": False, "write": True}
"""Whether a role of the token file may change something."""
_TOKEN = re.compile(r"[!-~]{1,8192}")
_X_AUTH = APIKeyHeader(
    name="X-Auth-Token",
    auto_error=False,
    scheme_name="token",
    description="A token of the file tokens in the service's state directory, or of Keystone.",
)
_BEARER = HTTPBearer(
    auto_error=False, scheme_name="bearer", description="The same token, as SOL013 sends it."
)


def authenticator(settings: Settings) -> Callable[..., User]:
    """Return a FastAPI dependency for the user; it raises ProblemError 401, 403 or 503.

    :raises ContainerUpdateError: the token file or the settings for Keystone cannot be used.
    """
    if settings.auth == "none":
        return lambda: ANONYMOUS
    check = _check(settings)

    def authenticate(
        request: Request,
        x_auth_token: Annotated[str | None, Security(_X_AUTH)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> User:
        token = x_auth_token or (bearer.credentials if bearer else "")
        user = check(token) if _TOKEN.fullmatch(token) else None
        if user is None:
            raise ProblemError(
                401,
                "expected a valid token in X-Auth-Token or Authorization: Bearer, found "
                + ("one that is wrong or has expired" if token else "none"),
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not user.may_change and not _only_reads(request):
            raise ProblemError(
                403, f"the token of {user.name} may only read: changes need one that may write"
            )
        request.state.user = user
        return user

    return authenticate


def _only_reads(request: Request) -> bool:
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    return request.method in SAFE or bool(extra.get(READING))


def _check(settings: Settings) -> Check:
    if settings.auth == "token_file":
        return _token_file(settings.token_path)
    from container_update.vnfm.http import keystone  # noqa: PLC0415, slow to load

    return keystone.KeystoneTokens(settings)


def _token_file(path: Path) -> Check:
    users = {
        digest(token.value): User(name, token.may_change)
        for name, token in read_tokens(path).items()
    }

    def check(token: str) -> User | None:
        """Compare with every token: the time must not depend on which one it is."""
        given, user = digest(token), None
        for known, owner in users.items():
            if hmac.compare_digest(known, given):
                user = owner
        return user

    return check


def read_tokens(path: Path) -> Mapping[str, Token]:
    """Return the tokens of a file by the names of their users.

    A line is ``TOKEN``, ``NAME TOKEN`` or ``NAME TOKEN ROLE``, where the role is ``read`` or
    ``write`` (the default); ``#`` begins a comment.

    :param path: the file; created with one random token if it does not exist.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """
    tokens: dict[str, Token] = {}
    first = f"admin {secrets.token_urlsafe(32)}\n"
    for number, line in enumerate(private_text(path, first).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name = words.pop(0) if len(words) > 1 else f"line {number}"
        value, *roles = words
        role = roles[0] if roles else "write"
        if len(value) < _MIN_LENGTH or len(roles) > 1 or role not in _ROLES:
            raise ContainerUpdateError(
                f"{path}:{number}: expected NAME TOKEN or NAME TOKEN ROLE, the token of "
                f"{_MIN_LENGTH} characters or more and the role {' or '.join(_ROLES)}"
            )
        if name in tokens:
            raise ContainerUpdateError(f"{path}:{number}: the name {name} is there twice")
        tokens[name] = Token(value, _ROLES[role])
    if not tokens:
        raise ContainerUpdateError(f"{path}: expected tokens, one a line, and found none")
    return tokens


def digest(secret: str) -> bytes:
    """Return the digest of a token or another secret, which is kept and compared."""
    return hashlib.sha256(secret.encode()).digest()


# --- a link that signs a browser in once: the page exchanges its secret for a token ---------------
# The secret is valid in this process only, and of it only a digest is kept.


PATH = "/page/session"
LINK_SECONDS = 15 * 60.0
"""How long the link waits for its use."""


class OneTimeLink:
    """The link that waits for its use, if there is one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens: TTLCache[bytes, str] = TTLCache(1, LINK_SECONDS, clock)
        self._lock = threading.Lock()

    def issue(self, base_url: str, token: str) -> str:
        """Return a new link to the page, in place of the one before. What is behind ``#`` a browser
        sends nowhere."""
        once = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens[digest(once)] = token
        return f"{base_url}/#once={once}"

    def exchange(self, once: str) -> str | None:
        """Return the token for the link's secret; None if that is not valid, or was used."""
        with self._lock:
            token: str | None = self._tokens.pop(digest(once), None)
            return token


class SessionRequest(BaseModel):
    """The body of a request for a token."""

    model_config = ConfigDict(extra="forbid")

    once: str = Field(max_length=256, repr=False)


def link_router(link: OneTimeLink) -> APIRouter:
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
