# SPDX-License-Identifier: Apache-2.0
"""Namespaces: what a new one contains, and how a deleted one is emptied."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.objects import is_deleting, new_condition

ROOT_CA = "kube-root-ca.crt"
_INITIAL_OBJECTS = {
    "serviceaccounts": {"metadata": {"name": "default"}},
    "configmaps": {
        "metadata": {"name": ROOT_CA},
        "data": {"ca.crt": "the certificate of the embedded cluster is in its kubeconfig"},
    },
}
"""What every namespace contains."""

_CONDITIONS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
     "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
     "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted",
     "All content successfully deleted, may be waiting on finalization"),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
     "All content-preserving finalizers finished"),
)  # fmt: skip
"""The conditions of a deleted namespace, all of them 'False': nothing prevents its removal."""


class Namespaces(Controller):
    """Fills and empties namespaces. Keys are ('', name)."""

    resource = "namespaces"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle namespaces, and every object that is removed from one."""
        return {**super().handlers(), "*": self._object_changed}

    def reconcile(self, namespace: Json) -> None:
        """Create what is missing; empty a deleted namespace, then finalize it."""
        if is_deleting(namespace):
            self._empty(namespace)
            return
        name = namespace["metadata"]["name"]
        for resource, body in _INITIAL_OBJECTS.items():
            if self.registry.get(resource, name, body["metadata"]["name"]) is None:
                self.registry.create(resource, name, body)

    def _object_changed(self, event: str, obj: Json, _previous: Json | None) -> None:
        namespace = obj["metadata"].get("namespace")
        if namespace and event == "DELETED":
            stored = self.registry.get(self.resource, "", namespace)
            initial = obj["metadata"]["name"] in {"default", ROOT_CA}
            if stored is not None and (initial or is_deleting(stored)):
                self.queue.add(("", namespace))

    def _empty(self, namespace: Json) -> None:
        name = namespace["metadata"]["name"]
        for ref, obj in self.index.in_namespace(name):
            # another deletion may have removed it meanwhile
            if not is_deleting(obj) and self.registry.get(*ref) is not None:
                self.registry.delete(*ref, propagation="Background")
        if not namespace["status"].get("conditions"):
            now = stamp()
            conditions = [
                new_condition(kind, "False", reason, message, now)
                for kind, reason, message in _CONDITIONS
            ]
            status = {**namespace["status"], "conditions": conditions}
            namespace = self.write_status(namespace, status)
        if not self.index.in_namespace(name):
            spec = {**namespace.get("spec", {}), "finalizers": []}
            self.registry.update(
                self.resource, "", name, {**namespace, "spec": spec}, subresource="finalize"
            )
