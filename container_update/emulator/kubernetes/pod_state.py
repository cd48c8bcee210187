"""What a controller asks of a pod: is it active, ready, available, on its way out?"""

from __future__ import annotations

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.ownership import is_deleting

FINISHED = frozenset({"Succeeded", "Failed"})


def phase(pod: Json) -> str:
    """The pod's phase; 'Pending' until somebody says otherwise."""
    found: str = pod.get("status", {}).get("phase", "Pending")
    return found


def is_finished(pod: Json) -> bool:
    """No container of it will run again."""
    return phase(pod) in FINISHED


def is_active(pod: Json) -> bool:
    """It counts as a replica: neither finished nor on its way out."""
    return not is_finished(pod) and not is_deleting(pod)


def is_terminating(pod: Json) -> bool:
    """It was deleted and its containers are not yet known to have stopped."""
    return is_deleting(pod) and not is_finished(pod)


def condition(obj: Json, kind: str) -> Json | None:
    """The object's condition of that type."""
    for found in obj.get("status", {}).get("conditions") or []:
        if found["type"] == kind:
            result: Json = found
            return result
    return None


def is_ready(pod: Json) -> bool:
    """Its Ready condition holds."""
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"


def seconds_to_availability(pod: Json, min_ready_seconds: int) -> float | None:
    """How long until a ready pod has been ready for *min_ready_seconds*.

    :returns: 0 where it is available, None where it is not even ready.
    """
    found = condition(pod, "Ready")
    if found is None or found["status"] != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    ready_for = clock.now() - clock.parse(found["lastTransitionTime"])
    return max(0.0, min_ready_seconds - ready_for.total_seconds())


def is_available(pod: Json, min_ready_seconds: int) -> bool:
    """It has been ready for *min_ready_seconds*."""
    return seconds_to_availability(pod, min_ready_seconds) == 0.0


def restarts(pod: Json) -> int:
    """The most restarts that any of its containers has had."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return max((status.get("restartCount", 0) for status in statuses), default=0)
