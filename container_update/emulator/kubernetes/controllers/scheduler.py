"""The scheduler: it binds pods to the nodes in turn.

A pod whose affinity names one node, like those of a DaemonSet, is bound to that. Resources,
selectors, taints and other affinities are ignored. One that names another scheduler waits for it,
one whose claims are not bound for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Context, Controller, Handler
from container_update.emulator.kubernetes.controllers.volumes import claims_of
from container_update.emulator.kubernetes.objects import is_deleting, key_of, labels_of
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.selectors import matches

COMPONENT = "default-scheduler"


class Scheduler(Controller):
    """Binds every pod to a node."""

    resource = "pods"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._turns = itertools.count()

    def handlers(self) -> Mapping[str, Handler]:
        """Handle pods; nodes and claims for the pods without a node."""
        return {
            "pods": self._pod_changed,
            "nodes": self._retry_waiting,
            "persistentvolumeclaims": self._retry_waiting,
        }

    def reconcile(self, pod: Json) -> None:
        """Bind the pod to a node."""
        if not _needs_node(pod):
            return
        node = self._node_for(pod)
        text = "0 nodes are available for this pod." if node is None else self._unbound(pod)
        if node is None or text:
            self.record.warning(COMPONENT, pod, "FailedScheduling", text)
            return
        self._bind(pod, node)
        text = f"Successfully assigned {'/'.join(key_of(pod))} to {node}"
        self.record.normal(COMPONENT, pod, "Scheduled", text)

    def _pod_changed(self, event: str, pod: Json, _previous: Json | None) -> None:
        if event == "ADDED" and _needs_node(pod):
            self.queue.add(key_of(pod))

    def _retry_waiting(self, event: str, _node: Json, _previous: Json | None) -> None:
        if event != "DELETED":
            for pod in self.registry.list("pods", selector=_needs_node):
                self.queue.add(key_of(pod))

    def _node_for(self, pod: Json) -> str | None:
        required = required_node(pod)
        nodes = [
            node["metadata"]["name"]
            for node in self.registry.list("nodes")
            if required is not None or not node.get("spec", {}).get("unschedulable")
        ]
        if required is not None:
            return required if required in nodes else None
        return nodes[next(self._turns) % len(nodes)] if nodes else None

    def _unbound(self, pod: Json) -> str:
        """Return what is wrong with the claims of a pod, '' where all are bound."""
        namespace = pod["metadata"]["namespace"]
        for name in claims_of(pod):
            claim = self.registry.get("persistentvolumeclaims", namespace, name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim["status"].get("phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _bind(self, pod: Json, node: str) -> None:
        body = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        self.registry.update("pods", *key_of(pod), body, subresource="binding")


def _needs_node(pod: Json) -> bool:
    spec = pod["spec"]
    is_ours = spec.get("schedulerName", COMPONENT) == COMPONENT
    return is_ours and not spec.get("nodeName") and not is_deleting(pod) and not is_finished(pod)


def required_node(pod: Json) -> str | None:
    """Return the one node that the pod's affinity names, or None."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field in term.get("matchFields") or []:
            if field["key"] == "metadata.name" and len(field["values"]) == 1:
                return str(field["values"][0])
    return None


def may_run_on(spec: Json, node: Json) -> bool:
    """Return whether a pod spec's node selector and required affinity allow a node."""
    labels = labels_of(node)
    if not matches({"matchLabels": spec.get("nodeSelector") or {}}, labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        matches({"matchExpressions": term.get("matchExpressions")}, labels)
        and matches({"matchExpressions": term.get("matchFields")}, fields)
        for term in required.get("nodeSelectorTerms") or []
    )
