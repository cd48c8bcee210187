# SPDX-License-Identifier: Apache-2.0
"""The log of a container: which run it is of, how much of it, and when there is none.

Source of the refusals: ``validateContainerLogStatus`` of the kubelet, and ``LogLocation`` of the
API server.
"""

from __future__ import annotations

from typing import Any

import pytest

from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.kubelet import Behaviour
from container_update.emulator.kubernetes.kubelet.logs import read_log
from tests.emulator.stage import Stage, on_stage, pod_spec

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
CRASHED = {"terminated": {"exitCode": 3}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def pod(state: dict[str, Any], last: dict[str, Any] | None = None, *others: str) -> dict[str, Any]:
    status = {"name": "a", "image": "app:1", "state": state, "lastState": last or {}}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": name} for name in ("a", *others)]},
        "status": {"containerStatuses": [status]},
    }


START, CRASH = "app:1 is starting\n", "fatal: app:1 cannot go on, exit code 3\n"


@pytest.mark.parametrize(
    ("body", "query", "expected"),
    [
        (pod(RUNNING), {}, START),
        (pod(RUNNING), {"container": "a"}, START),
        (pod(CRASHED), {}, START + CRASH),
        (pod(RUNNING, CRASHED), {}, START),
        (pod(RUNNING, CRASHED), {"previous": "true"}, START + CRASH),
        (pod(waiting("CrashLoopBackOff"), CRASHED), {}, START + CRASH),
        (pod(waiting("CrashLoopBackOff"), CRASHED), {"previous": "true"}, START + CRASH),
        (pod(CRASHED), {"tailLines": "1"}, CRASH),
        (pod(CRASHED), {"tailLines": "0"}, ""),
        (pod(CRASHED), {"tailLines": "9"}, START + CRASH),
        (pod(CRASHED), {"tailLines": "1", "limitBytes": "5"}, "fatal"),
    ],
)
def test_a_log_is_of_one_run_and_as_long_as_requested(
    body: dict[str, Any], query: dict[str, str], expected: str
) -> None:
    assert read_log(Behaviour(), body, query) == expected


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        (
            pod(RUNNING),
            {"previous": "true"},
            'previous terminated container "a" in pod "p" not found',
        ),
        (
            pod(waiting("ImagePullBackOff")),
            {},
            'container "a" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        (
            pod(waiting("ContainerCreating")),
            {},
            'container "a" in pod "p" is waiting to start: ContainerCreating',
        ),
        (pod(RUNNING), {"container": "b"}, "container b is not valid for pod p"),
        (
            pod(RUNNING, None, "b"),
            {},
            "a container name must be specified for pod p, choose one of: [a b]",
        ),
    ],
)
def test_a_log_that_does_not_exist_is_refused_as_the_kubelet_does(
    body: dict[str, Any], query: dict[str, str], message: str
) -> None:
    with pytest.raises(ApiError) as raised:
        read_log(Behaviour(), body, query)
    assert (raised.value.code, raised.value.message) == (400, message)


@on_stage
async def test_a_test_can_say_what_an_image_writes(stage: Stage) -> None:
    stage.behaviour.logs["app:*"] = "no licence\n"
    stage.create("pods", {"metadata": {"name": "p"}, "spec": pod_spec()})
    await stage.until(lambda: stage.status("pods", "p")["phase"] == "Running")
    assert read_log(stage.behaviour, stage.get("pods", "p"), {}) == "no licence\n"
