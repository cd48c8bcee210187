# SPDX-License-Identifier: Apache-2.0
"""A bearer token of an OpenID Connect provider, renewed shortly before it expires.

Source: RFC 6749, 4.3 (the password grant) and 5.1, and OpenID Connect Core for ``id_token``. Not by
requests-oauthlib: a provider that sends a byte a second, or without an end, would hold a worker of
the service for ever, as it has neither a deadline for the whole answer nor a limit of its size.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import SplitResult, urlencode

from container_update.cluster.credentials import checked_url
from container_update.cluster.responses import is_refused_certificate
from container_update.model.errors import ClusterError
from container_update.package.fetch import Deadline, split_url, watch

LOG = logging.getLogger(__name__)

_MARGIN = 30.0
"""Seconds before its end at which a token is renewed."""
_LIFETIME = 300.0
"""Seconds that a token is used for if the provider does not say how long it is valid."""
MAX_BYTES = 256 * 1024
"""Of an answer with a token."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class _Token:
    text: str
    expires: float
    """By the monotonic clock."""

    def is_valid(self, seconds: float = 0.0) -> bool:
        """Return whether it does not expire within *seconds*."""
        return time.monotonic() < self.expires - seconds


class OidcToken:
    """A bearer token that is renewed before it expires; thread-safe.

    :param oidc: ``token_url, client_id, username, password`` and perhaps ``client_secret``.
    :param authority: PEM of the provider's CA, which is the API server's; '': those of the system.
    :param verified: its certificate is verified.
    :param seconds: maximum time for one request to the provider.
    :raises ClusterError: the token_url is none.
    """

    def __init__(
        self, oidc: Mapping[str, str], authority: str, seconds: float, *, verified: bool
    ) -> None:
        self._url = checked_url(oidc.get("token_url"), "oidc_token_url")
        self._form = {k: v for k, v in oidc.items() if k != "token_url" and v}
        self._verified, self._authority = verified, authority
        self._seconds = seconds
        self._renewing = threading.Lock()
        self._token = _Token("", -math.inf)

    def authorization(self) -> str:
        """Return the header with a token that has not expired.

        :raises ClusterError: the provider gave no token; transient where it is away.
        """
        return f"Bearer {self._usable().text}"

    def forget(self) -> None:
        """Ask for another token before the next request: the server does not accept this one."""
        self._token = _Token("", -math.inf)

    def _usable(self) -> _Token:
        """Return the token; one thread renews it, the others wait only if it has expired."""
        token = self._token
        if token.is_valid(_MARGIN):
            return token
        wait = 0 if token.is_valid() else self._seconds
        if not self._renewing.acquire(timeout=wait):
            if token.is_valid():
                return token
            raise self._no_answer("another request has been waiting for it")
        try:
            if self._token is token:
                self._token = self._renewed()
        except ClusterError as error:
            if not token.is_valid():
                raise
            LOG.info("%s; the old token is used until it expires", error)
        finally:
            self._renewing.release()
        return self._token

    def _renewed(self) -> _Token:
        url = self._url
        form = {"grant_type": "password", "scope": "openid", **self._form}
        with Deadline(self._seconds) as deadline:
            try:
                status, body = _post(split_url(url), urlencode(form), self._tls, deadline)
            except (OSError, HTTPException) as error:
                if deadline.passed or isinstance(error, TimeoutError):
                    raise self._no_answer("no complete answer") from error
                if is_refused_certificate(error):
                    raise ClusterError(
                        f"{url}: {error}: expected a certificate that the VIM's CA has issued"
                    ) from error
                cause = getattr(error, "strerror", None) or type(error).__name__
                raise self._no_answer(cause) from error
        if status == 429 or status >= 500:
            raise ClusterError(f"{url}: it answered {status}", status=status, transient=True)
        if not 200 <= status < 300:
            raise self._refused(f"it answered {status}")
        return self._read(body)

    def _read(self, body: bytes) -> _Token:
        """Return the token of a successful answer, RFC 6749 5.1."""
        if len(body) > MAX_BYTES:
            raise self._refused(f"expected at most {MAX_BYTES} bytes")
        try:
            text, seconds = read_token(body, ("id_token", "access_token"))
        except ValueError as error:
            raise self._refused(str(error)) from None
        return _Token(text, time.monotonic() + (seconds or _LIFETIME))

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not self._verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._authority:
            context.load_verify_locations(cadata=self._authority)
        else:
            context.load_default_certs()
        return context

    def _refused(self, reason: str) -> ClusterError:
        return ClusterError(
            f"{self._url}: expected a token, got none ({reason}): check the VIM's "
            "OpenID Connect fields",
            status=401,
        )

    def _no_answer(self, reason: str) -> ClusterError:
        return ClusterError(
            f"{self._url}: expected a token within {self._seconds:g} seconds "
            f"(option request_timeout), got none: {reason}: check that the provider is reachable",
            transient=True,
        )


def read_token(body: bytes, names: Sequence[str]) -> tuple[str, float]:
    """Return the token of a successful answer and its lifetime in seconds, 0 if it has none.

    Source: RFC 6749, 5.1.

    :param names: of the attributes that may hold the token, the preferred one first.
    :raises ValueError: there is no token that fits into a header; it quotes nothing.
    """
    try:
        answer = json.loads(body)
        text = next(filter(None, map(answer.get, names)), None)
        seconds = float(answer.get("expires_in") or 0.0)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__} in the answer") from None
    if not (isinstance(text, str) and text.isascii() and text.isprintable()):
        raise ValueError("no token that fits into a header")
    if not 0 <= seconds < math.inf:
        raise ValueError("no lifetime in expires_in")
    return text, seconds


def _post(
    url: SplitResult, form: str, tls: Callable[[], ssl.SSLContext], deadline: Deadline
) -> tuple[int, bytes]:
    """Return the status of the answer to a form, and its body: cut off after the allowed size.

    :raises OSError, HTTPException: there was no complete answer.
    """
    host, port = str(url.hostname), url.port or _PORTS[url.scheme]
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": "container-update",
    }
    with closing(HTTPConnection(host, port)) as connection:
        connection.sock = socket.create_connection((host, port), deadline.left())
        watch(connection, deadline, tls() if url.scheme == "https" else None)
        path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
        connection.request("POST", path, form, headers)
        answer = connection.getresponse()
        body = answer.read(MAX_BYTES + 1)
    if deadline.passed:  # a connection that was shut down looks like the end of the body
        raise TimeoutError
    return answer.status, body
