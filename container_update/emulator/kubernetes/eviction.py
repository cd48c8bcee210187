# SPDX-License-Identifier: Apache-2.0
"""Evictions: deletions of pods that disruption budgets can forbid."""

from __future__ import annotations

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state, selectors
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.objects import (
    is_deleting,
    key_of,
    labels_of,
    new_condition,
)
from container_update.emulator.kubernetes.registry import Registry


def evict(
    registry: Registry, namespace: str, name: str, body: Json, *, dry_run: bool = False
) -> Json:
    """Delete the pod.

    :param body: the Eviction; its ``deleteOptions`` are used.
    :returns: the Status object of the success.
    :raises ApiError: 429 if a budget forbids it, 404 without such a pod.
    """
    pod = registry.require("pods", namespace, name)
    options = body.get("deleteOptions") or {}
    dry_run = dry_run or bool(options.get("dryRun"))
    if not _is_harmless(pod):
        _use_budget(registry, pod, dry_run)
        if not dry_run:
            _mark_as_disrupted(registry, pod)
    preconditions = options.get("preconditions") or {}
    registry.delete(
        "pods",
        namespace,
        name,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        grace_seconds=options.get("gracePeriodSeconds"),
        dry_run=dry_run,
    )
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _is_harmless(pod: Json) -> bool:
    """Return whether no budget is asked: the pod does not run, or is deleted already."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or is_deleting(pod)


def _use_budget(registry: Registry, pod: Json, dry_run: bool) -> None:
    namespace, name = key_of(pod)
    budgets = [
        budget
        for budget in registry.list("poddisruptionbudgets", namespace)
        if selectors.matches(budget["spec"].get("selector"), labels_of(pod))
    ]
    if len(budgets) > 1:
        raise ApiError(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.",
        )
    if not budgets or (not pod_state.is_ready(pod) and _ignores_unready(budgets[0])):
        return
    budget = budgets[0]
    status = budget.get("status", {})
    _check_budget(budget)
    if dry_run:
        return
    disrupted = {**status.get("disruptedPods", {}), name: clock.stamp()}
    allowed = status["disruptionsAllowed"] - 1
    changed = {**status, "disruptionsAllowed": allowed, "disruptedPods": disrupted}
    body = {**budget, "status": changed}
    registry.update("poddisruptionbudgets", *key_of(budget), body, subresource="status")


def _ignores_unready(budget: Json) -> bool:
    """Return whether the budget lets pods go that are not ready."""
    status = budget.get("status", {})
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = int(status.get("desiredHealthy", 0))
    return desired > 0 and int(status.get("currentHealthy", 0)) >= desired


def _check_budget(budget: Json) -> None:
    status, name = budget.get("status", {}), budget["metadata"]["name"]
    cause = {"reason": "DisruptionBudget"}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        cause["message"] = f"The disruption budget {name} is still being processed by the server."
        raise _budget_error(cause, retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause["message"] = (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
        raise _budget_error(cause)


def _budget_error(cause: Json, retry_after: int | None = None) -> ApiError:
    details: Json = {"causes": [cause]}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, details, retry_after)


def _mark_as_disrupted(registry: Registry, pod: Json) -> None:
    """Set the condition from which a Job's controller learns why the pod was deleted."""
    kind, status = "DisruptionTarget", pod.get("status", {})
    condition = new_condition(
        kind, "True", "EvictionByEvictionAPI", "Eviction API: evicting", clock.stamp(),
        observedGeneration=pod["metadata"].get("generation", 1), lastProbeTime=None,
    )  # fmt: skip
    others = [entry for entry in status.get("conditions", []) if entry["type"] != kind]
    changed = {**pod, "status": {**status, "conditions": [*others, condition]}}
    registry.update("pods", *key_of(pod), changed, subresource="status")
