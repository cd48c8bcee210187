# SPDX-License-Identifier: Apache-2.0
"""The times in a pod's conditions, and the phase that follows from its containers."""

from __future__ import annotations

import pytest

from container_update.emulator.kubernetes.kubelet.status import (
    ContainerState,
    Sandbox,
    phase_of,
    pod_status,
)
from tests.internals.core import Json


def _pod(status: Json | None = None) -> Json:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "generation": 1}
    return {"metadata": metadata, "spec": {}, "status": status or {}}


def _times(status: Json) -> dict[str, str]:
    return {entry["type"]: entry["lastTransitionTime"] for entry in status["conditions"]}


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    run, sandbox = ContainerState("a", "app:1"), Sandbox("10.0.0.1", "start")
    waiting = pod_status(_pod(), sandbox, [run], "first")
    assert set(_times(waiting).values()) == {"first"}
    run.run("second")
    run.ready = True
    running = pod_status(_pod(waiting), sandbox, [run], "second")
    assert _times(running) == {
        "PodReadyToStartContainers": "first",
        "Initialized": "first",
        "Ready": "second",
        "ContainersReady": "second",
    }


def test_conditions_of_others_are_kept() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "then"}
    status = pod_status(
        _pod({"conditions": [target]}),
        Sandbox("10.0.0.1", "start"),
        [ContainerState("a", "app:1")],
        "now",
    )
    assert status["conditions"][-1] == target


def _ended(name: str, code: int | None, *, init: bool = False) -> ContainerState:
    """Return a container that ended with a code; None: it runs; -1: it was never started."""
    run = ContainerState(name, "app:1", is_init=init)
    if code != -1:
        run.run("then")
        if code is not None:
            run.end(code, "now")
    return run


PHASES = [
    ("Always", [-1], "Pending"),
    ("Always", [None], "Running"),
    ("Always", [None, -1], "Pending"),
    ("Always", [1], "Running"),
    ("Never", [0], "Succeeded"),
    ("Never", [0, None], "Running"),
    ("Never", [0, 1], "Failed"),
    ("OnFailure", [0, 0], "Succeeded"),
    ("OnFailure", [0, 1], "Running"),
]


@pytest.mark.parametrize(("policy", "codes", "phase"), PHASES)
def test_the_phase_follows_from_the_containers(
    policy: str, codes: list[int | None], phase: str
) -> None:
    runs = [_ended(f"c{number}", code) for number, code in enumerate(codes)]
    assert phase_of(runs, policy) == phase


INIT_PHASES = [("Never", "Failed"), ("OnFailure", "Pending"), ("Always", "Pending")]


@pytest.mark.parametrize(("policy", "phase"), INIT_PHASES)
def test_a_failed_init_container_fails_only_a_pod_that_never_restarts(
    policy: str, phase: str
) -> None:
    runs = [_ended("init", 1, init=True), _ended("a", -1)]
    assert phase_of(runs, policy) == phase
