"""A pod's status, made from what its containers do. Pure.

Fields, reasons, texts and their order are as recorded; ``lastTransitionTime`` moves only when a
condition's status does.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from container_update.emulator.json_type import Json

SCHEME = "emulated://"


@dataclass
class Run:
    """One container of a pod, as the node sees it."""

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
    def part(self) -> str:
        """The field of the pod that describes it, as Events name it."""
        field_name = "initContainers" if self.is_init else "containers"
        return f"spec.{field_name}{{{self.name}}}"

    @property
    def is_running(self) -> bool:
        """It was started and has not ended."""
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """How it ended, where it did and was not restarted."""
        ended: Json | None = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    @property
    def is_done(self) -> bool:
        """For an init container: the next one may start."""
        return self.started if self.is_sidecar else self.exit_code == 0

    def wait(self, reason: str, message: str = "") -> None:
        """It does not run, for that reason."""
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        self.ready = self.started = False

    def run(self, now: str) -> None:
        """It runs."""
        self.runs += 1
        self.container_id = SCHEME + secrets.token_hex(32)
        self.image_id = f"{SCHEME}sha256:{hashlib.sha256(self.image.encode()).hexdigest()}"
        self.state = {"running": {"startedAt": now}}
        self.started = True

    def end(self, code: int, now: str) -> None:
        """It has ended."""
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
        """It is about to be started again, maybe with another image."""
        if "terminated" in self.state:
            self.last_state = self.state
        if image != self.image:
            self.image, self.image_id, self.container_id = image, "", ""

    def status(self) -> Json:
        """Its entry in the pod's status."""
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


def runs_of(pod: Json) -> list[Run]:
    """The pod's containers, init containers first, before any was started."""
    spec = pod["spec"]
    inits = [
        Run(
            entry["name"],
            entry["image"],
            is_init=True,
            is_sidecar=entry.get("restartPolicy") == "Always",
        )
        for entry in spec.get("initContainers") or []
    ]
    return inits + [Run(entry["name"], entry["image"]) for entry in spec["containers"]]


@dataclass
class Sandbox:
    """What a pod has of its node."""

    host_ip: str
    started_at: str
    pod_ip: str = ""
    volumes_ready: bool = True
    generation: int = 1
    """The pod's generation that the node has taken up."""


def pod_status(pod: Json, sandbox: Sandbox, runs: Sequence[Run], now: str) -> Json:
    """The status of a pod that is not on its way out."""
    policy = pod["spec"].get("restartPolicy", "Always")
    phase = phase_of(runs, policy)
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    conditions = _timed(_conditions(sandbox, runs, finished), pod, now)
    return {**_base(pod, sandbox, runs), "phase": phase, "conditions": conditions}


def stopped_status(pod: Json, sandbox: Sandbox, runs: Sequence[Run], now: str) -> Json:
    """The status of a deleted pod when the last of its containers has stopped.

    As recorded, the readiness belongs to the generation that the deletion made, all the rest to
    the one before.
    """
    never_ran = any(not run.runs for run in runs if not run.is_init)
    failed = never_ran or any(run.exit_code not in {0, None} for run in runs)
    conditions = _conditions(sandbox, runs, "PodCompleted")
    for condition in conditions:
        if condition["type"] in {"Ready", "ContainersReady"}:
            condition["observedGeneration"] = pod["metadata"]["generation"]
    return {
        **_base(pod, sandbox, runs),
        "phase": "Failed" if failed else "Succeeded",
        "conditions": _timed(conditions, pod, now),
    }


def evicted_status(
    pod: Json, sandbox: Sandbox, runs: Sequence[Run], message: str, now: str
) -> Json:
    """The status of a pod that its node threw out."""
    conditions = _conditions(sandbox, runs, "PodFailed")
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    conditions.append({**target, "message": message})
    return {
        **_base(pod, sandbox, runs),
        "phase": "Failed",
        "reason": "Evicted",
        "message": message,
        "conditions": _timed(conditions, pod, now),
    }


def phase_of(runs: Sequence[Run], restart_policy: str) -> str:
    """The phase that follows from the containers."""
    inits = [run for run in runs if run.is_init and not run.is_sidecar]
    main = [run for run in runs if not run.is_init]
    if restart_policy == "Never" and any(run.exit_code for run in inits):
        return "Failed"
    if any(not run.runs for run in main):
        return "Pending"
    codes = [run.exit_code for run in main]
    if restart_policy == "Always" or any(code is None for code in codes):
        return "Running"
    if not any(codes):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def _base(pod: Json, sandbox: Sandbox, runs: Sequence[Run]) -> Json:
    """The status but for phase and conditions."""
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
    inits = [run.status() for run in runs if run.is_init]
    if inits:
        status["initContainerStatuses"] = inits
    status["containerStatuses"] = [run.status() for run in runs if not run.is_init]
    if "ephemeralContainerStatuses" in old:
        status["ephemeralContainerStatuses"] = old["ephemeralContainerStatuses"]
    if "qosClass" in old:
        status["qosClass"] = old["qosClass"]
    return status


def _conditions(sandbox: Sandbox, runs: Sequence[Run], finished: str) -> list[Json]:
    """The kubelet's conditions. *finished*: why nothing is ready any more, '' while it may be."""
    incomplete = [run.name for run in runs if run.is_init and not run.is_done]
    unready = [run.name for run in runs if not run.ready and (not run.is_init or run.is_sidecar)]
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


def _timed(new: list[Json], pod: Json, now: str) -> list[Json]:
    """The conditions with their times, then those of others that the pod has."""
    before = {entry["type"]: entry for entry in pod.get("status", {}).get("conditions") or []}
    timed = []
    for condition in new:
        known = before.pop(condition["type"], None)
        same = known is not None and known["status"] == condition["status"]
        since = known["lastTransitionTime"] if known is not None and same else now
        timed.append({**condition, "lastTransitionTime": since})
    return [*timed, *before.values()]
