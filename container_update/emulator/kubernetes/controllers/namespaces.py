"""Namespaces: what a new one holds from the start, and how a deleted one is emptied."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler, Key
from container_update.emulator.kubernetes.controllers.index import Ref
from container_update.emulator.kubernetes.ownership import is_deleting

ROOT_CA = "kube-root-ca.crt"
_GIVEN = {
    "serviceaccounts": {"metadata": {"name": "default"}},
    "configmaps": {
        "metadata": {"name": ROOT_CA},
        "data": {"ca.crt": "the certificate of the embedded cluster is in its kubeconfig"},
    },
}
"""What every namespace holds."""

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
"""What a namespace tells of its deletion, all of it 'False': nothing stands in the way."""


class Namespaces(Controller):
    """Fills and empties namespaces. Keys are ('', name)."""

    resource = "namespaces"

    def handlers(self) -> Mapping[str, Handler]:
        """Namespaces, and whatever goes from one."""
        return {"namespaces": self.enqueue, "*": self._something_changed}

    def reconcile(self, key: Key) -> None:
        """Add what is missing; in a deleted one, delete everything, then finish it."""
        namespace = self.registry.get(self.resource, *key)
        if namespace is None:
            return
        if is_deleting(namespace):
            self._empty(namespace)
            return
        for resource, body in _GIVEN.items():
            if self.registry.get(resource, key[1], body["metadata"]["name"]) is None:
                self.registry.create(resource, key[1], body)

    def _something_changed(self, event: str, obj: Json, _previous: Json | None) -> None:
        namespace = obj["metadata"].get("namespace")
        if namespace and event == "DELETED":
            stored = self.registry.get(self.resource, "", namespace)
            given = obj["metadata"]["name"] in {"default", ROOT_CA}
            if stored is not None and (given or is_deleting(stored)):
                self.queue.add(("", namespace))

    def _empty(self, namespace: Json) -> None:
        name = namespace["metadata"]["name"]
        for ref, obj in self.index.inside(name):
            if not is_deleting(obj) and self._is_there(ref):
                self.registry.delete(*ref, propagation="Background")
        if not namespace["status"].get("conditions"):
            status = {**namespace["status"], "conditions": _conditions()}
            namespace = self.write_status(namespace, status)
        if not self.index.inside(name):
            spec = {**namespace.get("spec", {}), "finalizers": []}
            self.registry.update(
                self.resource, "", name, {**namespace, "spec": spec}, subresource="finalize"
            )

    def _is_there(self, ref: Ref) -> bool:
        """It was not deleted meanwhile with something else."""
        return self.registry.get(*ref) is not None


def _conditions() -> list[Json]:
    now = stamp()
    return [
        {
            "type": kind,
            "status": "False",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in _CONDITIONS
    ]
