"""TLS on loopback: kubectl sends a token only over TLS, so there is an authority for a day."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class Certificates:
    """A certificate authority of its own and a server certificate for loopback."""

    ca_text: str
    """The authority's certificate (PEM), for clients to trust."""
    context: ssl.SSLContext
    """The server's side."""


def make() -> Certificates:
    """New certificates, for 127.0.0.1 and localhost; elliptic keys, which take no time to make."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return Certificates(authority.cert_pem.bytes().decode("ascii"), context)
