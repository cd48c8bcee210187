# SPDX-License-Identifier: Apache-2.0
"""URL paths, and the resource or object that they name."""

from __future__ import annotations

from dataclasses import dataclass

from container_update.emulator.kubernetes.api_errors import not_found
from container_update.emulator.kubernetes.resources import Catalogue, Resource

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True)
class RequestTarget:
    """The resource or object that a request is about."""

    resource: Resource
    version: str
    """The API version in the path."""
    namespace: str | None
    """None: no namespace, or (for a collection) all namespaces."""
    name: str = ""
    """'' for the collection."""
    subresource: str = ""

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` in responses."""
        return self.resource.group_version(self.version)

    @property
    def space(self) -> str:
        """The namespace as the registry expects it: '' for none."""
        return self.namespace or ""


def parse_path(path: str, catalogue: Catalogue) -> RequestTarget | None:
    """Return the target of a path ('/api/v1/...', '/apis/GROUP/VERSION/...'), or None.

    :raises ApiError: 404 for a subresource that a custom resource does not have.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    resource = catalogue.at(group, version, rest[0])
    if resource is None or (namespace is not None and not resource.namespaced):
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if name and resource.namespaced and namespace is None:
        return None
    if subresource and resource.subresource(subresource) is None:
        if resource.custom:
            raise not_found(group, resource.plural, name)
        return None
    return RequestTarget(resource, version, namespace, name, subresource)
