# SPDX-License-Identifier: Apache-2.0
"""Which live Deployment stands in for one that a manifest names. Pure.

A Blue-Green change whose new Deployment bears the old one's name has to give it another one while
both run, and Kubernetes cannot rename it afterwards. An annotation says which manifest it is of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from container_update.model.objects import Json, Manifest, ObjectKey

NAME_ANNOTATION = "container-update/stands-for"
"""On a Deployment: the name that its manifest gives it."""


def live_names(live: Mapping[ObjectKey, Json]) -> dict[ObjectKey, ObjectKey]:
    """Return the identity in a manifest to the identity of the live object that stands in for it.

    An object that has its own name in the cluster needs no stand-in.
    """
    names: dict[ObjectKey, ObjectKey] = {}
    for key, body in live.items():
        if key.kind == "Deployment":
            named = replace(key, name=manifest_name(body))
            if named not in live:
                names[named] = key
    return names


def manifest_name(live: Json) -> str:
    """Return the name that the manifest of a live object has."""
    metadata = live["metadata"]
    return str((metadata.get("annotations") or {}).get(NAME_ANNOTATION) or metadata["name"])


def with_live_name(manifest: Manifest, names: Mapping[ObjectKey, ObjectKey]) -> Manifest:
    """Return the manifest under the identity that its object has in the cluster; its body stays.

    :param names: as :func:`live_names` returns them.
    """
    return replace(manifest, key=names.get(manifest.key, manifest.key))


def rename(body: Json, name: str) -> None:
    """Give a manifest with annotations the name of its live object, and note its own there."""
    metadata = body["metadata"]
    if metadata["name"] != name:
        metadata["annotations"][NAME_ANNOTATION] = metadata["name"]
        metadata["name"] = name
