# SPDX-License-Identifier: Apache-2.0
"""The scheduler: it binds pods to the nodes that their selector and node affinity allow, in turn.

Resources, taints and affinities between pods are ignored. A pod that names another scheduler waits
for it, one whose claims are not bound for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Context, Controller, Handler
from container_update.emulator.kubernetes.controllers.volumes import claims_of
from container_update.emulator.kubernetes.objects import (
    condition_of,
    is_deleting,
    key_of,
    labels_of,
    new_condition,
)
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.selectors import matches

COMPONENT = "default-scheduler"
_SCHEDULED = "PodScheduled"


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
        """Bind the pod to a node, or say why there is none for it."""
        if not _needs_node(pod):
            return
        nodes = [node for node in self.registry.list("nodes") if _allows(node, pod)]
        text = self._unbound(pod) if nodes else self._no_node(pod)
        if text:
            self._note(pod, text)
            return
        node = nodes[next(self._turns) % len(nodes)]["metadata"]["name"]
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

    def _no_node(self, pod: Json) -> str:
        nodes = self.registry.list("nodes")
        if not nodes:
            return "no nodes available to schedule pods"
        others = sum(not may_run_on(pod["spec"], node) for node in nodes)
        counts = {
            "node(s) didn't match Pod's node affinity/selector": others,
            "node(s) were unschedulable": len(nodes) - others,
        }
        why = ", ".join(f"{number} {text}" for text, number in counts.items() if number)
        none = f"0/{len(nodes)} nodes are available"
        no_use = f"{len(nodes)} Preemption is not helpful for scheduling"
        return f"{none}: {why}. preemption: {none}: {no_use}."

    def _note(self, pod: Json, text: str) -> None:
        """Write the reason into the pod's status, once, and record an event."""
        known = condition_of(pod, _SCHEDULED)
        if known is None or known["message"] != text:
            entry = new_condition(_SCHEDULED, "False", "Unschedulable", text, stamp())
            conditions = pod["status"].get("conditions") or []
            others = [each for each in conditions if each["type"] != _SCHEDULED]
            self.write_status(pod, {**pod["status"], "conditions": [*others, entry]})
        self.record.warning(COMPONENT, pod, "FailedScheduling", text)

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


def _allows(node: Json, pod: Json) -> bool:
    """Return whether a pod may be bound to a node; one of a DaemonSet also where others may not."""
    is_closed = (node.get("spec") or {}).get("unschedulable") and required_node(pod) is None
    return not is_closed and may_run_on(pod["spec"], node)


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
