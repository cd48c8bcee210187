# SPDX-License-Identifier: Apache-2.0
"""The signature of a Secret that this program keeps, which only holders of a key can make. Pure.

It covers the Secret's place and all of its data. A journal's head has the digest of all parts.
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
    text = json.dumps([metadata["namespace"], metadata["name"], body.get("type"), content])
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
