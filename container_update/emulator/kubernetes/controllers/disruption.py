"""Disruption budgets: how many pods may be evicted now."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Controller, Handler, Key, key_of
from container_update.emulator.kubernetes.controllers.workloads.rollout import share
from container_update.emulator.kubernetes.ownership import controller_of, is_deleting, labels_of
from container_update.emulator.kubernetes.selectors import matches

_SCALED = ("deployments", "replicasets", "statefulsets")


class DisruptionBudgets(Controller):
    """Keeps every budget's status true."""

    resource = "poddisruptionbudgets"

    def handlers(self) -> Mapping[str, Handler]:
        """Its own objects, pods, and what has a scale."""
        return {
            "poddisruptionbudgets": self.enqueue,
            "pods": self._pod_changed,
            **dict.fromkeys(_SCALED, self._scale_changed),
        }

    def reconcile(self, key: Key) -> None:
        """Count the budget's pods."""
        budget = self.registry.get(self.resource, *key)
        if budget is None:
            return
        selector = budget["spec"].get("selector")
        pods = self.registry.list("pods", key[0], lambda pod: matches(selector, labels_of(pod)))
        self.write_status(budget, budget_status(budget, pods, self._scale_of(pods), stamp()))

    def _pod_changed(self, _event: str, pod: Json, _previous: Json | None) -> None:
        for budget in self.registry.list(self.resource, pod["metadata"]["namespace"]):
            if matches(budget["spec"].get("selector"), labels_of(pod)):
                self.queue.add(key_of(budget))

    def _scale_changed(self, event: str, obj: Json, previous: Json | None) -> None:
        if event == "MODIFIED" and previous is not None and _size(obj) != _size(previous):
            for budget in self.registry.list(self.resource, obj["metadata"]["namespace"]):
                self.queue.add(key_of(budget))

    def _scale_of(self, pods: list[Json]) -> int:
        """How many pods the controllers of *pods* are asked for together."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = self._top(pod)
            sizes[owner["metadata"]["uid"]] = _size(owner)
        return sum(sizes.values())

    def _top(self, obj: Json) -> Json:
        """The last in the chain of controllers; the pod itself where nobody controls it."""
        owner = controller_of(obj)
        ref = self.index.where(owner["uid"]) if owner is not None else None
        stored = self.registry.get(*ref) if ref is not None else None
        return obj if stored is None else self._top(stored)


def _size(obj: Json) -> int:
    size: int = obj["spec"].get("replicas", 1)
    return size


def budget_status(budget: Json, pods: list[Json], scale: int, now: str) -> Json:
    """The status of a budget over *pods*, whose controllers ask for *scale* of them.

    A pod that was evicted and is not yet marked as being deleted counts as lost.
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
        "conditions": _conditions(old.get("conditions") or [], allowed > 0, budget, now),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return status


def _demand(spec: Json, pods: int, scale: int) -> tuple[int, int]:
    """How many pods there should be, and how many of them have to be healthy."""
    if "maxUnavailable" in spec:
        return scale, max(0, scale - share(spec["maxUnavailable"], scale, up=True))
    least = spec.get("minAvailable", 1)
    if isinstance(least, int):
        return pods, least
    return scale, share(least, scale, up=True)


def _conditions(old: list[Json], allowed: bool, budget: Json, now: str) -> list[Json]:
    before = next((entry for entry in old if entry["type"] == "DisruptionAllowed"), None)
    same = before is not None and before["status"] == str(allowed)
    return [
        {
            "type": "DisruptionAllowed",
            "status": str(allowed),
            "observedGeneration": budget["metadata"]["generation"],
            "lastTransitionTime": before["lastTransitionTime"] if before and same else now,
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
        }
    ]
