# SPDX-License-Identifier: Apache-2.0
"""The state of a pod in a word, by what the API server shows of it."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json
from container_update.workloads.pod_state import PodState, Tone, state_of
from container_update.workloads.pod_status import _PROBLEMS
from tests.unit.build import container, pod

GOOD, BUSY, BAD = Tone.GOOD, Tone.BUSY, Tone.BAD
NO_NODE = "0/3 nodes are available: 3 Insufficient memory."
UNREADY = "containers with unready status: [a]"


def unmet(kind: str, reason: str, message: str) -> Json:
    condition = {"type": kind, "status": "False", "reason": reason, "message": message}
    return {"conditions": [condition]}


def waiting(reason: str, message: str | None = None) -> list[Json]:
    told = {"message": message} if message else {}
    return [container(waiting={"reason": reason, **told}, started=False)]


CASES = {
    "ready": (pod("p"), PodState("Running", GOOD)),
    "deleted": (pod("p", deleting=True), PodState("Terminating", BUSY)),
    "finished": (pod("p", ready=False, phase="Succeeded"), PodState("Completed", GOOD)),
    "evicted": (
        pod(
            "p", ready=False, phase="Failed", status={"reason": "Evicted", "message": "low memory"}
        ),
        PodState("Evicted", BAD, "low memory"),
    ),
    "failed": (
        pod(
            "p",
            ready=False,
            phase="Failed",
            containers=[container(terminated={"exitCode": 3, "reason": "Error"})],
        ),
        PodState("Error", BAD, ""),
    ),
    "failed without a word": (pod("p", ready=False, phase="Failed"), PodState("Failed", BAD)),
    "no image": (
        pod("p", ready=False, phase="Pending", containers=waiting("ErrImagePull", "x: not found")),
        PodState("ErrImagePull", BAD, "x: not found"),
    ),
    "crashed again": (
        pod(
            "p", ready=False, containers=[container(restarts=1, running={}, ended={"exitCode": 1})]
        ),
        PodState("CrashLoopBackOff", BAD, "ended with exit code 1"),
    ),
    "crashed once": (
        pod(
            "p",
            ready=False,
            containers=[container(terminated={"exitCode": 1, "reason": "Error"})],
        ),
        PodState("Error", BUSY),
    ),
    "starting": (
        pod("p", ready=False, phase="Pending", containers=waiting("ContainerCreating")),
        PodState("ContainerCreating", BUSY),
    ),
    "no node fits": (
        pod(
            "p",
            ready=False,
            phase="Pending",
            status=unmet("PodScheduled", "Unschedulable", NO_NODE),
        ),
        PodState("Pending: Unschedulable", BAD, NO_NODE),
    ),
    "held back": (
        pod(
            "p",
            ready=False,
            phase="Pending",
            status=unmet("PodScheduled", "SchedulingGated", "gated"),
        ),
        PodState("Pending: SchedulingGated", BUSY, "gated"),
    ),
    "just created": (pod("p", ready=False, phase="Pending"), PodState("Pending", BUSY)),
    "not ready": (
        pod(
            "p",
            ready=False,
            status=unmet("Ready", "ContainersNotReady", UNREADY),
            containers=[container(running={})],
        ),
        PodState("Not ready", BUSY, UNREADY),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pod_has_the_most_telling_word(case: str) -> None:
    given, expected = CASES[case]
    assert state_of(given) == expected


@pytest.mark.parametrize("reason", sorted(_PROBLEMS))
def test_what_an_update_gives_up_for_is_bad_at_once(reason: str) -> None:
    given = pod("p", ready=False, phase="Pending", containers=waiting(reason, "why"))
    assert state_of(given) == PodState(reason, BAD, "why")
