"""Who asks: the token of a request and the principal that it stands for.

A token comes as ``X-Auth-Token``, which is what OpenStack's clients send, or as ``Authorization:
Bearer``, which is what SOL013 clause 8.3 describes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from container_update.errors import ContainerUpdateError
from container_update.vnfm.private_file import private_text
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

SHORTEST = 16
"""Characters that a token of the token file has at least."""
_TOKEN = re.compile(r"[!-~]{1,8192}")
_LINE = re.compile(r"(?:(?P<name>\S+)\s+)?(?P<token>\S+)")
_X_AUTH = APIKeyHeader(name="X-Auth-Token", auto_error=False, scheme_name="token")
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer")


@dataclass(frozen=True)
class Principal:
    """Who asks."""

    name: str
    project: str = ""


Check = Callable[[str], Principal | None]
"""A token to its principal; None where the token is not good (any more)."""

Authenticator = Callable[..., Principal]
"""A dependency of FastAPI's that gives the principal of a request."""


def authenticator(settings: Settings) -> Authenticator:
    """The dependency that the settings ask for; it raises ProblemError 401, 403 or 503.

    :raises ContainerUpdateError: the token file or the settings for Keystone cannot be used.
    """
    if settings.auth == "none":
        return _anybody
    check = _check(settings)

    def authenticate(
        x_auth_token: Annotated[str | None, Security(_X_AUTH)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> Principal:
        token = x_auth_token or (bearer.credentials if bearer else "")
        principal = check(token) if _TOKEN.fullmatch(token) else None
        if principal is None:
            raise ProblemError(
                401,
                "expected a good token in X-Auth-Token or as Authorization: Bearer, and found "
                + ("one that is not good (any more)" if token else "none"),
                headers={"WWW-Authenticate": "Bearer"},
            )
        return principal

    return authenticate


def _anybody() -> Principal:
    return Principal("anybody")


def _check(settings: Settings) -> Check:
    if settings.auth == "token_file":
        return TokenFile(settings.token_path)
    from container_update.vnfm.keystone import KeystoneTokens  # noqa: PLC0415, an extra of its own

    return KeystoneTokens(settings)


class TokenFile:
    """The tokens of a file: one a line, a name before it if wanted; ``#`` begins a comment.

    :param path: the file; made with one random token where there is none.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """

    def __init__(self, path: Path) -> None:
        self._digests = {_digest(token): name for name, token in read_tokens(path).items()}

    def __call__(self, token: str) -> Principal | None:
        """The name of a token, found in the same time whether it is there or not."""
        given, found = _digest(token), None
        for digest, name in self._digests.items():
            if hmac.compare_digest(digest, given):
                found = Principal(name)
        return found


def read_tokens(path: Path) -> Mapping[str, str]:
    """Name to token.

    :param path: the file; made with one random token where there is none.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """
    tokens: dict[str, str] = {}
    first = f"admin {secrets.token_urlsafe(32)}\n"
    for number, line in enumerate(private_text(path, first).splitlines(), 1):
        text = line.partition("#")[0].strip()
        match = _LINE.fullmatch(text)
        if not text:
            continue
        if not match or len(match["token"]) < SHORTEST:
            raise ContainerUpdateError(
                f"{path}:{number}: expected NAME TOKEN, the token of {SHORTEST} characters or more"
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
