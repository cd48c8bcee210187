"""What a VIM connection carries: OpenID Connect fields, and CA certificates as text.

Source: RFC 6749, 4.3 (the password grant), and OpenID Connect Core for ``id_token``.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from container_update.model.errors import ClusterError

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def pem(text: str) -> str:
    """Return a PEM certificate (or several) whose line breaks may have become spaces."""
    words = text.replace(_BEGIN, " \0 ").replace(_END, " \1 ")
    lines = {"\0": _BEGIN, "\1": _END}
    return "\n".join(lines.get(word, word) for word in words.split()) + "\n"


def private_file(text: str) -> Path:
    """Return a file that only this user can read (mode 0600); the caller removes it."""
    handle, name = tempfile.mkstemp(prefix="container-update-", suffix=".pem")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return Path(name)


class OidcToken:
    """A bearer token that is renewed shortly before it expires; thread-safe.

    :param oidc: ``token_url, client_id, username, password`` and perhaps ``client_secret``.
    :param configuration: the client's; its CA and its verification hold for the provider too.
    """

    _MARGIN = 30.0

    def __init__(self, oidc: Mapping[str, str], configuration: Any) -> None:
        self._oidc = oidc
        self._configuration = configuration
        self._lock = threading.Lock()
        self._token = ""
        self._expires = 0.0

    def refresh(self, configuration: Any) -> None:
        """Give the client's configuration a token that has not expired.

        :raises ClusterError: the provider gave no token.
        """
        with self._lock:
            if time.monotonic() >= self._expires - self._MARGIN:
                self._renew()
            configuration.api_key["authorization"] = f"Bearer {self._token}"

    def _renew(self) -> None:
        import urllib3  # noqa: PLC0415

        url = self._oidc["token_url"]
        form = {"grant_type": "password", "scope": "openid"}
        form |= {k: v for k, v in self._oidc.items() if k != "token_url" and v}
        verify = self._configuration.verify_ssl
        with urllib3.PoolManager(
            cert_reqs="CERT_REQUIRED" if verify else "CERT_NONE",
            ca_certs=self._configuration.ssl_ca_cert,
        ) as pool:
            try:
                answer = pool.request(
                    "POST", url, fields=form, encode_multipart=False, retries=False
                )
                body = json.loads(answer.data)
                self._token = str(body.get("id_token") or body["access_token"])
            except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
                raise ClusterError(
                    f"{url}: expected a token, got none ({type(error).__name__}): check the VIM's "
                    "OpenID Connect fields",
                    status=401,
                ) from error
        self._expires = time.monotonic() + float(body.get("expires_in") or 300)
