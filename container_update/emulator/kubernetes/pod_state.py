# SPDX-License-Identifier: Apache-2.0
"""What controllers derive from a pod: is it active, ready, available, terminating? Pure."""

from __future__ import annotations

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.objects import condition_of, is_deleting


def phase(pod: Json) -> str:
    """Return the pod's phase; 'Pending' as long as it has none."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_finished(pod: Json) -> bool:
    """Return whether none of its containers will run again."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """Return whether it counts as a replica: neither finished nor deleted."""
    return not is_finished(pod) and not is_deleting(pod)


def is_terminating(pod: Json) -> bool:
    """Return whether it was deleted and its containers may still run."""
    return is_deleting(pod) and not is_finished(pod)


def ready_since(pod: Json) -> str:
    """Return the time since which its Ready condition holds; '' if it does not."""
    ready = condition_of(pod, "Ready")
    return ready["lastTransitionTime"] if ready and ready["status"] == "True" else ""


def is_ready(pod: Json) -> bool:
    """Return whether its Ready condition holds."""
    ready = condition_of(pod, "Ready")
    return ready is not None and ready["status"] == "True"


def seconds_to_availability(pod: Json, min_ready_seconds: int) -> float | None:
    """Return how long until a ready pod has been ready for *min_ready_seconds*.

    :returns: 0 for an available pod, None for one that is not ready.
    """
    if not is_ready(pod):
        return None
    if not min_ready_seconds:
        return 0.0
    ready_for = clock.now() - clock.parse(ready_since(pod))
    return max(0.0, min_ready_seconds - ready_for.total_seconds())


def is_available(pod: Json, min_ready_seconds: int) -> bool:
    """Return whether it has been ready for *min_ready_seconds*."""
    return seconds_to_availability(pod, min_ready_seconds) == 0.0


def restarts(pod: Json) -> int:
    """Return the highest restart count of its containers."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return max((status.get("restartCount", 0) for status in statuses), default=0)
