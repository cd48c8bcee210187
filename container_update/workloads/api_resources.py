# SPDX-License-Identifier: Apache-2.0
"""The URLs of objects at the API server: of known kinds, or looked up in discovery.

Source: Kubernetes API concepts, "Resource URIs".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from container_update.model.errors import ClusterError
from container_update.model.objects import CLUSTER_SCOPED, Collection, Json, ObjectKey

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "": ("ConfigMap", "Event", "Namespace", "Pod", "Secret", "Service", "ServiceAccount"),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch": ("CronJob", "Job"),
    "coordination.k8s.io": ("Lease",),
    "discovery.k8s.io": ("EndpointSlice",),
    "policy": ("PodDisruptionBudget",),
}
"""By group, kinds whose URL is known without discovery: of version v1, with a regular plural."""


class Resources:
    """The kinds of one API server.

    :param get: requests a path of discovery; its second argument is the purpose, for messages. Its
        errors are not caught.
    """

    def __init__(self, get: Callable[[str, str], Json]) -> None:
        self._get = get
        self._discovered: dict[tuple[str, str], tuple[str, str, bool]] = {}

    def object_path(self, key: ObjectKey) -> str:
        """Return the path of an object's URL."""
        return f"{self.collection_path(Collection.of(key))}/{key.name}"

    def collection_path(self, collection: Collection) -> str:
        """Return the path of the URL where objects are listed and created."""
        version, plural = self.names(collection.group, collection.kind)
        is_namespaced = self._is_namespaced(collection.group, collection.kind)
        prefix = f"/apis/{version}" if collection.group else f"/api/{version}"
        if collection.namespace and is_namespaced:
            prefix += f"/namespaces/{collection.namespace}"
        return f"{prefix}/{plural}"

    def names(self, group: str, kind: str) -> tuple[str, str]:
        """Return (apiVersion, plural) of a kind.

        :raises ClusterError: with status 404: the cluster does not serve it.
        """
        if kind in _KNOWN.get(group, ()):
            return (f"{group}/v1" if group else "v1"), f"{kind.lower()}s"
        if (group, kind) not in self._discovered:
            self._discovered[group, kind] = self._discover(group, kind)
        version, plural, _ = self._discovered[group, kind]
        return version, plural

    def _is_namespaced(self, group: str, kind: str) -> bool:
        """Tell whether the objects of a kind, whose names are known, are in namespaces."""
        found = self._discovered.get((group, kind))
        return kind not in CLUSTER_SCOPED and (found is None or found[2])

    def _discover(self, group: str, kind: str) -> tuple[str, str, bool]:
        what = f"look up the kind {kind} of group {group or 'core'}"
        for version in self._versions(group, what):
            root = f"/apis/{version}" if group else f"/api/{version}"
            for resource in self._get(root, what)["resources"]:
                if resource["kind"] == kind and "/" not in resource["name"]:
                    return version, resource["name"], bool(resource.get("namespaced", True))
        raise ClusterError(f"{what}: the cluster does not serve it", status=404)

    def _versions(self, group: str, what: str) -> tuple[str, ...]:
        """Return the versions of a group, the preferred one first: not every kind is in that."""
        if not group:
            return ("v1",)
        found = self._get(f"/apis/{group}", what)
        versions = (found["preferredVersion"], *(found.get("versions") or ()))
        return tuple(dict.fromkeys(each["groupVersion"] for each in versions))
