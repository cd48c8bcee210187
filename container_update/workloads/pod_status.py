"""What a pod's status says: whether it is ready, and what prevents that. Pure.

Source: Pod and ContainerStatus in the Kubernetes API reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from container_update.model.objects import Json

_PROBLEMS = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Reasons for which a container waits, and which seldom end by waiting alone."""


def container_statuses(pod: Mapping[str, Any]) -> list[Json]:
    """Return the statuses of init containers, then of containers."""
    status = pod.get("status") or {}
    groups = ("initContainerStatuses", "containerStatuses")
    return [container for group in groups for container in status.get(group) or ()]


def was_started(status: Mapping[str, Any]) -> bool:
    """Return whether a container ever ran."""
    states = (status.get("state") or {}, status.get("lastState") or {})
    ran = any("running" in state or "terminated" in state for state in states)
    return ran or bool(status.get("containerID"))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod's Ready condition is true and it is not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not is_deleting(pod)


def is_deleting(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has ended or was evicted: its controller ignores it then."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod is neither being deleted nor finished."""
    return not is_deleting(pod) and not is_finished(pod)


def incarnation(pod: Mapping[str, Any]) -> str:
    """Return a text that changes when the pod is created anew or one of its containers restarts."""
    restarts = sum(int(status.get("restartCount", 0)) for status in container_statuses(pod))
    return f"{pod['metadata']['uid']}/{restarts}"


def phase(pod: Mapping[str, Any]) -> str:
    """Return the pod's phase; 'Pending' where the status has none."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def problem(pod: Mapping[str, Any], restarts: Mapping[str, int] | None = None) -> str | None:
    """Return the trouble of a pod, with pod, container and reason; None where it has none.

    :param restarts: the restart counts that are no sign of a crash (of a restart in place).
    """
    for status in container_statuses(pod):
        if status.get("ready"):
            continue
        waiting = (status.get("state") or {}).get("waiting") or {}
        container = f"pod {pod['metadata']['name']}, container {status['name']}"
        if waiting.get("reason") in _PROBLEMS:
            text = ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
            return f"{container}: {text}"
        ended = (status.get("state") or {}).get("terminated") or (
            (status.get("lastState") or {}).get("terminated") or {}
        )
        expected = (restarts or {}).get(status["name"], -1) + 1
        if ended.get("exitCode") and int(status.get("restartCount", 0)) > expected:
            return f"{container}: CrashLoopBackOff: ended with exit code {ended['exitCode']}"
    return None


def waiting_for(pods: Sequence[Json], restarts: Mapping[str, int] | None = None) -> str:
    """Return the first pod that is not ready, with the reason it gives."""
    for pod in pods:
        if is_ready(pod):
            continue
        name = pod["metadata"]["name"]
        if is_deleting(pod):
            return f"pod {name} is still being deleted"
        if trouble := problem(pod, restarts):
            return trouble
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition.get("status") == "False" and condition.get("message"):
                return f"pod {name} is not Ready: {condition['message']}"
        return f"pod {name} is not Ready (phase {phase(pod)})"
    return ""
