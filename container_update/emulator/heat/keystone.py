# SPDX-License-Identifier: Apache-2.0
"""Keystone's API, version 3: tokens and the service catalogue."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from container_update.emulator.heat.api_errors import (
    OpenStackApiError,
    bad_request,
    unauthorized_error,
)
from container_update.emulator.heat.stacks import new_id
from container_update.emulator.json_type import Json

USER, PROJECT, DOMAIN, REGION = "operator", "vnf", "Default", "RegionOne"


class Keystone:
    """One user in one project.

    :param urls: returns the addresses for the catalogue by service type.
    """

    def __init__(self, urls: Callable[[], Mapping[str, str]]) -> None:
        self.password = secrets.token_urlsafe(12)
        self.project_id = new_id().replace("-", "")
        self.lifetime = timedelta(hours=1)
        """How long a token is valid, as its document says."""
        self.issued = 0
        """How many tokens were issued."""
        self._user_id = new_id().replace("-", "")
        self._urls = urls
        self._tokens: dict[str, datetime] = {}

    def expire_tokens(self) -> None:
        """Make every token invalid, whatever its document says."""
        self._tokens.clear()

    def check(self, token: str | None) -> None:
        """Raise OpenStackApiError (401) for a token that is unknown or has expired."""
        end = self._tokens.get(token or "")
        if end is None or end <= datetime.now(timezone.utc):
            raise unauthorized_error()

    def validate(self, caller: str | None, subject: str | None) -> Json:
        """Return the document of the token *subject*.

        :raises OpenStackApiError: 401 if *caller* is not a valid token, 404 if *subject* is not.
        """
        self.check(caller)
        try:
            self.check(subject)
        except OpenStackApiError as error:
            raise OpenStackApiError(404, "Not Found", "Failed to validate token") from error
        assert subject is not None
        return {"token": self._document(self._tokens[subject] - self.lifetime)}

    def issue(self, body: Mapping[str, Any]) -> tuple[str, Json]:
        """Return a new token and its document, for a name and a password."""
        try:
            user = body["auth"]["identity"]["password"]["user"]
            known = user["password"] == self.password and user.get("name") in (USER, None)
        except (KeyError, TypeError) as error:
            raise bad_request(f"expected a user and a password, missing: {error}") from error
        if not known:
            raise unauthorized_error()
        token, now = secrets.token_urlsafe(24), datetime.now(timezone.utc)
        self._tokens[token] = now + self.lifetime
        self.issued += 1
        return token, {"token": self._document(now)}

    def _document(self, now: datetime) -> Json:
        domain = {"id": "default", "name": DOMAIN}
        return {
            "methods": ["password"],
            "user": {"id": self._user_id, "name": USER, "domain": domain},
            "project": {"id": self.project_id, "name": PROJECT, "domain": domain},
            "roles": [{"id": "1", "name": "member"}],
            "issued_at": _stamp(now),
            "expires_at": _stamp(now + self.lifetime),
            "audit_ids": [secrets.token_urlsafe(16)],
            "catalog": [_service(name, url) for name, url in self._urls().items()],
        }

    def versions(self, url: str) -> Json:
        """Return the document at the service's root."""
        return {"versions": {"values": [self.version(url)["version"]]}}

    def version(self, url: str) -> Json:
        """Return the document of version 3."""
        state = {"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z"}
        links = [{"rel": "self", "href": url}]
        return {"version": {**state, "links": links, "media-types": []}}


def _service(name: str, url: str) -> Json:
    region = {"region": REGION, "region_id": REGION}
    endpoints = [
        {"id": f"{name}-{interface}", "interface": interface, "url": url, **region}
        for interface in ("public", "internal", "admin")
    ]
    return {"id": name, "type": name, "name": name, "endpoints": endpoints}


def _stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
