# SPDX-License-Identifier: Apache-2.0
"""The versions of a CustomResourceDefinition in which the server may have objects stored. Pure.

It refuses a definition without one of them, until all objects are stored in another one and its
status says so. So they stay, and are not served: clients see the API that the manifest describes.
Source: Kubernetes documentation, "Versions in CustomResourceDefinitions".
"""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.objects import DEFINITION, Json, ObjectKey


def with_stored_versions(body: Json, live: Json) -> Json:
    """Return a definition with those versions of the live one that it lacks and that cannot go;
    *body* itself where there are none, and of any other kind."""
    if not _is_definition(live):
        return body
    named, kept = {version["name"] for version in _versions(body)}, _stored_version_names(live)
    left = [
        {**version, "served": False, "storage": False}
        for version in _versions(live)
        if version["name"] in kept - named
    ]
    if not left:
        return body
    return {**body, "spec": {**body["spec"], "versions": [*_versions(body), *left]}}


def remark(body: Json, live: Json) -> str:
    """Return what to know of the versions of a definition that is to be written; '': nothing."""
    if not _is_definition(live):
        return ""
    served = {version["name"] for version in _versions(body) if version.get("served")}
    stored = {version["name"] for version in _versions(body) if version.get("storage")}
    known = {version["name"] for version in _versions(live)}
    return "; ".join(
        [
            *(
                _text(name, "stays")
                for name in sorted(_stored_version_names(live) & known - served)
            ),
            *(_text(name, "stays after an undo") for name in sorted(stored - known)),
        ]
    )


def _is_definition(body: Json) -> bool:
    key = ObjectKey.of(body)
    return (key.group, key.kind) == DEFINITION


def _text(name: str, stays: str) -> str:
    return f"version {name} {stays}, not served: the API server may have objects stored in it"


def _versions(definition: Json) -> Iterator[Json]:
    yield from (definition.get("spec") or {}).get("versions") or ()


def _stored_version_names(definition: Json) -> set[str]:
    return {*((definition.get("status") or {}).get("storedVersions") or ())}
