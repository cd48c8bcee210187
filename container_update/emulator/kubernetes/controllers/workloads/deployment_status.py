# SPDX-License-Identifier: Apache-2.0
"""A Deployment's status: its counts and its conditions. Pure.

Reasons, texts and the order of conditions are as recorded from the real controller.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.workloads.rollout import (
    limits,
    replicas,
    total_replicas,
    total_status,
)
from container_update.emulator.kubernetes.objects import condition_of, new_condition

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NEW_SET_CREATED = "NewReplicaSetCreated"
NEW_SET_FOUND = "FoundNewReplicaSet"
NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
UPDATED = "ReplicaSetUpdated"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
TIMED_OUT = "ProgressDeadlineExceeded"


def condition(kind: str, status: str, reason: str, message: str, now: str) -> Json:
    """Return a new condition."""
    return new_condition(kind, status, reason, message, now, lastUpdateTime=now)


def with_condition(status: Json, new: Json, *, renew: bool = False) -> Json:
    """Return the status with that condition at the end of its list.

    :param renew: also replace a condition of the same status and reason, which else stays.
    """
    old = condition_of({"status": status}, new["type"])
    if old is not None and old["status"] == new["status"]:
        if old["reason"] == new["reason"] and not renew:
            return status
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return {**status, "conditions": [*without_condition(status, new["type"])["conditions"], new]}


def without_condition(status: Json, kind: str) -> Json:
    """Return the status without that condition; ``conditions`` may become empty."""
    kept = [entry for entry in status.get("conditions", []) if entry["type"] != kind]
    return {**status, "conditions": kept}


def counts(deployment: Json, new: Json | None, sets: list[Json], now: str) -> Json:
    """Return the status with the counts of the ReplicaSets and the Available condition.

    :param sets: all ReplicaSets, *new* included.
    """
    old = deployment.get("status", {})
    available = total_status(sets, "availableReplicas")
    numbers = {
        "replicas": total_status(sets, "replicas"),
        "updatedReplicas": total_status([new], "replicas") if new is not None else 0,
        "readyReplicas": total_status(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total_replicas(sets) - available),
    }
    status: Json = {"observedGeneration": deployment["metadata"]["generation"]}
    status.update({name: number for name, number in numbers.items() if number})
    status["terminatingReplicas"] = total_status(sets, "terminatingReplicas")
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    status["conditions"] = list(old.get("conditions", []))
    return with_condition(status, _availability(deployment, available, now))


def progress_status(
    deployment: Json, new: Json | None, sets: list[Json], late: bool, now: str
) -> Json:
    """Return the status of a Deployment in a rollout, with all conditions.

    :param late: there was no progress within the progress deadline.
    """
    status = counts(deployment, new, sets, now)
    if not has_deadline(deployment):
        status = without_condition(status, PROGRESSING)
    elif not _is_settled(status, condition_of(deployment, PROGRESSING)):
        status = _with_progress(deployment, new, status, late, now)
    return _with_failure(status, sets, now)


def has_deadline(deployment: Json) -> bool:
    """Return whether a progress deadline is set (the greatest number means none)."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return seconds is not None and seconds != 2**31 - 1


def is_complete(deployment: Json, status: Json) -> bool:
    """Return whether all pods are new and available, and there are no others."""
    desired, observed = replicas(deployment), int(status.get("observedGeneration", 0))
    return observed >= deployment["metadata"]["generation"] and all(
        status.get(name, 0) == desired
        for name in ("updatedReplicas", "replicas", "availableReplicas")
    )


def _availability(deployment: Json, available: int, now: str) -> Json:
    if available >= replicas(deployment) - limits(deployment)[1]:
        text = "Deployment has minimum availability."
        return condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    text = "Deployment does not have minimum availability."
    return condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)


def _is_settled(status: Json, progress: Json | None) -> bool:
    """Return whether the rollout was reported as finished and there is no old pod again."""
    return (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and progress is not None
        and progress["reason"] == NEW_SET_AVAILABLE
    )


def _with_progress(deployment: Json, new: Json | None, status: Json, late: bool, now: str) -> Json:
    old = deployment.get("status", {})
    metadata = (new or deployment)["metadata"]
    subject = f'{"ReplicaSet" if new is not None else "Deployment"} "{metadata["name"]}"'
    if is_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return with_condition(status, condition(PROGRESSING, "True", NEW_SET_AVAILABLE, text, now))
    if _has_moved(old, status):
        text = f"{subject} is progressing."
        moved = condition(PROGRESSING, "True", UPDATED, text, now)
        return with_condition(status, moved, renew=True)
    if late:
        text = f"{subject} has timed out progressing."
        return with_condition(status, condition(PROGRESSING, "False", TIMED_OUT, text, now))
    return status


def _has_moved(old: Json, new: Json) -> bool:
    """Return whether there are more new pods, fewer old ones, or more ready or available."""

    def of_old_sets(status: Json) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    return of_old_sets(new) < of_old_sets(old) or any(
        new.get(name, 0) > old.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _with_failure(status: Json, sets: list[Json], now: str) -> Json:
    for entry in sets:
        failure = condition_of(entry, FAILURE)
        if failure is not None:
            failed = condition(FAILURE, "True", failure["reason"], failure["message"], now)
            return with_condition(status, failed)
    return without_condition(status, FAILURE)
