# SPDX-License-Identifier: Apache-2.0
"""The row of a Pod: how many containers are ready, and its status in one word."""

from __future__ import annotations

from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.objects import is_deleting
from container_update.emulator.kubernetes.pod_state import is_ready
from container_update.emulator.kubernetes.tables.texts import NONE, age, age_of


def cells(pod: Json) -> list[Any]:
    """Return Ready, Status, Restarts, Age, IP, Node, Nominated Node, Readiness Gates."""
    status, spec = pod.get("status", {}), pod["spec"]
    statuses = [*_sidecars(pod), *status.get("containerStatuses", [])]
    total = len(spec.get("containers", [])) + len(_sidecar_names(spec))
    ready = sum(1 for entry in statuses if entry.get("ready") and "running" in _state(entry))
    gates = spec.get("readinessGates")
    return [
        f"{ready}/{total}",
        status_text(pod),
        _restarts(pod),
        age(pod),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"0/{len(gates)}" if gates else NONE,
    ]


def status_text(pod: Json) -> str:
    """Return the Status column: the most specific of phase, reasons and states."""
    status = pod.get("status", {})
    if is_deleting(pod):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return _initializing(pod) or _container_text(pod, status)


def _container_text(pod: Json, status: Json) -> str:
    text = str(status.get("reason") or status.get("phase", "Unknown"))
    has_running = False
    for entry in reversed(status.get("containerStatuses", [])):
        state = _state(entry)
        waiting, terminated = state.get("waiting", {}), state.get("terminated")
        if waiting.get("reason"):
            text = waiting["reason"]
        elif terminated:
            text = _exit_text(terminated)
        elif entry.get("ready") and "running" in state:
            has_running = True
    if text == "Completed" and has_running:
        return "Running" if is_ready(pod) else "NotReady"
    return text


def _initializing(pod: Json) -> str:
    """Return 'Init:1/2' and the like until the init containers are done; '' after."""
    containers = pod["spec"].get("initContainers", [])
    sidecars = _sidecar_names(pod["spec"])
    for index, entry in enumerate(pod.get("status", {}).get("initContainerStatuses", [])):
        state = _state(entry)
        terminated, waiting = state.get("terminated"), state.get("waiting", {})
        if terminated and terminated.get("exitCode", 0) == 0:
            continue
        if entry["name"] in sidecars and entry.get("started"):
            continue
        if terminated:
            return f"Init:{_exit_text(terminated)}"
        reason = waiting.get("reason")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _exit_text(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(pod: Json) -> str:
    status = pod.get("status", {})
    statuses = [*_sidecars(pod), *status.get("containerStatuses", [])]
    if _initializing(pod):
        statuses = status.get("initContainerStatuses", [])
    count = sum(entry.get("restartCount", 0) for entry in statuses)
    ends = [
        entry.get("lastState", {}).get("terminated", {}).get("finishedAt") for entry in statuses
    ]
    last = max(filter(None, ends), default=None)
    return f"{count} ({age_of(last)} ago)" if count and last else str(count)


def _sidecar_names(spec: Json) -> set[str]:
    return {
        entry["name"]
        for entry in spec.get("initContainers", [])
        if entry.get("restartPolicy") == "Always"
    }


def _sidecars(pod: Json) -> list[Json]:
    names = _sidecar_names(pod["spec"])
    return [
        entry
        for entry in pod.get("status", {}).get("initContainerStatuses", [])
        if entry["name"] in names
    ]


def _state(entry: Json) -> Json:
    return entry.get("state") or {}
