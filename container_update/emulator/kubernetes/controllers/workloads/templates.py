# SPDX-License-Identifier: Apache-2.0
"""Pod templates: their hash, and the pods that are made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.names import ALPHABET
from container_update.emulator.kubernetes.objects import reference_to

_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619


def template_hash(value: Json, collisions: int = 0) -> str:
    """Return the hash of a value for names and labels.

    It is a 32-bit FNV-1a in decimal, each digit replaced by a character of ``ALPHABET``. It has the
    form of Kubernetes' own hashes but not their values: those depend on a dump in Go.

    :param collisions: how many of this owner's hashes were already in use.
    """
    data = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if collisions:
        data += f"#{collisions}"
    state = _FNV_OFFSET
    for byte in data.encode():
        state = (state ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(state))


def pod_of(owner: Json, template: Json, labels: Mapping[str, str] | None = None) -> Json:
    """Return a pod made from *template*, without a name, controlled by *owner*.

    :param labels: additions to the template's labels.
    """
    given = template.get("metadata") or {}
    metadata: Json = {
        "generateName": f"{owner['metadata']['name']}-",
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference_to(owner)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    if given.get("finalizers"):
        metadata["finalizers"] = list(given["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
