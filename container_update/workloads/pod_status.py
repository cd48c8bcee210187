# SPDX-License-Identifier: Apache-2.0
"""What a pod's status says: whether it is ready, and what prevents that. Pure.

Source: Pod and ContainerStatus in the Kubernetes API reference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

PULLS = frozenset({"ErrImagePull", "ImagePullBackOff"})
"""Reasons for which a container waits for its image, which the kubelet tries to pull again."""
NEVER_PULLS = frozenset({"ErrImageNeverPull", "InvalidImageName"})
"""Reasons for which the kubelet pulls nothing."""
NOT_FOUND, NOT_ALLOWED = "not found", "not allowed"
_REFUSALS = {
    NOT_ALLOWED: re.compile(r"\b40[13]\b|unauthori[sz]ed|forbidden|denied|authorization", re.I),
    NOT_FOUND: re.compile(r"not ?found|\b404\b|(manifest|name) unknown", re.I),
}
"""How registries word a refusal: the kubelet passes on their text, and no code with it."""
_PATIENCE = {NOT_FOUND: 5.0, NOT_ALLOWED: 15.0}
"""Seconds: an image may be pushed a moment later; a kubelet tries again after ten seconds."""
_IMAGE = re.compile('image "([^"]*)"')
_NO_CAUSE = frozenset({"ErrImagePull", "rpc error"})


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


def is_on_lost_node(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod's node does not answer any more, so that nothing ends the pod.

    The node controller then writes that the pod is not Ready, and nothing else; a kubelet gives a
    reason, or its containers are not ready either. Source: Kubernetes documentation, "Nodes", "Node
    controller"; "Pod Lifecycle", "Pod conditions".
    """
    reported: Sequence[Json] = (pod.get("status") or {}).get("conditions") or ()
    conditions = {condition.get("type"): condition for condition in reported}
    ready, containers = conditions.get("Ready") or {}, conditions.get("ContainersReady") or {}
    said_by_kubelet = ready.get("status") == "True" or ready.get("reason")
    return not said_by_kubelet and containers.get("status") == "True"


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod has ended or was evicted: its controller ignores it then."""
    return phase(pod) in ("Succeeded", "Failed")


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Return whether nothing of the pod runs any more: it is finished, or its kubelet has ended its
    containers and a finalizer alone keeps it.

    Source: Kubernetes documentation, "Pod Lifecycle", "Termination of Pods"; "Finalizers".
    """
    states = [status.get("state") or {} for status in container_statuses(pod)]
    ended = bool(states) and all("terminated" in state for state in states)
    return is_finished(pod) or (is_deleting(pod) and ended)


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
    """Return a pod's trouble, with container and reason, beyond these restarts, or None."""
    for status in container_statuses(pod):
        if text := _trouble(status, restarts):
            return f"pod {pod['metadata']['name']}, container {status['name']}: {text}"
    return None


def trouble(pod: Mapping[str, Any]) -> str:
    """Return a pod's trouble as 'ImagePullBackOff "upf:2"', without a registry, or ''."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    images = {container["name"]: str(container.get("image", "")) for container in containers}
    for status in container_statuses(pod):
        if text := _trouble(status, None):
            image = _last_part(images.get(status["name"], ""))
            return f'{text.partition(":")[0]} "{image}"'
    return ""


def patience(pod: Mapping[str, Any]) -> float:
    """Return for how many seconds it is worth waiting for a pod's images: there may be none."""
    waits = [(status.get("state") or {}).get("waiting") or {} for status in container_statuses(pod)]
    return min(map(_patience, waits), default=math.inf)


def _patience(waiting: Json) -> float:
    if waiting.get("reason") in NEVER_PULLS:
        return 0.0
    if waiting.get("reason") not in PULLS:
        return math.inf
    return _PATIENCE.get(pull_refusal(str(waiting.get("message"))), math.inf)


def pull_refusal(message: str) -> str:
    """Return NOT_FOUND or NOT_ALLOWED by a kubelet's words; '' where neither."""
    named, causes = _parts(message)
    text = ": ".join(causes).replace(_last_part(named), "") if named else message
    return next((why for why, pattern in _REFUSALS.items() if pattern.search(text)), "")


def pull_text(message: str) -> str:
    """Return what a kubelet says of a pull, with the name of the image once.

    >>> pull_text('Back-off pulling image "a/b:1": ErrImagePull: a/b:1: not found')
    'image "a/b:1": not found'
    """
    named, causes = _parts(message)
    return ": ".join([f'image "{named}"', *causes]) if named else message


def _parts(message: str) -> tuple[str, list[str]]:
    """Return the image that a message names, '' for none, and what it says besides."""
    match = _IMAGE.search(message)
    if match is None:
        return "", []
    name = _last_part(match[1])
    causes = [
        part
        for part in message.split(": ")
        if f'{name}"' not in part and _last_part(part) != name and part not in _NO_CAUSE
    ]
    return match[1], causes


def _last_part(image: str) -> str:
    """Return an image without its registry: 'nginx:1.27'."""
    return image.rpartition("/")[2]


def is_held_up(pod: Mapping[str, Any]) -> bool:
    """Return whether a container waits for what seldom ends by waiting alone, at this moment."""
    states = (status.get("state") or {} for status in container_statuses(pod))
    return any((state.get("waiting") or {}).get("reason") in _PROBLEMS for state in states)


def cannot_start(pod: Mapping[str, Any]) -> bool:
    """Return whether a container waits for what seldom comes, and none has run: for its image."""
    return is_held_up(pod) and not any(map(was_started, container_statuses(pod)))


def _trouble(status: Json, restarts: Mapping[str, int] | None) -> str:
    """Return the trouble of a container: 'ErrImagePull: not found'; '' where it has none."""
    if status.get("ready"):
        return ""
    waiting = (status.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") in _PROBLEMS:
        text = str(waiting.get("message") or "")
        text = pull_text(text) if waiting["reason"] in PULLS else text
        return ": ".join(filter(None, (waiting["reason"], text)))
    ended = (status.get("state") or {}).get("terminated") or _last_end(status)
    expected = (restarts or {}).get(status["name"], -1) + 1
    if ended.get("exitCode") and int(status.get("restartCount", 0)) > expected:
        return f"CrashLoopBackOff: ended with exit code {ended['exitCode']}"
    return ""


def _last_end(status: Json) -> Json:
    """Return how the run of a container before the present one ended, {} without one."""
    return (status.get("lastState") or {}).get("terminated") or {}


@dataclass(frozen=True)
class FailingContainer:
    """A container that prevents its pod from being ready."""

    name: str
    reason: str
    """'ImagePullBackOff', 'CrashLoopBackOff', 'Error', 'NotReady', ..."""
    message: str
    """What is known beside the reason; may be empty."""
    has_trouble: bool
    """It hardly gets ready by waiting alone."""
    has_run: bool
    """It has a log: not where it waits for the image that it is to run."""
    is_previous: bool
    """Its log is that of the run before: the present one has not begun, or has just begun."""


def failing_container(
    pod: Mapping[str, Any], restarts: Mapping[str, int] | None = None
) -> FailingContainer | None:
    """Return the container that prevents a pod from being ready, one in trouble first; None where
    all are ready or have done their work.

    :param restarts: as for :func:`problem`.
    """
    statuses = [status for status in container_statuses(pod) if not _is_fine(status)]
    containers = [_failing(status, restarts) for status in statuses]
    return min(containers, key=lambda container: not container.has_trouble, default=None)


def _is_fine(status: Json) -> bool:
    ended = (status.get("state") or {}).get("terminated")
    return bool(status.get("ready")) or (ended is not None and not ended.get("exitCode"))


def _failing(status: Json, restarts: Mapping[str, int] | None) -> FailingContainer:
    state = status.get("state") or {}
    trouble = _trouble(status, restarts)
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    known, _, message = trouble.partition(": ")
    reason = known or waiting.get("reason") or ended.get("reason")
    return FailingContainer(
        status["name"],
        str(reason or "NotReady"),
        message or str(waiting.get("message") or ended.get("message") or ""),
        has_trouble=bool(trouble),
        has_run=was_started(status) and waiting.get("reason") in (None, "CrashLoopBackOff"),
        is_previous=bool(trouble and _last_end(status)) and "terminated" not in state,
    )


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
        if condition := unmet_condition(pod):
            return f"pod {name} is not Ready: {condition['message']}"
        return f"pod {name} is not Ready (phase {phase(pod)})"
    return ""


def unmet_condition(pod: Mapping[str, Any]) -> Json:
    """Return the first condition that is not met and has a message; {} without one."""
    conditions: Sequence[Json] = (pod.get("status") or {}).get("conditions") or ()
    unmet = (c for c in conditions if c.get("status") == "False" and c.get("message"))
    return next(unmet, {})
