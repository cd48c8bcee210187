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
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlencode

from container_update.cluster.credentials import checked_url
from container_update.cluster.responses import is_refused_certificate
from container_update.model.errors import ClusterError
from container_update.package.fetch import exchange, split_url

LOG = logging.getLogger(__name__)

_MARGIN = 30.0
"""Seconds before its end at which a token is renewed."""
_LIFETIME = 300.0
"""Seconds that a token is used for if the provider does not say how long it is valid."""
MAX_BYTES = 256 * 1024
"""Of an answer with a token."""
_HEADERS = {
    "Accept": "application/json",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "container-update",
}


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
        """Return the header with a token that has not expired, or raise the provider's error."""
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
                self._token = self._renew()
        except ClusterError as error:
            if not token.is_valid():
                raise
            LOG.info("%s; the old token is used until it expires", error)
        finally:
            self._renewing.release()
        return self._token

    def _renew(self) -> _Token:
        url = self._url
        form = urlencode({"grant_type": "password", "scope": "openid", **self._form})
        try:
            status, body = exchange(
                split_url(url), self._seconds, MAX_BYTES, tls=self._tls, headers=_HEADERS, form=form
            )
        except TimeoutError as error:
            raise self._no_answer("no complete answer") from error
        except (OSError, HTTPException) as error:
            if is_refused_certificate(error):
                raise ClusterError(
                    f"{url}: {error}: expected a certificate that the VIM's CA has issued"
                ) from error
            cause = getattr(error, "strerror", None) or type(error).__name__
            raise self._no_answer(cause) from error
        if status == 429 or status >= 500:
            raise ClusterError(f"{url}: it answered {status}", status=status, transient=True)
        if not 200 <= status < 300:
            raise self._refusal(f"it answered {status}")
        return self._read(body)

    def _read(self, body: bytes) -> _Token:
        """Return the token of a successful answer, RFC 6749 5.1."""
        if len(body) > MAX_BYTES:
            raise self._refusal(f"expected at most {MAX_BYTES} bytes")
        try:
            text, seconds = read_token(body, ("id_token", "access_token"))
        except ValueError as error:
            raise self._refusal(str(error)) from None
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

    def _refusal(self, reason: str) -> ClusterError:
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
