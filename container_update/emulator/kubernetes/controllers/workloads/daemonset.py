# SPDX-License-Identifier: Apache-2.0
"""DaemonSets: one pod on each node that the template's node selector and affinity allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Context, Handler
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.scheduler import may_run_on, required_node
from container_update.emulator.kubernetes.controllers.workloads.revisions import (
    REVISION_LABEL,
    Revisions,
)
from container_update.emulator.kubernetes.controllers.workloads.rollout import scaled_value
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.objects import (
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
)
from container_update.emulator.kubernetes.rules.defaults import TEMPLATE_GENERATION

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""The taints of a node that its daemon pods tolerate."""


@dataclass(frozen=True)
class _NodePods:
    """A node's daemon pods, oldest first, without those that are deleted and finished."""

    name: str
    old: list[Json]
    new: list[Json]
    """Those of the present template."""

    @property
    def pods(self) -> list[Json]:
        """All of them, oldest first."""
        return sorted(
            [*self.old, *self.new], key=lambda pod: str(pod["metadata"]["creationTimestamp"])
        )


class DaemonSets(ClaimingController):
    """Keeps the pods of every DaemonSet, and updates them."""

    resource, kind, owned = "daemonsets", "DaemonSet", "pods"
    component = "daemonset-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._revisions = Revisions(context.registry, context.index, REVISION_LABEL)

    def handlers(self) -> Mapping[str, Handler]:
        """Handle DaemonSets, pods and nodes."""
        return {**super().handlers(), "nodes": self._node_changed}

    def reconcile(self, owner: Json) -> None:
        """Create and delete pods node by node, continue the rollout, write the status."""
        if is_deleting(owner):
            return
        revision = self._revisions.latest(owner)
        digest = self._revisions.hash_of(revision)
        pods = self.claim(owner)
        every = self._by_node(pods, digest)
        allowed = self._allowed_nodes(owner)
        nodes = [node for node in every if node.name in allowed]
        misplaced = [node for node in every if node.pods and node.name not in allowed]
        try:
            for pod in (pod for node in misplaced for pod in node.pods):
                self._delete(owner, pod)
            for node in nodes:
                self._manage(owner, node, digest)
            if owner["spec"].get("updateStrategy", {}).get("type", "RollingUpdate") != "OnDelete":
                self._roll(owner, nodes, digest)
            in_use = {
                f"{owner['metadata']['name']}-{labels_of(pod).get(REVISION_LABEL)}" for pod in pods
            }
            self._revisions.clean_up(owner, in_use | {revision["metadata"]["name"]})
        finally:
            self.write_status(owner, daemon_status(owner, nodes, len(misplaced)))
        self.requeue_when_available(owner, pods)

    def _node_changed(self, event: str, node: Json, previous: Json | None) -> None:
        if event != "MODIFIED" or labels_of(node) != labels_of(previous or node):
            for owner in self.registry.list(self.resource):
                self.queue.add(key_of(owner))

    def _allowed_nodes(self, owner: Json) -> set[str]:
        """Return the names of the nodes that are to have a pod."""
        spec = owner["spec"]["template"]["spec"]
        return {
            node["metadata"]["name"]
            for node in self.registry.list("nodes")
            if may_run_on(spec, node)
        }

    def _by_node(self, pods: list[Json], digest: str) -> list[_NodePods]:
        nodes = {
            node["metadata"]["name"]: _NodePods(node["metadata"]["name"], [], [])
            for node in self.registry.list("nodes")
        }
        for pod in pods:
            if pod_state.is_finished(pod) and is_deleting(pod):
                continue
            node = nodes.get(pod["spec"].get("nodeName") or required_node(pod) or "")
            if node is not None:
                is_new = labels_of(pod).get(REVISION_LABEL) == digest
                (node.new if is_new else node.old).append(pod)
        return list(nodes.values())

    def _manage(self, owner: Json, node: _NodePods, digest: str) -> None:
        """Create a node's missing pod; delete finished and surplus ones."""
        if not node.pods:
            self._create(owner, node.name, digest)
            return
        kept = []
        for pod in node.pods:
            if pod_state.is_finished(pod):
                text = f"Found failed daemon pod {_full_name(pod)} on node {node.name}"
                self.record.warning(self.component, owner, "FailedDaemonPod", text)
                self._delete(owner, pod)
            elif not is_deleting(pod):
                kept.append(pod)
        surplus = (
            [*_after_first(kept, node.old), *_after_first(kept, node.new)]
            if _max_surge(owner, 1)
            else kept[1:]
        )
        for pod in surplus:
            self._delete(owner, pod)

    def _roll(self, owner: Json, nodes: list[_NodePods], digest: str) -> None:
        surge = _max_surge(owner, len(nodes))
        if surge:
            self._roll_with_surge(owner, nodes, digest, surge)
        else:
            self._roll_without_surge(owner, nodes)

    def _roll_without_surge(self, owner: Json, nodes: list[_NodePods]) -> None:
        """Delete old pods: all unavailable ones, and as many others as may be unavailable."""
        needed = owner["spec"].get("minReadySeconds", 0)
        unavailable, candidates = 0, []
        for node in nodes:
            available = [pod for pod in node.pods if pod_state.is_available(pod, needed)]
            if not available or is_deleting(available[0]):
                unavailable += 1
            for pod in node.old:
                if is_deleting(pod):
                    continue
                if pod_state.is_available(pod, needed):
                    candidates.append(pod)
                else:
                    self._delete(owner, pod)
        room = _max_unavailable(owner, len(nodes)) - unavailable
        for pod in candidates[: max(0, room)]:
            self._delete(owner, pod)

    def _roll_with_surge(
        self, owner: Json, nodes: list[_NodePods], digest: str, surge: int
    ) -> None:
        """Create new pods beside old ones, and delete an old one when the new one is available."""
        needed = owner["spec"].get("minReadySeconds", 0)
        surging, waiting = 0, []
        for node in nodes:
            old = [pod for pod in node.old if not is_deleting(pod)]
            if node.new and not any(pod_state.is_available(pod, needed) for pod in node.new):
                surging += bool(old)
            elif node.new:
                for pod in old:
                    self._delete(owner, pod)
            elif old and pod_state.is_available(old[0], needed):
                waiting.append(node)
            elif old:
                self._create(owner, node.name, digest)
        for node in waiting[: max(0, surge - surging)]:
            self._create(owner, node.name, digest)

    def _create(self, owner: Json, node: str, digest: str) -> None:
        self.create_pod(owner, daemon_pod(owner, node, digest))

    def _delete(self, owner: Json, pod: Json) -> None:
        if not is_deleting(self.registry.get("pods", *key_of(pod)) or pod):
            self.delete_pod(owner, pod)


def daemon_pod(owner: Json, node: str, digest: str) -> Json:
    """Return the pod for *node*: its affinity names the node, and it tolerates its taints."""
    template = owner["spec"]["template"]
    generation = annotations_of(owner).get(TEMPLATE_GENERATION, "1")
    labels = {REVISION_LABEL: digest, "pod-template-generation": generation}
    pod = pod_of(owner, template, labels)
    spec = pod["spec"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = spec.get("affinity") or {}
    tolerations = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": effect}
        for taint, effect in _TOLERATED
    ]
    pod["spec"] = {
        **spec,
        "affinity": {
            **affinity,
            "nodeAffinity": {
                **(affinity.get("nodeAffinity") or {}),
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            },
        },
        "tolerations": [*(spec.get("tolerations") or []), *tolerations],
    }
    return pod


def daemon_status(owner: Json, nodes: list[_NodePods], misplaced: int) -> Json:
    """Return the status of a DaemonSet. Of several pods on a node only the oldest counts.

    :param misplaced: how many other nodes still have a pod.
    """
    needed = owner["spec"].get("minReadySeconds", 0)
    counted = [(node, node.pods[0]) for node in nodes if node.pods]
    available = sum(pod_state.is_available(pod, needed) for _, pod in counted)
    status = {
        "currentNumberScheduled": len(counted),
        "numberMisscheduled": misplaced,
        "desiredNumberScheduled": len(nodes),
        "numberReady": sum(pod_state.is_ready(pod) for _, pod in counted),
        "observedGeneration": owner["metadata"]["generation"],
    }
    more = {
        "updatedNumberScheduled": sum(pod in node.new for node, pod in counted),
        "numberAvailable": available,
        "numberUnavailable": len(nodes) - available,
    }
    return {**status, **{name: count for name, count in more.items() if count}}


def _after_first(pods: list[Json], group: list[Json]) -> list[Json]:
    return [pod for pod in pods if pod in group][1:]


def _rolling(owner: Json) -> Json:
    return owner["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}


def _max_surge(owner: Json, nodes: int) -> int:
    return scaled_value(_rolling(owner).get("maxSurge", 0), nodes, up=True)


def _max_unavailable(owner: Json, nodes: int) -> int:
    return scaled_value(_rolling(owner).get("maxUnavailable", 1), nodes, up=True)


def _full_name(pod: Json) -> str:
    return "/".join(key_of(pod))
