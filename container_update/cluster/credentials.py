# SPDX-License-Identifier: Apache-2.0
"""What a VIM connection or a kubeconfig carries: a URL, what goes into a header, a certificate.

No message quotes a value: a URL may have a password in it, and a token may be in the wrong place.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import tempfile
from pathlib import Path

from container_update.model.errors import ClusterError
from container_update.package.fetch import split_url

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def checked_url(url: object, name: str) -> str:
    """Return a server's URL without a user name; ClusterError names the attribute."""
    try:
        parts = split_url(url if isinstance(url, str) else "")
        str(parts.hostname).encode("idna")
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url or "@" in parts.netloc:
        raise ClusterError(
            f"{name}: expected http://HOST or https://HOST, perhaps with a port and a path, but "
            "without a user name; found something else: correct it, and give a login its own "
            "attributes"
        ) from None
    assert isinstance(url, str)
    return url


def header_value(value: object) -> str:
    """Return credentials that fit into an HTTP header (RFC 9110, 5.5), or refuse them."""
    text = value.strip() if isinstance(value, str) else ""
    if not text.isascii() or not text.isprintable() or not text:
        raise ClusterError(
            "the credentials do not fit into an HTTP header: expected printable ASCII characters "
            "in one line: is there a line break in the token?"
        )
    return text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def basic(username: str, password: str | None) -> str:
    """Return the credentials of HTTP basic authentication, RFC 7617."""
    return "Basic " + base64.b64encode(f"{username}:{password or ''}".encode()).decode()


def pem(text: str) -> str:
    """Return PEM certificates whose line breaks may be spaces; refuse what is no text."""
    if not isinstance(text, str) or not text.isascii():
        raise ClusterError(
            "ssl_ca_cert: expected a certificate as text (PEM), found something else"
        )
    words = text.replace(_BEGIN, " \0 ").replace(_END, " \1 ")
    lines = {"\0": _BEGIN, "\1": _END}
    return "\n".join(lines.get(word, word) for word in words.split()) + "\n"


def private_file(text: str) -> Path:
    """Return a file that only this user can read (mode 0600); the caller removes it."""
    handle, name = tempfile.mkstemp(prefix="container-update-", suffix=".pem")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return Path(name)
