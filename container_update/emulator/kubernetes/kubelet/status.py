# SPDX-License-Identifier: Apache-2.0
"""A pod's status, computed from the states of its containers. Pure.

Fields, reasons, texts and their order are as recorded; ``lastTransitionTime`` changes only with a
condition's status.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from container_update.emulator.json_type import Json

SCHEME = "emulated://"


@dataclass
class ContainerState:
    """The state of one container of a pod."""

    name: str
    image: str
    is_init: bool = False
    is_sidecar: bool = False
    """An init container that keeps running."""
    state: Json = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Json = field(default_factory=dict)
    ready: bool = False
    started: bool = False
    restarts: int = 0
    runs: int = 0
    """How often it was started."""
    container_id: str = ""
    image_id: str = ""

    @property
    def field_path(self) -> str:
        """The field of the pod that describes it, as in Events."""
        field_name = "initContainers" if self.is_init else "containers"
        return f"spec.{field_name}{{{self.name}}}"

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not exited."""
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """Its exit code if it has exited and was not restarted, else None."""
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated["exitCode"])

    @property
    def is_done(self) -> bool:
        """Whether the container after this init container may start."""
        return self.started if self.is_sidecar else self.exit_code == 0

    def wait(self, reason: str, message: str = "") -> None:
        """Set the state to waiting, for that reason."""
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        self.ready = self.started = False

    def run(self, now: str) -> None:
        """Set the state to running."""
        self.runs += 1
        self.container_id = SCHEME + secrets.token_hex(32)
        self.image_id = f"{SCHEME}sha256:{hashlib.sha256(self.image.encode()).hexdigest()}"
        self.state = {"running": {"startedAt": now}}
        self.started = True

    def end(self, code: int, now: str) -> None:
        """Set the state to terminated."""
        self.state = {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "startedAt": self.state.get("running", {}).get("startedAt", now),
                "finishedAt": now,
                "containerID": self.container_id,
            }
        }
        self.ready = self.is_init and code == 0
        self.started = False

    def restart(self, image: str) -> None:
        """Prepare for another start, which may be with another image."""
        if "terminated" in self.state:
            self.last_state = self.state
        if image != self.image:
            self.image, self.image_id, self.container_id = image, "", ""

    def status(self) -> Json:
        """Return its entry in the pod's status."""
        status: Json = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": self.image,
            "imageID": self.image_id,
        }
        if self.container_id:
            status["containerID"] = self.container_id
        status["started"] = self.started
        return status


def initial_states(pod: Json) -> list[ContainerState]:
    """Return the states of the pod's containers before any was started, init containers first."""
    spec = pod["spec"]
    inits = [
        ContainerState(entry["name"], entry["image"], True, entry.get("restartPolicy") == "Always")
        for entry in spec.get("initContainers") or []
    ]
    return inits + [ContainerState(entry["name"], entry["image"]) for entry in spec["containers"]]


@dataclass
class Sandbox:
    """What the node provides for a pod."""

    host_ip: str
    started_at: str
    pod_ip: str = ""
    volumes_ready: bool = True
    generation: int = 1
    """The pod's generation that the node has observed."""


def pod_status(pod: Json, sandbox: Sandbox, containers: Sequence[ContainerState], now: str) -> Json:
    """Return the status of a pod that is not deleted."""
    policy = pod["spec"].get("restartPolicy", "Always")
    phase = phase_of(containers, policy)
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    conditions = _with_times(_conditions(sandbox, containers, finished), pod, now)
    return {**_base(pod, sandbox, containers), "phase": phase, "conditions": conditions}


def stopped_status(
    pod: Json, sandbox: Sandbox, containers: Sequence[ContainerState], now: str
) -> Json:
    """Return the status of a deleted pod when the last of its containers has stopped.

    As recorded, the readiness conditions have the generation of the deletion, all others the one
    before.
    """
    never_ran = any(not container.runs for container in containers if not container.is_init)
    failed = never_ran or any(container.exit_code not in {0, None} for container in containers)
    conditions = _conditions(sandbox, containers, "PodCompleted")
    for condition in conditions:
        if condition["type"] in {"Ready", "ContainersReady"}:
            condition["observedGeneration"] = pod["metadata"]["generation"]
    return {
        **_base(pod, sandbox, containers),
        "phase": "Failed" if failed else "Succeeded",
        "conditions": _with_times(conditions, pod, now),
    }


def evicted_status(
    pod: Json, sandbox: Sandbox, containers: Sequence[ContainerState], message: str, now: str
) -> Json:
    """Return the status of a pod that its node evicted."""
    conditions = _conditions(sandbox, containers, "PodFailed")
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    conditions.append({**target, "message": message})
    return {
        **_base(pod, sandbox, containers),
        "phase": "Failed",
        "reason": "Evicted",
        "message": message,
        "conditions": _with_times(conditions, pod, now),
    }


def phase_of(containers: Sequence[ContainerState], restart_policy: str) -> str:
    """Return the phase for these states of the containers."""
    inits = [
        container for container in containers if container.is_init and not container.is_sidecar
    ]
    main = [container for container in containers if not container.is_init]
    if restart_policy == "Never" and any(container.exit_code for container in inits):
        return "Failed"
    if any(not container.runs for container in main):
        return "Pending"
    codes = [container.exit_code for container in main]
    if restart_policy == "Always" or any(code is None for code in codes):
        return "Running"
    if not any(codes):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def _base(pod: Json, sandbox: Sandbox, containers: Sequence[ContainerState]) -> Json:
    """Return the status without phase and conditions."""
    old = pod.get("status", {})
    status: Json = {
        "observedGeneration": sandbox.generation,
        "hostIP": sandbox.host_ip,
        "hostIPs": [{"ip": sandbox.host_ip}],
    }
    if sandbox.pod_ip:
        status["podIP"] = sandbox.pod_ip
        status["podIPs"] = [{"ip": sandbox.pod_ip}]
    status["startTime"] = sandbox.started_at
    inits = [container.status() for container in containers if container.is_init]
    if inits:
        status["initContainerStatuses"] = inits
    status["containerStatuses"] = [
        container.status() for container in containers if not container.is_init
    ]
    if "ephemeralContainerStatuses" in old:
        status["ephemeralContainerStatuses"] = old["ephemeralContainerStatuses"]
    if "qosClass" in old:
        status["qosClass"] = old["qosClass"]
    return status


def _conditions(
    sandbox: Sandbox, containers: Sequence[ContainerState], finished: str
) -> list[Json]:
    """Return the kubelet's conditions.

    :param finished: why the pod is never ready again; '' if it may be.
    """
    incomplete = [
        container.name for container in containers if container.is_init and not container.is_done
    ]
    unready = [
        container.name
        for container in containers
        if not container.ready and (not container.is_init or container.is_sidecar)
    ]
    initialized = _condition("Initialized", not incomplete)
    if incomplete:
        initialized["reason"] = "ContainersNotInitialized"
        initialized["message"] = f"containers with incomplete status: [{' '.join(incomplete)}]"
    ready = _condition("Ready", not unready and not incomplete and not finished)
    if finished:
        ready["reason"] = finished
    elif ready["status"] == "False":
        ready["reason"] = "ContainersNotReady"
        ready["message"] = f"containers with unready status: [{' '.join(unready)}]"
    return [
        {**condition, "observedGeneration": sandbox.generation}
        for condition in (
            _condition("PodReadyToStartContainers", sandbox.volumes_ready),
            initialized,
            ready,
            {**ready, "type": "ContainersReady"},
        )
    ]


def _condition(kind: str, holds: bool) -> Json:
    return {"type": kind, "status": str(holds), "lastProbeTime": None}


def _with_times(new: list[Json], pod: Json, now: str) -> list[Json]:
    """Return the conditions with their times, then the pod's conditions of other types."""
    before = {entry["type"]: entry for entry in pod.get("status", {}).get("conditions") or []}
    timed = []
    for condition in new:
        old = before.pop(condition["type"], None)
        since = old["lastTransitionTime"] if old and old["status"] == condition["status"] else now
        timed.append({**condition, "lastTransitionTime": since})
    return [*timed, *before.values()]


def restarts(pod: Json, container: ContainerState, code: int) -> bool:
    """Return whether a pod's container is restarted after it exited with *code*."""
    policy = pod["spec"].get("restartPolicy", "Always")
    if container.is_sidecar or (policy == "Always" and not container.is_init):
        return True
    return policy != "Never" and code != 0
