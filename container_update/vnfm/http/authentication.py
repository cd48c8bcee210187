"""Authentication of requests by a token: of a file, or of Keystone.

OpenStack's clients send it as ``X-Auth-Token``; SOL013 clause 8.3 has ``Authorization: Bearer``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from fastapi import Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings
from container_update.vnfm.store.private_file import private_text

Check = Callable[[str], str | None]
"""Returns the user's name for a token; None for an invalid one."""

_MIN_LENGTH = 16
"""Minimum number of characters of a token in the file."""
_LINE = re.compile(r"(?:(?P<name>\S+)\s+)?(?P<token>\S+)")
_TOKEN = re.compile(r"[!-~]{1,8192}")
_X_AUTH = APIKeyHeader(name="X-Auth-Token", auto_error=False, scheme_name="token")
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer")


def authenticator(settings: Settings) -> Callable[..., str]:
    """Return a FastAPI dependency for the user's name; it raises ProblemError 401, 403 or 503.

    :raises ContainerUpdateError: the token file or the settings for Keystone cannot be used.
    """
    if settings.auth == "none":
        return lambda: "anybody"
    check = _check(settings)

    def authenticate(
        x_auth_token: Annotated[str | None, Security(_X_AUTH)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> str:
        token = x_auth_token or (bearer.credentials if bearer else "")
        name = check(token) if _TOKEN.fullmatch(token) else None
        if name is None:
            raise ProblemError(
                401,
                "expected a valid token in X-Auth-Token or Authorization: Bearer, found "
                + ("one that is wrong or has expired" if token else "none"),
                headers={"WWW-Authenticate": "Bearer"},
            )
        return name

    return authenticate


def _check(settings: Settings) -> Check:
    if settings.auth == "token_file":
        return _token_file(settings.token_path)
    from container_update.vnfm.http import keystone  # noqa: PLC0415, slow to load

    return keystone.KeystoneTokens(settings)


def _token_file(path: Path) -> Check:
    digests = {_digest(token): name for name, token in read_tokens(path).items()}

    def check(token: str) -> str | None:
        """Compare with every token: the time must not depend on which one it is."""
        given, user = _digest(token), None
        for digest, name in digests.items():
            if hmac.compare_digest(digest, given):
                user = name
        return user

    return check


def read_tokens(path: Path) -> Mapping[str, str]:
    """Return the tokens of a file by name: one a line, perhaps after a name; ``#`` is a comment.

    :param path: the file; created with one random token if it does not exist.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """
    tokens: dict[str, str] = {}
    first = f"admin {secrets.token_urlsafe(32)}\n"
    for number, line in enumerate(private_text(path, first).splitlines(), 1):
        text = line.partition("#")[0].strip()
        match = _LINE.fullmatch(text)
        if not text:
            continue
        if not match or len(match["token"]) < _MIN_LENGTH:
            raise ContainerUpdateError(
                f"{path}:{number}: expected NAME TOKEN, the token of {_MIN_LENGTH} characters or "
                "more"
            )
        name = match["name"] or f"line {number}"
        if name in tokens:
            raise ContainerUpdateError(f"{path}:{number}: the name {name} is there twice")
        tokens[name] = match["token"]
    if not tokens:
        raise ContainerUpdateError(f"{path}: expected tokens, one a line, and found none")
    return tokens


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
