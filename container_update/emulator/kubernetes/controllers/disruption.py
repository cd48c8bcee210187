# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets: how many pods may be evicted now."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.controllers.workloads.rollout import (
    replicas,
    scaled_value,
)
from container_update.emulator.kubernetes.objects import (
    condition_of,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    new_condition,
)
from container_update.emulator.kubernetes.selectors import matches

_SCALED = ("deployments", "replicasets", "statefulsets")


class DisruptionBudgets(Controller):
    """Keeps every budget's status up to date."""

    resource = "poddisruptionbudgets"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle budgets, pods, and the workloads that own pods."""
        return {
            "poddisruptionbudgets": self.enqueue,
            "pods": self._pod_changed,
            **dict.fromkeys(_SCALED, self._scale_changed),
        }

    def reconcile(self, budget: Json) -> None:
        """Count the budget's pods."""
        selector = budget["spec"].get("selector")
        pods = self.registry.list(
            "pods", budget["metadata"]["namespace"], lambda pod: matches(selector, labels_of(pod))
        )
        tops = (self._top_owner(pod) for pod in pods)
        owners = {top["metadata"]["uid"]: top for top in tops if top["kind"] != "Pod"}
        names = [self._resource(owner) for owner in owners.values()]
        unscaled = [name for name in names if name.split(".")[0] not in _SCALED]
        if unscaled and not isinstance(budget["spec"].get("minAvailable"), int):
            status = failed_status(budget, unscaled[0], stamp())
        else:
            scale = sum(map(replicas, owners.values()))
            status = budget_status(budget, pods, scale, stamp())
        self.write_status(budget, status)

    def _pod_changed(self, _event: str, pod: Json, _previous: Json | None) -> None:
        for budget in self.registry.list(self.resource, pod["metadata"]["namespace"]):
            if matches(budget["spec"].get("selector"), labels_of(pod)):
                self.queue.add(key_of(budget))

    def _scale_changed(self, event: str, obj: Json, previous: Json | None) -> None:
        if event == "MODIFIED" and previous is not None and replicas(obj) != replicas(previous):
            for budget in self.registry.list(self.resource, obj["metadata"]["namespace"]):
                self.queue.add(key_of(budget))

    def _resource(self, owner: Json) -> str:
        """Return ``daemonsets.apps`` for a DaemonSet."""
        ref = self.index.ref_of(owner["metadata"]["uid"])
        group, _, _ = owner["apiVersion"].rpartition("/")
        return f"{ref[0]}.{group}" if ref else ""

    def _top_owner(self, obj: Json) -> Json:
        """Return the last in the chain of owners; the pod itself if it has none."""
        owner = controller_of(obj)
        stored = self.stored_object(owner["uid"]) if owner is not None else None
        return obj if stored is None else self._top_owner(stored)


def budget_status(budget: Json, pods: list[Json], scale: int, now: str) -> Json:
    """Return the status of a budget over *pods*, whose workloads have *scale* replicas.

    A pod that was evicted and is not marked as deleted yet does not count as healthy.
    """
    spec, old = budget["spec"], budget.get("status", {})
    expected, desired = _demand(spec, len(pods), scale)
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    disrupted = {
        name: when
        for name, when in (old.get("disruptedPods") or {}).items()
        if name in by_name and not is_deleting(by_name[name])
    }
    healthy = sum(
        pod_state.is_ready(pod)
        and not is_deleting(pod)
        and pod["metadata"]["name"] not in disrupted
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status: Json = {
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [_condition(budget, _REASONS[allowed > 0], now)],
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return status


def failed_status(budget: Json, resource: str, now: str) -> Json:
    """Return the status of a budget that asks how many replicas a resource has that has no scale.

    Source: recorded of a budget over a DaemonSet.
    """
    message = f"{resource} does not implement the scale subresource"
    return {
        **dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 0),
        **budget.get("status", {}),
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": 0,
        "conditions": [_condition(budget, "SyncFailed", now, message)],
    }


_REASONS = {True: "SufficientPods", False: "InsufficientPods"}


def _demand(spec: Json, pods: int, scale: int) -> tuple[int, int]:
    """Return how many pods there should be, and how many of them have to be healthy."""
    if "maxUnavailable" in spec:
        return scale, max(0, scale - scaled_value(spec["maxUnavailable"], scale, up=True))
    minimum = spec.get("minAvailable", 1)
    if isinstance(minimum, int):
        return pods, minimum
    return scale, scaled_value(minimum, scale, up=True)


def _condition(budget: Json, reason: str, now: str, message: str = "") -> Json:
    kind, allowed = "DisruptionAllowed", str(reason == _REASONS[True])
    old = condition_of(budget, kind)
    since = old["lastTransitionTime"] if old and old["status"] == allowed else now
    generation = budget["metadata"]["generation"]
    return new_condition(kind, allowed, reason, message, since, observedGeneration=generation)
