# SPDX-License-Identifier: Apache-2.0
"""How far a step is, as its object and its pods show it to somebody who only looks."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep, RestartStep
from container_update.planning.steps.judgement import applied, restored
from container_update.workloads.readiness import RolloutState
from tests.unit.fakes import config_map, pod

MAP = ObjectKey("", "ConfigMap", "ns", "cm")
POD = ObjectKey("", "Pod", "ns", "p")
WEB = ObjectKey("apps", "Deployment", "ns", "web")
DONE, WAITS, NOT_BEGUN = "done", "waits", "not begun"


def config(data: str, uid: str = "u") -> Json:
    body = config_map("cm", {"k": data})
    body["metadata"]["uid"] = uid
    return body


def web(image: str, *, ready: int = 1) -> Json:
    counts = {"updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [container(image)]}}},
        "status": {"observedGeneration": 1, "replicas": 1, **counts},
    }


def container(image: str) -> Json:
    return {"name": "a", "image": image}


def deleting(body: Json) -> Json:
    body = copy.deepcopy(body)
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return body


def other(body: Json) -> Json:
    body = copy.deepcopy(body)
    body["metadata"]["uid"] = "another"
    return body


OLD, NEW = config("old"), config("new")
REPLACE = ConfigStep(MAP, Action.REPLACE, OLD, config_map("cm", {"k": "new"}))
CREATE = ConfigStep(MAP, Action.CREATE, None, config_map("cm", {"k": "new"}))
DELETE = ManifestStep(MAP, Action.DELETE, OLD)
ROLL = RestartStep(WEB, Action.ROLL, web("app:1"), images={"a": "app:2"})
IN_PLACE = RestartStep(POD, Action.RESTART_CONTAINERS, pod("p"), images={"a": "app:2"})
AGAIN = RestartStep(POD, Action.RECREATE_POD, pod("p"), images={"a": "app:2"})
OLD_POD, NEW_POD = pod("web-1", image="app:1"), pod("web-2", image="app:2")
UNREADY = pod("web-2", image="app:2", ready=False)

FORWARDS: list[tuple[ObjectStep, Json | None, list[Json], str]] = [
    (REPLACE, OLD, [], NOT_BEGUN),
    (REPLACE, NEW, [], DONE),
    (REPLACE, None, [], NOT_BEGUN),
    (CREATE, None, [], NOT_BEGUN),
    (CREATE, NEW, [], DONE),
    (DELETE, OLD, [], NOT_BEGUN),
    (DELETE, deleting(OLD), [], WAITS),
    (DELETE, None, [], DONE),
    (DELETE, other(OLD), [], DONE),
    (ROLL, web("app:1"), [OLD_POD], NOT_BEGUN),
    (ROLL, web("app:2", ready=0), [OLD_POD, UNREADY], WAITS),
    (ROLL, web("app:2"), [OLD_POD, NEW_POD], WAITS),
    (ROLL, web("app:2"), [NEW_POD], DONE),
    (IN_PLACE, pod("p"), [], NOT_BEGUN),
    (IN_PLACE, pod("p", image="app:2"), [], WAITS),
    (IN_PLACE, pod("p", image="app:2", restarts=1), [], DONE),
    (AGAIN, pod("p"), [], NOT_BEGUN),
    (AGAIN, deleting(pod("p")), [], WAITS),
    (AGAIN, None, [], WAITS),
    (AGAIN, other(pod("p", image="app:2", ready=False)), [], WAITS),
    (AGAIN, other(pod("p", image="app:2")), [], DONE),
]
BACKWARDS: list[tuple[ObjectStep, Json | None, list[Json], str]] = [
    (REPLACE, NEW, [], NOT_BEGUN),
    (REPLACE, OLD, [], DONE),
    (CREATE, NEW, [], NOT_BEGUN),
    (CREATE, None, [], DONE),
    (DELETE, None, [], NOT_BEGUN),
    (DELETE, deleting(OLD), [], NOT_BEGUN),
    (DELETE, OLD, [], DONE),
    (ROLL, web("app:2"), [NEW_POD], NOT_BEGUN),
    (ROLL, web("app:1"), [NEW_POD], WAITS),
    (ROLL, web("app:1", ready=0), [OLD_POD], WAITS),
    (ROLL, web("app:1"), [OLD_POD], DONE),
    (IN_PLACE, pod("p", image="app:2"), [], NOT_BEGUN),
    (IN_PLACE, pod("p", ready=False), [], WAITS),
    (IN_PLACE, pod("p"), [], DONE),
]


def word(readiness: Any) -> str:
    if readiness is None:
        return NOT_BEGUN
    return DONE if readiness.state is RolloutState.DONE else WAITS


@pytest.mark.parametrize(("step", "live", "pods", "expected"), FORWARDS)
def test_how_far_a_step_is(
    step: ObjectStep, live: Json | None, pods: list[Json], expected: str
) -> None:
    assert word(applied(step, live, pods, frozenset({"uid-web-1"}))) == expected


@pytest.mark.parametrize(("step", "live", "pods", "expected"), BACKWARDS)
def test_how_far_the_undo_of_a_step_is(
    step: ObjectStep, live: Json | None, pods: list[Json], expected: str
) -> None:
    assert word(restored(step, live, pods)) == expected


def test_pods_from_before_stay_where_only_other_fields_change() -> None:
    step = RestartStep(WEB, Action.ROLL, web("app:2"), images={"a": "app:2"})
    assert word(applied(step, web("app:2"), [OLD_POD], frozenset({"uid-web-1"}))) == DONE
