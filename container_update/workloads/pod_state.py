# SPDX-License-Identifier: Apache-2.0
"""The state of a pod in a word, as ``kubectl get pods`` has it, and what to think of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from container_update.workloads import pod_status

UNSCHEDULABLE = "Unschedulable"
"""The scheduler's reason: no node fits."""


class Tone(enum.Enum):
    """What to think of a state."""

    GOOD = "good"
    BUSY = "busy"
    """It changes by itself."""
    BAD = "bad"
    """It hardly gets better by waiting alone."""


@dataclass(frozen=True)
class PodState:
    """The state of a pod.

    >>> state_of({"metadata": {}, "status": {"phase": "Succeeded"}})
    PodState(word='Completed', tone=<Tone.GOOD: 'good'>, problem='')
    """

    word: str
    """The most telling one: 'ImagePullBackOff', 'Terminating', 'Pending: Unschedulable', ..."""
    tone: Tone
    problem: str = ""
    """What its container or its condition says about it."""


def state_of(pod: Mapping[str, Any]) -> PodState:
    """Return the state of a pod."""
    phase, status = pod_status.phase(pod), pod.get("status") or {}
    if pod_status.is_deleting(pod):
        return PodState("Terminating", Tone.BUSY)
    if phase == "Succeeded":
        return PodState("Completed", Tone.GOOD)
    container = pod_status.failing_container(pod)
    reason, message = (container.reason, container.message) if container else ("", "")
    if phase == "Failed":
        word = str(status.get("reason") or reason or phase)
        return PodState(word, Tone.BAD, str(status.get("message") or message))
    if container is not None and container.has_trouble:
        return PodState(reason, Tone.BAD, message)
    if pod_status.is_ready(pod):
        return PodState("Running", Tone.GOOD)
    return _not_ready(pod, phase, reason, message)


def _not_ready(pod: Mapping[str, Any], phase: str, reason: str, message: str) -> PodState:
    """Return the state of a pod without trouble that is not ready yet."""
    unmet = pod_status.unmet_condition(pod)
    why = message or str(unmet.get("message") or "")
    if unmet.get("type") == "PodScheduled":
        tone = Tone.BAD if unmet.get("reason") == UNSCHEDULABLE else Tone.BUSY
        return PodState(f"{phase}: {unmet.get('reason')}", tone, why)
    if reason not in ("", "NotReady"):  # ContainerCreating, PodInitializing, Error, ...
        return PodState(reason, Tone.BUSY, why)
    return PodState("Not ready" if phase == "Running" else phase, Tone.BUSY, why)
