"""ReplicaSets: as many pods as asked for.

The status tells what the controller saw before it acted, as the real one's does: after a scale-up
it first says that the new generation was seen, and counts the new pods one look later.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.base import Handler, Key, key_of
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.ownership import is_deleting, labels_of
from container_update.emulator.kubernetes.selectors import matches

COMPONENT = "replicaset-controller"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets(ClaimingController):
    """Keeps every ReplicaSet at its number of pods."""

    resource, kind, owned = "replicasets", "ReplicaSet", "pods"

    def handlers(self) -> Mapping[str, Handler]:
        """Its own objects, and pods."""
        return {"replicasets": self.enqueue, "pods": self.owned_changed}

    def reconcile(self, key: Key) -> None:
        """Create what is missing, delete what is too much, then tell what was found."""
        owner = self.registry.get(self.resource, *key)
        if owner is None:
            return
        pods = self.claim(owner)
        active = [pod for pod in pods if pod_state.is_active(pod)]
        failure = None if is_deleting(owner) else self._manage(owner, active)
        self.write_status(owner, replica_status(owner, pods, active, failure))
        self.look_again_when_available(key, owner, active)

    def _manage(self, owner: Json, active: list[Json]) -> str | None:
        """Bring the number of pods to what is asked for; the reason where the server refuses."""
        missing = owner["spec"].get("replicas", 1) - len(active)
        try:
            if missing > 0:
                for _ in range(missing):
                    self._create(owner)
            elif missing < 0:
                for pod in deletion_order(active)[:-missing]:
                    self._delete(owner, pod)
        except ApiError as error:
            self.record.warning(COMPONENT, owner, "FailedCreate", f"Error creating: {error}")
            self.queue.add_after(key_of(owner), 1.0)
            return error.message
        return None

    def _create(self, owner: Json) -> None:
        namespace = owner["metadata"]["namespace"]
        pod = self.registry.create("pods", namespace, pod_of(owner, owner["spec"]["template"]))
        name = pod["metadata"]["name"]
        self.record.normal(COMPONENT, owner, "SuccessfulCreate", f"Created pod: {name}")

    def _delete(self, owner: Json, pod: Json) -> None:
        namespace, name = key_of(pod)
        self.registry.delete("pods", namespace, name, uid=pod["metadata"]["uid"])
        self.record.normal(COMPONENT, owner, "SuccessfulDelete", f"Deleted pod: {name}")


def deletion_order(pods: list[Json]) -> list[Json]:
    """The pods, those first whose loss matters least.

    The order is documented with the ReplicaSet: not yet on a node, pending, not ready, cheaper to
    delete, more of them on the same node, ready for a shorter time, more restarts, younger.
    """
    on_node: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        on_node[node] = on_node.get(node, 0) + 1

    def loss(pod: Json) -> tuple[object, ...]:
        ready = pod_state.condition(pod, "Ready")
        annotations = pod["metadata"].get("annotations") or {}
        node = pod["spec"].get("nodeName", "")
        since = ready["lastTransitionTime"] if ready and ready["status"] == "True" else ""
        return (
            bool(node),
            ("Pending", "Unknown", "Running").index(pod_state.phase(pod)),
            bool(since),
            int(annotations.get(DELETION_COST, 0)),
            -on_node[node],
            _Descending(since),
            -pod_state.restarts(pod),
            _Descending(pod["metadata"]["creationTimestamp"]),
        )

    return sorted(pods, key=loss)


class _Descending(str):
    """A text that sorts the other way round."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def replica_status(
    owner: Json, pods: list[Json], active: list[Json], failure: str | None = None
) -> Json:
    """The status of a ReplicaSet with these pods.

    :param pods: all of its pods.
    :param active: those that count as replicas.
    :param failure: why the server refused a pod, where it did.
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
    if before and before[0]["message"] == failure:
        return conditions
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": stamp(),
        "reason": "FailedCreate",
        "message": failure,
    }
    return [*others, condition]
