# SPDX-License-Identifier: Apache-2.0
"""Tokens from Keystone, validated with the service's own user and cached for a minute."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache, cached
from keystoneauth1 import exceptions
from keystoneauth1.access.access import create
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from container_update.cluster.responses import MALFORMED
from container_update.model.errors import ClusterError, ContainerUpdateError
from container_update.openstack import answers
from container_update.vnfm.http.authentication import User, digest
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

_CACHE_SECONDS = 60.0
"""How long a token that was revoked in Keystone may still be accepted here."""
_CACHE_SIZE = 4096
_TIMEOUT = 10.0

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Access:
    """What Keystone says of a token."""

    name: str
    roles: frozenset[str]
    end: float
    """When it expires, in seconds since the epoch."""


class KeystoneTokens:
    """Asks Keystone for the user of a token.

    :raises ContainerUpdateError: the settings lack Keystone's URL or the service's user.
    """

    def __init__(self, settings: Settings) -> None:
        for name in ("keystone_url", "keystone_username", "keystone_password"):
            if not getattr(settings, name):
                raise ContainerUpdateError(f"[vnfm] {name}: expected with auth = keystone")
        self._url = settings.keystone_url.rstrip("/")
        self._roles = frozenset(settings.keystone_roles)
        self._reader_roles = frozenset(settings.keystone_reader_roles)
        self._session = Session(
            Password(
                auth_url=self._url,
                username=settings.keystone_username,
                password=settings.keystone_password,
                project_name=settings.keystone_project,
                user_domain_name=settings.keystone_user_domain,
                project_domain_name=settings.keystone_project_domain,
            ),
            verify=settings.keystone_cacert or True,
            timeout=_TIMEOUT,
        )
        answers.limit(self._session.session, _TIMEOUT)
        cache: TTLCache[bytes, _Access | None] = TTLCache(_CACHE_SIZE, _CACHE_SECONDS)
        self._access: Callable[[str], _Access | None] = cached(
            cache, key=digest, lock=threading.Lock()
        )(self._ask)

    def __call__(self, token: str) -> User | None:
        """Return the user of a token; None if the token is unknown or expired.

        :raises ProblemError: 403: none of the configured roles. 503: Keystone does not answer.
        """
        access = self._access(token)
        if access is None or access.end <= time.time():
            return None
        may_change = not self._roles.isdisjoint(access.roles)
        if not may_change and self._reader_roles.isdisjoint(access.roles):
            roles = ", ".join(sorted(self._roles | self._reader_roles))
            raise ProblemError(403, f"expected one of the roles {roles}")
        return User(access.name, may_change)

    def log_in(self) -> None:
        """Get a token for the service's own user, as the first request of a client would.

        :raises ContainerUpdateError: Keystone does not answer, or knows no such user.
        """
        try:
            self._session.get_token()
        except (exceptions.ClientException, ClusterError, *MALFORMED, OSError) as error:
            raise ContainerUpdateError(
                f"Keystone at {self._url} gave the service's user no token: {error}: see the "
                "settings keystone_... in [vnfm]"
            ) from error

    def _ask(self, token: str) -> _Access | None:
        try:
            answer = self._session.get(
                f"{self._url}/auth/tokens?nocatalog",
                headers={"X-Subject-Token": token, "Accept": "application/json"},
                log=False,
            )
            known = create(body=answer.json())
            if known.expires is None:
                raise ValueError("expected expires_at, found none")
            roles = frozenset(known.role_names or ())
            return _Access(str(known.username), roles, known.expires.timestamp())
        except exceptions.NotFound:
            return None
        except (exceptions.ClientException, ClusterError, *MALFORMED) as error:
            LOG.error("Keystone could not be asked about a token: %s", error)
            raise ProblemError(
                503, "Keystone could not be asked about the token", headers={"Retry-After": "5"}
            ) from error
