# SPDX-License-Identifier: Apache-2.0
"""Requests to the callbacks of subscriptions: to which addresses, and with which credentials.

Clients choose the URIs, and this host may reach addresses that they may not. So a name is resolved
once, each of its addresses is checked, and the connection goes to a checked one. Private networks
are allowed, as an NFVO is often in one. No proxy is used and no redirect is followed.

Source: SOL003 5.4.18 (the test of a callbackUri), SOL013 8.3.4 (SubscriptionAuthentication).
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp.abc import ResolveResult

from container_update.cluster.credentials import basic
from container_update.cluster.oidc import MAX_BYTES, read_token
from container_update.model.objects import Json
from container_update.package.fetch import Network, network_of, split_url
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

_MAX_LENGTH = 2048
"""Of a URI."""
BASIC, OAUTH = "BASIC", "OAUTH2_CLIENT_CREDENTIALS"
_PARAMS = {BASIC: "paramsBasic", OAUTH: "paramsOauth2ClientCredentials"}
_NEEDED = {BASIC: ("userName", "password"), OAUTH: ("clientId", "clientPassword", "tokenEndpoint")}
_EARLY_SECONDS = 10.0
"""Time before its expiry at which an OAuth token is renewed."""


class CallbackError(Exception):
    """A callback was not reached, or did not answer correctly; worth another attempt."""


async def check_callback(settings: Settings, uri: str, authentication: Json | None) -> None:
    """Refuse a subscription whose callback does not answer a GET with 204, SOL003 5.4.18.

    :raises ProblemError: 422, with the cause; 400: *authentication* is malformed.
    """
    check_authentication(authentication)
    tested = "the callbackUri was tested with a GET, which it has to answer with 204"
    try:
        async with Callbacks(settings) as callbacks:
            status = await callbacks.request("GET", uri, authentication)
    except CallbackError as error:
        raise ProblemError(422, f"{tested}: {error}") from error
    if status != 204:
        raise ProblemError(422, f"{tested}: found {status}")


def check_authentication(authentication: Any) -> None:
    """Refuse a SubscriptionAuthentication that cannot be used.

    :raises ProblemError: 400: malformed; 422: an unsupported method. It quotes no credential.
    """
    if authentication is None:
        return
    methods = authentication.get("authType") if isinstance(authentication, dict) else None
    if not isinstance(methods, list) or not methods or not all(isinstance(m, str) for m in methods):
        raise ProblemError(400, "authentication: expected authType, a list of at least one text")
    for method in methods:
        if method not in _PARAMS:
            known = " and ".join(_PARAMS)
            raise ProblemError(422, f"authentication: {known} are supported, found {method[:64]!a}")
        params = authentication.get(_PARAMS[method])
        for name in _NEEDED[method]:
            if not isinstance(params, dict) or not isinstance(params.get(name), str):
                raise ProblemError(400, f"authentication: {_PARAMS[method]} expects a text {name}")


class Callbacks:
    """Sends requests to callbacks; an asynchronous context manager."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = frozenset(settings.callback_hosts)
        self._timeout = aiohttp.ClientTimeout(total=settings.callback_seconds)
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}

    async def __aenter__(self) -> Callbacks:
        connector = aiohttp.TCPConnector(resolver=CheckingResolver(self._hosts), force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=self._timeout,
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,  # a few bytes could become gigabytes
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self, method: str, uri: str, authentication: Json | None, body: Json | None = None
    ) -> int:
        """Send a request to a callback; return the status of its response.

        :raises CallbackError: it is not allowed or not reached, or there is no OAuth token for it.
        """
        headers = await self._credentials(authentication)
        async with self._response(method, uri, headers, json=body) as answer:
            if answer.status == 401 and authentication:
                self._tokens.pop(_key(authentication), None)
            return answer.status

    @asynccontextmanager
    async def _response(
        self, method: str, uri: str, headers: Mapping[str, str], **content: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the response; every failure is a CallbackError, which quotes no header."""
        if problem := uri_problem(uri, self._hosts):
            raise CallbackError(problem)
        try:
            async with self._session.request(
                method, uri, headers=headers, allow_redirects=False, **content
            ) as answer:
                yield answer
        except asyncio.TimeoutError:
            raise CallbackError(f"no answer within {self._timeout.total:g} seconds") from None
        except aiohttp.ClientResponseError:  # its text quotes what was sent
            raise CallbackError("its answer is not one of HTTP, or too long") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # a name with an empty part
            raise CallbackError(f"not reached: {error}") from error

    async def _credentials(self, authentication: Json | None) -> Mapping[str, str]:
        """Return the Authorization header; OAuth is preferred to basic."""
        if not authentication:
            return {}
        if OAUTH not in authentication["authType"]:
            params = authentication[_PARAMS[BASIC]]
            return {"Authorization": basic(params["userName"], params["password"])}
        key = _key(authentication)
        token, end = self._tokens.get(key, ("", 0.0))
        if end <= time.monotonic():
            token, seconds = await self._new_token(authentication[_PARAMS[OAUTH]])
            self._tokens[key] = token, time.monotonic() + seconds - _EARLY_SECONDS
        return {"Authorization": f"Bearer {token}"}

    async def _new_token(self, params: Json) -> tuple[str, float]:
        """Return a token for the client itself and its lifetime in seconds, RFC 6749 4.4."""
        # 2.3.1: the name and the password are encoded before they are joined
        name, password = (quote(params[each], "") for each in ("clientId", "clientPassword"))
        headers = {"Authorization": basic(name, password)}
        form = {"grant_type": "client_credentials"}
        async with self._response("POST", params["tokenEndpoint"], headers, data=form) as answer:
            if answer.status != 200:
                raise CallbackError(f"the tokenEndpoint answered {answer.status}")
            body = await _body(answer)
        try:
            token, seconds = read_token(body, ("access_token",))
        except ValueError as error:
            raise CallbackError(f"the tokenEndpoint gave out no token: {error}") from None
        return token, seconds


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of a token's response; it is not decompressed."""
    body = b""
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise CallbackError(f"expected at most {MAX_BYTES} bytes from the tokenEndpoint")
    return body


def _key(authentication: Json) -> tuple[str, ...]:
    params = authentication.get(_PARAMS[OAUTH]) or {}
    return tuple(str(params.get(name)) for name in _NEEDED[OAUTH])


# --- addresses ----------------------------------------------------------------------------------


def uri_problem(uri: str, hosts: Collection[str]) -> str:
    """Return why no request may go to a URI, or an empty text.

    :param hosts: the only allowed hosts, with any address; if empty, see :func:`address_problem`.
        The addresses of a name are checked when it is resolved.
    """
    if len(uri) > _MAX_LENGTH:
        return f"expected a URI of up to {_MAX_LENGTH} characters"
    try:
        parts = split_url(uri)
    except ValueError as error:
        return f"expected a URI: {error}"
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or parts.fragment:
        return "expected http://HOST/PATH or https://HOST/PATH"
    if "@" in parts.netloc:
        return "expected credentials in the subscription's authentication, not in the URI"
    if hosts and host not in hosts:
        return f"{host} is none of the hosts that [vnfm] callback_hosts allows"
    return "" if host in hosts else address_problem(_canonical(host))


def _canonical(host: str) -> str:
    """Return an address as it is usually written: 127.1 or 2130706433 may not be resolved."""
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    return host


def address_problem(address: str) -> str:
    """Return why no request may go to an address, or an empty text, as for every name."""
    try:
        network = network_of(address)
    except ValueError:
        return ""
    if network is Network.OFF_LIMITS:
        return f"{address} is off limits as long as [vnfm] callback_hosts does not name the host"
    return ""


class CheckingResolver(aiohttp.ThreadedResolver):
    """Resolves a name if all of its addresses are allowed, or the name is one of these hosts."""

    def __init__(self, hosts: Collection[str]) -> None:
        super().__init__()
        self._hosts = hosts

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host; OSError where one of them is off limits."""
        entries = await super().resolve(host, port, family)
        for entry in entries if host not in self._hosts else ():
            if problem := address_problem(entry["host"]):
                raise PermissionError(errno.EACCES, problem)
        return entries
