# SPDX-License-Identifier: Apache-2.0
"""What the kubelets keep of immutable ConfigMaps and Secrets.

A kubelet reads an immutable object once, and gives new pods what it has read as long as any pod on
its node refers to that name, also where the object was deleted and created again. Source:
kubernetes/kubernetes#119733; Kubernetes documentation, "Immutable ConfigMaps".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.kubelet.configuration import references
from container_update.emulator.kubernetes.registry import Registry
from container_update.emulator.kubernetes.rules.admission import Lookup


class _Place(NamedTuple):
    """The name of an object, as the kubelet of one node sees it."""

    node: str
    resource: str
    namespace: str
    name: str


@dataclass(frozen=True)
class ImmutableCache:
    """The immutable objects that the kubelets have read."""

    registry: Registry
    _users: dict[_Place, set[str]] = field(default_factory=dict)
    """The UIDs of the pods that refer to a name."""
    _read: dict[_Place, Json] = field(default_factory=dict)

    def begin(self, pod: Json) -> None:
        """Count the pod among the users of all names that it refers to."""
        for place in _places(pod):
            self._users.setdefault(place, set()).add(pod["metadata"]["uid"])

    def end(self, pod: Json) -> None:
        """Count the pod no longer; forget what no other pod of its node refers to."""
        for place in _places(pod):
            users = self._users.get(place, set())
            users.discard(pod["metadata"]["uid"])
            if not users:
                self._users.pop(place, None)
                self._read.pop(place, None)

    def lookup(self, pod: Json) -> Lookup:
        """Return how the pod's kubelet reads objects."""

        def read(resource: str, namespace: str, name: str) -> Json | None:
            place = _Place(pod["spec"]["nodeName"], resource, namespace, name)
            if place in self._read:
                return self._read[place]
            obj = self.registry.get(resource, namespace, name)
            if obj is not None and obj.get("immutable") and place in self._users:
                self._read[place] = obj
            return obj

        return read


def _places(pod: Json) -> list[_Place]:
    node, namespace = pod["spec"]["nodeName"], pod["metadata"]["namespace"]
    return [_Place(node, resource, namespace, name) for resource, name in references(pod)]
