"""Tokens that Keystone gave out: asked about with a user of our own, remembered for a minute."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cachetools import TTLCache
from keystoneauth1 import exceptions
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.http.principal import Principal
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

REMEMBERED_SECONDS = 60.0
"""How long a token that was taken back in Keystone may still be good here."""
_REMEMBERED = 4096
_ANSWER_SECONDS = 10.0

LOG = logging.getLogger(__name__)


class KeystoneTokens:
    """Asks Keystone who a token stands for.

    :raises ContainerUpdateError: the settings do not say where Keystone is, or who asks.
    """

    def __init__(self, settings: Settings) -> None:
        for name in ("keystone_url", "keystone_username", "keystone_password"):
            if not getattr(settings, name):
                raise ContainerUpdateError(f"[vnfm] {name}: expected with auth = keystone")
        self._url = settings.keystone_url.rstrip("/")
        self._roles = frozenset(settings.keystone_roles)
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
            timeout=_ANSWER_SECONDS,
        )
        self._known: TTLCache[str, tuple[Mapping[str, Any] | None, float]] = TTLCache(
            _REMEMBERED, REMEMBERED_SECONDS
        )
        self._lock = threading.Lock()

    def __call__(self, token: str) -> Principal | None:
        """Who it stands for; None where Keystone does not know it (any more).

        :raises ProblemError: 403: none of the wanted roles. 503: Keystone does not answer.
        """
        name = hashlib.sha256(token.encode()).hexdigest()
        with self._lock:
            known = self._known.get(name)
        if known is None:
            body = self._ask(token)
            known = body, _end(body)
            with self._lock:
                self._known[name] = known
        body, end = known
        if body is None or end <= time.time():
            return None
        if not self._roles & {role["name"] for role in body.get("roles", ())}:
            raise ProblemError(403, f"expected one of the roles {', '.join(sorted(self._roles))}")
        return Principal(body["user"]["name"], body.get("project", {}).get("name", ""))

    def _ask(self, token: str) -> Mapping[str, Any] | None:
        try:
            answer = self._session.get(
                f"{self._url}/auth/tokens?nocatalog",
                headers={"X-Subject-Token": token, "Accept": "application/json"},
                log=False,
            )
            return dict(answer.json()["token"])
        except exceptions.NotFound:
            return None
        except (exceptions.ClientException, ValueError, KeyError) as error:
            LOG.error("Keystone could not be asked about a token: %s", error)
            raise ProblemError(
                503, "Keystone could not be asked about the token", headers={"Retry-After": "5"}
            ) from error


def _end(body: Mapping[str, Any] | None) -> float:
    if body is None:
        return 0.0
    return datetime.fromisoformat(body["expires_at"].replace("Z", "+00:00")).timestamp()
