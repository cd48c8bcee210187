"""Evictions: deletions of pods that ask the disruption budgets first."""

from __future__ import annotations

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.registry import Registry


def evict(
    registry: Registry, namespace: str, name: str, body: Json, *, dry_run: bool = False
) -> Json:
    """Delete the pod, or raise what the API server answers where a budget forbids it (429).

    *body*: the Eviction; its ``deleteOptions`` count. Returns the Status of the success.
    """
    pod = registry.require("pods", namespace, name)
    options = body.get("deleteOptions") or {}
    dry_run = dry_run or bool(options.get("dryRun"))
    if not _needs_no_permission(pod):
        _take_permission(registry, pod, dry_run)
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


def _needs_no_permission(pod: Json) -> bool:
    """A pod that serves nobody, or is on its way out, disrupts nothing."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _take_permission(registry: Registry, pod: Json, dry_run: bool) -> None:
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    budgets = [
        budget
        for budget in registry.list("poddisruptionbudgets", metadata["namespace"])
        if selectors.matches(budget["spec"].get("selector"), labels)
    ]
    if len(budgets) > 1:
        raise ApiError(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.",
        )
    if not budgets or (not _is_ready(pod) and _healthy_without_it(budgets[0])):
        return
    budget = budgets[0]
    status = budget.get("status", {})
    _check_budget(budget)
    if dry_run:
        return
    disrupted = {**status.get("disruptedPods", {}), metadata["name"]: clock.stamp()}
    allowed = status["disruptionsAllowed"] - 1
    changed = {**status, "disruptionsAllowed": allowed, "disruptedPods": disrupted}
    registry.update(
        "poddisruptionbudgets",
        metadata["namespace"],
        budget["metadata"]["name"],
        {**budget, "status": changed},
        subresource="status",
    )


def _healthy_without_it(budget: Json) -> bool:
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
        raise _refusal(cause, retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause["message"] = (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
        raise _refusal(cause)


def _refusal(cause: Json, retry_after: int | None = None) -> ApiError:
    details: Json = {"causes": [cause]}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, details, retry_after)


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def _mark_as_disrupted(registry: Registry, pod: Json) -> None:
    """The condition that tells a Job's controller why the pod went."""
    metadata, status = pod["metadata"], pod.get("status", {})
    condition = {
        "type": "DisruptionTarget",
        "observedGeneration": metadata.get("generation", 1),
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": clock.stamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    kept = [entry for entry in status.get("conditions", []) if entry["type"] != condition["type"]]
    changed = {**pod, "status": {**status, "conditions": [*kept, condition]}}
    registry.update("pods", metadata["namespace"], metadata["name"], changed, subresource="status")
