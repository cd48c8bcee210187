"""Who sent a request, by the token in it.

It comes as ``X-Auth-Token``, which is what OpenStack's clients send, or as ``Authorization:
Bearer``, which is what SOL013 clause 8.3 describes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from fastapi import Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from container_update.vnfm.http.principal import Check, Principal
from container_update.vnfm.http.tokens import TokenFile
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

_TOKEN = re.compile(r"[!-~]{1,8192}")
_X_AUTH = APIKeyHeader(name="X-Auth-Token", auto_error=False, scheme_name="token")
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer")

Authenticator = Callable[..., Principal]
"""A dependency of FastAPI's that gives the principal of a request."""


def authenticator(settings: Settings) -> Authenticator:
    """Return the dependency that the settings ask for; it raises ProblemError 401, 403 or 503.

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
                "expected a valid token in X-Auth-Token or Authorization: Bearer, found "
                + ("one that is wrong or has expired" if token else "none"),
                headers={"WWW-Authenticate": "Bearer"},
            )
        return principal

    return authenticate


def _anybody() -> Principal:
    return Principal("anybody")


def _check(settings: Settings) -> Check:
    if settings.auth == "token_file":
        return TokenFile(settings.token_path)
    from container_update.vnfm.http.keystone import (  # noqa: PLC0415, an extra of its own
        KeystoneTokens,
    )

    return KeystoneTokens(settings)
