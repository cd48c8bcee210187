# SPDX-License-Identifier: Apache-2.0
"""How the Secrets of a journal and of a history are made and read, and the signature that only
holders of a key can make. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json, ObjectKey

INSTANCE_ANNOTATION = "container-update/instance"
"""On the Secrets of an instance: its id, of which a name cannot have every character."""
_UID = "uid"
"""In the data of a journal: the UID of its Secret, which no later Secret has."""
KEPT = {"container-update/kept": "true"}
"""A label of the Secrets of an instance: its journal, its history."""

MAX_PARTS = 100
"""Of one operation: each is a request of its reader."""

PART_BYTES = 700_000
"""What one Secret holds of an operation; the API server allows 1 MiB for all of its data."""


def secret(  # noqa: PLR0913
    key: ObjectKey,
    content: str,
    data: Mapping[str, bytes],
    instance_id: str | None,
    labels: Mapping[str, str],
    *,
    owner: Json | None = None,
) -> Json:
    """Return a Secret to be created; *content* is its type."""
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "annotations": {INSTANCE_ANNOTATION: instance_id or ""},
        "labels": dict(labels),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata if owner is None else {**metadata, "ownerReferences": [owner]},
        "type": content,
        "data": _encode(data),
    }


def data_of(body: Mapping[str, Any]) -> dict[str, bytes]:
    """Return its data."""
    return {name: base64.b64decode(value) for name, value in (body.get("data") or {}).items()}


def text(body: Mapping[str, Any], name: str) -> str:
    """Return a value of its data; empty where there is none."""
    return base64.b64decode((body.get("data") or {}).get(name, "")).decode()


def with_values(head: Json, values: Mapping[str, bytes]) -> Json:
    """Return the head with values in its data."""
    return {**head, "data": {**(head.get("data") or {}), **_encode(values)}}


def _encode(values: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(value).decode() for name, value in values.items()}


def split(data: bytes) -> list[bytes]:
    """Return what each part holds of some bytes."""
    return [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)]


def owners(body: Json) -> list[Json]:
    """Return its ownerReferences."""
    return list(body["metadata"].get("ownerReferences") or ())


def in_force(head: Json) -> Json:
    """Return the head of a journal in force, which only this Secret can be."""
    metadata = {name: v for name, v in head["metadata"].items() if name != "ownerReferences"}
    return with_values({**head, "metadata": metadata}, {_UID: metadata["uid"].encode()})


def is_copy(head: Json) -> bool:
    """Tell whether a head came into force in another Secret, or never."""
    return text(head, _UID) != str(head["metadata"]["uid"])


def is_same(live: Json, body: Json) -> bool:
    """Tell whether the live Secret is the one to create, whose response was lost."""
    return (live.get("data"), owners(live)) == (body["data"], owners(body))


def as_owner(head: Json) -> Json:
    """Return the ownerReference of Secrets that are removed with the head."""
    metadata = head["metadata"]
    return {"apiVersion": "v1", "kind": "Secret", "name": metadata["name"], "uid": metadata["uid"]}


def is_complete(head: Json) -> bool:
    """Tell whether all parts were written, and none is being removed."""
    return not owners(head) and "ended" not in (head.get("data") or {})


# --- signatures ---------------------------------------------------------------------------------
# It covers the place and all of the data. The head of an operation in a cluster has the digests of
# its parts.

_NAME, _SIGNER = "hmac", "signed-by"
"""In the data of the Secret: the signature, and the public name of its key."""


def public_name(key: str) -> str:
    """Return by what people tell keys apart; the key is not to be had from it.

    >>> public_name("a key of this host")
    '92f06f75e2a09541'
    """
    return hashlib.sha256(f"container-update journal key {key}".encode()).hexdigest()[:16]


def sign(body: Json, key: str) -> Json:
    """Return a Secret with its signature; without any where the host has no key.

    >>> body = {"metadata": {"namespace": "cnf", "name": "a"}, "data": {"x": "MQ=="}}
    >>> is_trusted(sign(body, "a key of this host"), "a key of this host")
    True
    """
    data = {name: v for name, v in (body.get("data") or {}).items() if name not in (_NAME, _SIGNER)}
    if not key:
        return {**body, "data": data}
    named = with_values({**body, "data": data}, {_SIGNER: public_name(key).encode()})
    return with_values(named, {_NAME: _signature(named, key).encode()})


def is_trusted(body: Json, key: str) -> bool:
    """Tell whether a host with this key reads the Secret: it has signed it, or has no key."""
    if not key:
        return True
    signature = str((body.get("data") or {}).get(_NAME, ""))
    expected = base64.b64encode(_signature(body, key).encode()).decode()
    return hmac.compare_digest(signature.encode(), expected.encode())


def signer(body: Json) -> str:
    """Return the public name of the key that a Secret says it is signed with, or ''."""
    data = body.get("data") or {}
    return base64.b64decode(data.get(_SIGNER, "")).decode(errors="replace")


WITHOUT_KEY = "--no-journal-key accepts it for objects of the VNF"
"""What helps where a signature is the only thing that is missing."""


def why_untrusted(what: str, found: str, key: str) -> str:
    """Return why a Secret that the key of this host has not signed is refused, and what helps.

    :param what: it is.
    :param found: the public name of the key that it says it is signed with.
    """
    mine, unsigned = public_name(key), WITHOUT_KEY
    if not re.fullmatch("[0-9a-f]{16}", found):
        by, help_ = "one that no key has signed", unsigned
    elif found == mine:
        by, help_ = "one that was changed after it had been signed", unsigned
    else:
        by = f"one that is signed with the key {found}"
        help_ = (
            "run this again with a copy of that key, --journal-key FILE (the user who began it has "
            "it in ~/.config/container-update/journal.key, unless configured otherwise); "
            f"{unsigned}"
        )
    return (
        f"expected {what} that is signed with the key {mine} of this host, found {by}: nothing was "
        f"written: {help_}"
    )


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


def stretch_password(password: str, salt: str) -> str:
    """Return a key from whose signatures its password cannot be guessed."""
    return hashlib.scrypt(password.encode(), salt=salt.encode(), n=2**14, r=8, p=1).hex()
