"""TLS on loopback: kubectl sends a token only over TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class Certificates:
    """A new certificate authority and a server certificate for loopback."""

    ca_text: str
    """The authority's certificate (PEM), which clients have to trust."""
    context: ssl.SSLContext
    """The context for the server."""


def make() -> Certificates:
    """Create certificates for 127.0.0.1 and localhost, with elliptic keys: they are made fast."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return Certificates(authority.cert_pem.bytes().decode("ascii"), context)
