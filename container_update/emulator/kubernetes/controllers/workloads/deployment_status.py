"""What a Deployment says of itself: its numbers and its conditions. Pure.

Reasons, texts and the order of conditions are as recorded from the real controller.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.workloads.rollout import (
    asked,
    counted,
    limits,
    replicas,
)

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NEW_SET_CREATED = "NewReplicaSetCreated"
NEW_SET_FOUND = "FoundNewReplicaSet"
NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
UPDATED = "ReplicaSetUpdated"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
TIMED_OUT = "ProgressDeadlineExceeded"


def condition_of(status: Json, kind: str) -> Json | None:
    """The condition of that type."""
    return next((entry for entry in status.get("conditions", []) if entry["type"] == kind), None)


def condition(kind: str, status: str, reason: str, message: str, now: str) -> Json:
    """A new condition."""
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def with_condition(status: Json, new: Json, *, renew: bool = False) -> Json:
    """The status with that condition last in its list.

    A condition that says the same already stays where it is, unless *renew* asks for its
    time of update to be new.
    """
    old = condition_of(status, new["type"])
    if old is not None and old["status"] == new["status"]:
        if old["reason"] == new["reason"] and not renew:
            return status
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return {**status, "conditions": [*without_condition(status, new["type"])["conditions"], new]}


def without_condition(status: Json, kind: str) -> Json:
    """The status without that condition; ``conditions`` is there, if empty."""
    kept = [entry for entry in status.get("conditions", []) if entry["type"] != kind]
    return {**status, "conditions": kept}


def counts(deployment: Json, new: Json | None, sets: list[Json], now: str) -> Json:
    """The status that follows from the ReplicaSets, with the Available condition.

    :param sets: all ReplicaSets, *new* included.
    """
    old = deployment.get("status", {})
    available = counted(sets, "availableReplicas")
    numbers = {
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([new], "replicas") if new is not None else 0,
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, asked(sets) - available),
    }
    status: Json = {"observedGeneration": deployment["metadata"]["generation"]}
    status.update({name: number for name, number in numbers.items() if number})
    status["terminatingReplicas"] = counted(sets, "terminatingReplicas")
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    status["conditions"] = list(old.get("conditions", []))
    return with_condition(status, _availability(deployment, available, now))


def progressed(deployment: Json, new: Json | None, sets: list[Json], late: bool, now: str) -> Json:
    """The status after a look at a rollout that goes on, with all conditions.

    :param late: the progress deadline is over since the last progress.
    """
    status = counts(deployment, new, sets, now)
    old = deployment.get("status", {})
    if not has_deadline(deployment):
        status = without_condition(status, PROGRESSING)
    elif not _is_settled(status, condition_of(old, PROGRESSING)):
        status = _with_progress(deployment, new, status, late, now)
    return _with_failure(status, sets, now)


def has_deadline(deployment: Json) -> bool:
    """A rollout that takes too long is reported (the greatest number means never)."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return seconds is not None and seconds != 2**31 - 1


def is_complete(deployment: Json, status: Json) -> bool:
    """All pods are new and available, and there are no others."""
    wanted = replicas(deployment)
    seen: int = status.get("observedGeneration", 0)
    return seen >= deployment["metadata"]["generation"] and all(
        status.get(name, 0) == wanted
        for name in ("updatedReplicas", "replicas", "availableReplicas")
    )


def _availability(deployment: Json, available: int, now: str) -> Json:
    if available >= replicas(deployment) - limits(deployment)[1]:
        text = "Deployment has minimum availability."
        return condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    text = "Deployment does not have minimum availability."
    return condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)


def _is_settled(status: Json, progress: Json | None) -> bool:
    """The rollout was reported finished and no pod of an old ReplicaSet came back since."""
    return (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and progress is not None
        and progress["reason"] == NEW_SET_AVAILABLE
    )


def _with_progress(deployment: Json, new: Json | None, status: Json, late: bool, now: str) -> Json:
    old = deployment.get("status", {})
    metadata = (new or deployment)["metadata"]
    what = f'{"ReplicaSet" if new is not None else "Deployment"} "{metadata["name"]}"'
    if is_complete(deployment, status):
        text = f"{what} has successfully progressed."
        return with_condition(status, condition(PROGRESSING, "True", NEW_SET_AVAILABLE, text, now))
    if _has_moved(old, status):
        text = f"{what} is progressing."
        moved = condition(PROGRESSING, "True", UPDATED, text, now)
        return with_condition(status, moved, renew=True)
    if late:
        text = f"{what} has timed out progressing."
        return with_condition(status, condition(PROGRESSING, "False", TIMED_OUT, text, now))
    return status


def _has_moved(old: Json, new: Json) -> bool:
    """More new pods, fewer old ones, or more of them ready or available."""

    def of_old_sets(status: Json) -> int:
        total: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return total

    return of_old_sets(new) < of_old_sets(old) or any(
        new.get(name, 0) > old.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _with_failure(status: Json, sets: list[Json], now: str) -> Json:
    for entry in sets:
        found = condition_of(entry.get("status", {}), FAILURE)
        if found is not None:
            failed = condition(FAILURE, "True", found["reason"], found["message"], now)
            return with_condition(status, failed)
    return without_condition(status, FAILURE)
