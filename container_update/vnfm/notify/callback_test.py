"""Requests to the callbacks of subscriptions, with the credentials that they ask for.

No proxy is used and no redirect is followed. Source: SOL003 5.4.18 (the test of a callbackUri),
SOL013 8.3.4 (SubscriptionAuthentication).
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from container_update.model.objects import Json
from container_update.vnfm.notify.callback_uris import JudgingResolver, uri_problem
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

BASIC, OAUTH = "BASIC", "OAUTH2_CLIENT_CREDENTIALS"
_PARAMS = {BASIC: "paramsBasic", OAUTH: "paramsOauth2ClientCredentials"}
_NEEDED = {
    BASIC: ("userName", "password"),
    OAUTH: ("clientId", "clientPassword", "tokenEndpoint"),
}
_EARLY_SECONDS = 10.0
"""How long before its end an OAuth token is renewed."""


class CallbackError(Exception):
    """A callback was not reached, or did not answer as it should; worth another attempt."""


def check_callback(settings: Settings, uri: str, authentication: Json | None) -> None:
    """Refuse a subscription whose callback does not answer a GET with 204, SOL003 5.4.18.

    :raises ProblemError: 422, with what was found; 400 where *authentication* is misshapen.
    """
    check_authentication(authentication)

    async def test() -> int:
        async with Callbacks(settings) as callbacks:
            return await callbacks.request("GET", uri, authentication)

    tested = "the callbackUri was tested with a GET, which it has to answer with 204"
    try:
        status = asyncio.run(test())
    except CallbackError as error:
        raise ProblemError(422, f"{tested}: {error}") from error
    if status != 204:
        raise ProblemError(422, f"{tested}: found {status}")


def check_authentication(authentication: Any) -> None:
    """Refuse credentials that cannot be sent along.

    :raises ProblemError: 400: misshapen; 422: a way that is not supported. Never a credential.
    """
    if authentication is None:
        return
    ways = authentication.get("authType") if isinstance(authentication, dict) else None
    if not isinstance(ways, list) or not ways or not all(isinstance(way, str) for way in ways):
        raise ProblemError(400, "authentication: expected authType, a list of at least one text")
    for way in ways:
        if way not in _PARAMS:
            known = " and ".join(_PARAMS)
            raise ProblemError(422, f"authentication: {known} are supported, found {way[:64]!a}")
        given = authentication.get(_PARAMS[way])
        for name in _NEEDED[way]:
            if not isinstance(given, dict) or not isinstance(given.get(name), str):
                raise ProblemError(400, f"authentication: {_PARAMS[way]} expects a text {name}")


class Callbacks:
    """Sends requests to callbacks; an asynchronous context manager."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = frozenset(settings.callback_hosts)
        self._timeout = aiohttp.ClientTimeout(total=settings.callback_seconds)
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}

    async def __aenter__(self) -> Callbacks:
        connector = aiohttp.TCPConnector(resolver=JudgingResolver(self._hosts), force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self, method: str, uri: str, authentication: Json | None, body: Json | None = None
    ) -> int:
        """Return the status that a callback answers with.

        :raises CallbackError: it may not be asked, was not reached, or gave out no token.
        """
        headers = await self._credentials(authentication)
        async with self._answer(method, uri, headers, json=body) as answer:
            if answer.status == 401 and authentication:
                self._tokens.pop(_key(authentication), None)
            return answer.status

    @asynccontextmanager
    async def _answer(
        self, method: str, uri: str, headers: Mapping[str, str], **content: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Return what is answered; every failure is a CallbackError, which quotes no header."""
        if problem := uri_problem(uri, self._hosts):
            raise CallbackError(problem)
        try:
            async with self._session.request(
                method, uri, headers=headers, allow_redirects=False, **content
            ) as answer:
                yield answer
        except asyncio.TimeoutError:
            raise CallbackError(f"no answer within {self._timeout.total:g} seconds") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallbackError(f"not reached: {error}") from error

    async def _credentials(self, authentication: Json | None) -> Mapping[str, str]:
        """Both ways given: tokens are the better one."""
        if not authentication:
            return {}
        if OAUTH not in authentication["authType"]:
            given = authentication[_PARAMS[BASIC]]
            return _basic(given["userName"], given["password"])
        token, end = self._tokens.get(_key(authentication), ("", 0.0))
        if end <= time.monotonic():
            token, seconds = await self._new_token(authentication[_PARAMS[OAUTH]])
            self._tokens[_key(authentication)] = token, time.monotonic() + seconds - _EARLY_SECONDS
        return {"Authorization": f"Bearer {token}"}

    async def _new_token(self, given: Json) -> tuple[str, float]:
        """RFC 6749 4.4: a token for the client itself, and how long it is good."""
        # 2.3.1: the name and the password are encoded before they are joined
        headers = _basic(quote(given["clientId"], ""), quote(given["clientPassword"], ""))
        form = {"grant_type": "client_credentials"}
        async with self._answer("POST", given["tokenEndpoint"], headers, data=form) as answer:
            if answer.status != 200:
                raise CallbackError(f"the tokenEndpoint answered {answer.status}")
            try:
                body = await answer.json(content_type=None)
                token, seconds = str(body["access_token"]), float(body.get("expires_in", 0))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise CallbackError("the tokenEndpoint gave out no token") from None
        if not token.isascii() or not token.isprintable():
            raise CallbackError("the tokenEndpoint gave out a token that fits into no header")
        return token, seconds


def _basic(user: str, password: str) -> Mapping[str, str]:
    """RFC 7617."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _key(authentication: Json) -> tuple[str, ...]:
    given = authentication.get(_PARAMS[OAUTH]) or {}
    return tuple(str(given.get(name)) for name in _NEEDED[OAUTH])
