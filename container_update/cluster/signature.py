# SPDX-License-Identifier: Apache-2.0
"""The signature of what this program keeps, which only holders of a key can make. Pure.

It covers the place and all of the data. The head of a journal in a cluster has the digest of all
parts.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from container_update.model.objects import Json

_NAME = "hmac"
"""In the data of the Secret."""


def signed(body: Json, key: str) -> Json:
    """Return a Secret with its signature; as it is where the host has no key.

    >>> body = {"metadata": {"namespace": "cnf", "name": "a"}, "data": {"x": "MQ=="}}
    >>> is_signed(signed(body, "a key of this host"), "a key of this host")
    True
    """
    if not key:
        return body
    signature = base64.b64encode(_signature(body, key).encode()).decode()
    return {**body, "data": {**(body.get("data") or {}), _NAME: signature}}


def is_signed(body: Json, key: str) -> bool:
    """Tell whether a holder of the key has written the Secret as it is."""
    found = str((body.get("data") or {}).get(_NAME, ""))
    expected = base64.b64encode(_signature(body, key).encode()).decode()
    return bool(key) and hmac.compare_digest(found.encode(), expected.encode())


def _signature(body: Json, key: str) -> str:
    metadata, data = body["metadata"], body.get("data") or {}
    content = sorted((name, value) for name, value in data.items() if name != _NAME)
    return signature([metadata["namespace"], metadata["name"], body.get("type"), content], key)


def signature(content: object, key: str) -> str:
    """Return the signature of plain values.

    >>> len(signature(["a place", "its text"], "a key of this host"))
    64
    """
    return hmac.new(key.encode(), json.dumps(content).encode(), hashlib.sha256).hexdigest()


def stretched(password: str, salt: str) -> str:
    """Return a key that nobody can guess a password from who sees what it has signed."""
    return hashlib.scrypt(password.encode(), salt=salt.encode(), n=2**14, r=8, p=1).hex()
