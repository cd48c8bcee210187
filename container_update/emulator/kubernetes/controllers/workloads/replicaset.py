# SPDX-License-Identifier: Apache-2.0
"""ReplicaSets: a number of equal pods.

As with the real controller, the status is that of before it acted: after a scale-up the first one
only has the new generation, and the next one counts the new pods.
"""

from __future__ import annotations

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.objects import (
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    new_condition,
)
from container_update.emulator.kubernetes.selectors import matches

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets(ClaimingController):
    """Keeps every ReplicaSet at its number of pods."""

    resource, kind, owned = "replicasets", "ReplicaSet", "pods"
    component = "replicaset-controller"

    def reconcile(self, owner: Json) -> None:
        """Create or delete pods, then write the status."""
        pods = self.claim(owner)
        active = [pod for pod in pods if pod_state.is_active(pod)]
        failure = None if is_deleting(owner) else self._manage(owner, active)
        self.write_status(owner, replica_status(owner, pods, active, failure))
        self.requeue_when_available(owner, active)

    def _manage(self, owner: Json, active: list[Json]) -> str | None:
        """Create missing or delete surplus pods; return the message of a failure, or None."""
        missing = owner["spec"].get("replicas", 1) - len(active)
        try:
            if missing > 0:
                for _ in range(missing):
                    self.create_pod(owner, pod_of(owner, owner["spec"]["template"]))
            elif missing < 0:
                for pod in deletion_order(active)[:-missing]:
                    self.delete_pod(owner, pod)
        except ApiError as error:
            self.queue.add_after(key_of(owner), 1.0)
            return error.message
        return None


def deletion_order(pods: list[Json]) -> list[Json]:
    """Return the pods in the order in which surplus ones are deleted.

    The ReplicaSet's documentation gives the order: not yet on a node, pending, not ready, cheaper
    to delete, more of them on the same node, ready for a shorter time, more restarts, younger.
    """
    on_node: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        on_node[node] = on_node.get(node, 0) + 1

    def rank(pod: Json) -> tuple[object, ...]:
        node, since = pod["spec"].get("nodeName", ""), pod_state.ready_since(pod)
        return (
            bool(node),
            ("Pending", "Unknown", "Running").index(pod_state.phase(pod)),
            bool(since),
            int(annotations_of(pod).get(DELETION_COST, 0)),
            -on_node[node],
            _Descending(since),
            -pod_state.restarts(pod),
            _Descending(pod["metadata"]["creationTimestamp"]),
        )

    return sorted(pods, key=rank)


class _Descending(str):
    """A text that sorts in descending order."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def replica_status(
    owner: Json, pods: list[Json], active: list[Json], failure: str | None = None
) -> Json:
    """Return the status of a ReplicaSet.

    :param pods: all of its pods.
    :param active: those that count as replicas.
    :param failure: the message of the server that refused a pod; None: it refused none.
    """
    spec, old = owner["spec"], owner.get("status", {})
    template_labels = {"matchLabels": spec["template"]["metadata"].get("labels") or {}}
    needed = spec.get("minReadySeconds", 0)
    counts = {
        "fullyLabeledReplicas": sum(matches(template_labels, labels_of(pod)) for pod in active),
        "readyReplicas": sum(map(pod_state.is_ready, active)),
        "availableReplicas": sum(pod_state.is_available(pod, needed) for pod in active),
    }
    status: Json = {"replicas": len(active)}
    status.update({name: count for name, count in counts.items() if count})
    status["terminatingReplicas"] = sum(map(pod_state.is_terminating, pods))
    status["observedGeneration"] = owner["metadata"]["generation"]
    conditions = _failure_conditions(old.get("conditions") or [], failure)
    if conditions:
        status["conditions"] = conditions
    return status


def _failure_conditions(conditions: list[Json], failure: str | None) -> list[Json]:
    others = [entry for entry in conditions if entry["type"] != "ReplicaFailure"]
    if failure is None:
        return others
    before = [entry for entry in conditions if entry["type"] == "ReplicaFailure"]
    if before:
        return conditions  # with the message of the first failure, as long as it lasts
    return [*others, new_condition("ReplicaFailure", "True", "FailedCreate", failure, stamp())]
