# SPDX-License-Identifier: Apache-2.0
"""Rollouts, evictions and deletions show a client what a real API server 1.36 was recorded to show.

Equality of the sequences of states, object by object, unless a test says how many may be merged:
two pods that the recording saw become ready one after the other do so at the same moment here.
"""

from __future__ import annotations

import pytest

from container_update.emulator.kubernetes.api_errors import ApiError
from tests.emulator.stage import Stage, digest, image, on_stage, scale, workload
from tests.emulator.watchfacts import differences, events_after, recorded
from tests.internals.core import Json

BOTH_READY_AT_ONCE = {"merged": 1}


async def _rolled_out(
    stage: Stage, kind: str, name: str, replicas: int | None = 2, **spec: object
) -> None:
    """Create a workload and wait for its pods."""
    replicas = None if kind == "daemonsets" else replicas
    stage.create(kind, workload(kind, name, replicas, **spec))
    await stage.until(lambda: stage.is_rolled_out(kind, name))
    await stage.settle()


# --- every kind -------------------------------------------------------------------------------

COMES_UP: dict[str, dict[str, dict[str, int]]] = {
    "deployments": {"deployments": BOTH_READY_AT_ONCE, "replicasets": BOTH_READY_AT_ONCE,
                    "pods": {}},
    # The emulator sends one more state before the first pod, as the recording does in updates.
    "daemonsets": {"pods": {}, "daemonsets": {"extra": 1}},
    "replicasets": {"pods": {}, "replicasets": BOTH_READY_AT_ONCE},
    "statefulsets": {"statefulsets": {}, "pods": {}},
}  # fmt: skip
"""Kind to what is watched, and how many states may differ."""


@pytest.mark.parametrize("kind", COMES_UP)
def test_a_new_workload_comes_up_as_recorded(kind: str) -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        await _rolled_out(stage, kind, kind[:-1])
        for resource, tolerance in COMES_UP[kind].items():
            expected = events_after(recorded(kind[:-1]), "POST", f"/{kind}", resource)
            await stage.shows(0, resource, expected, **tolerance)

    scenario()


@pytest.mark.parametrize("kind", COMES_UP)
def test_a_changed_template_rolls_as_recorded(kind: str) -> None:
    """Of a ReplicaSet the pods stay."""

    @on_stage
    async def scenario(stage: Stage) -> None:
        await _rolled_out(stage, kind, kind[:-1])
        mark = stage.mark()
        stage.change(kind, kind[:-1], image("app:2"), digest("1"))
        for resource in COMES_UP[kind]:
            expected = events_after(recorded(kind[:-1]), "PUT", f"/{kind[:-1]}", resource)
            await stage.shows(mark, resource, expected)

    scenario()


@pytest.mark.parametrize(("kind", "nth"), [("daemonsets", 0), ("statefulsets", 1)])
def test_with_on_delete_an_evicted_pod_is_replaced_as_recorded(kind: str, nth: int) -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        name = f"ondelete-{kind}"
        await _rolled_out(stage, kind, name, updateStrategy={"type": "OnDelete"})
        stage.change(kind, name, image("app:2"))
        await stage.until(lambda: stage.status(kind, name)["observedGeneration"] == 2)
        mark = stage.mark()
        stage.evict(stage.owned_pods(kind, name)[0])
        for resource in (kind, "pods"):
            expected = events_after(recorded("ondelete"), "POST", "/eviction", resource, nth)
            await stage.shows(mark, resource, expected)

    scenario()


# --- Deployment -------------------------------------------------------------------------------


@on_stage
async def test_a_rollout_without_surplus_takes_pod_after_pod_as_recorded(stage: Stage) -> None:
    steps = recorded("deployment-strategies")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await _rolled_out(stage, "deployments", "surge", 4, strategy=strategy)
    mark = stage.mark()
    stage.change("deployments", "surge", image("app:2"))
    for resource in ("deployments", "replicasets", "pods"):
        expected = events_after(steps, "PATCH", "/surge", resource)
        await stage.shows(mark, resource, expected)


@on_stage
async def test_recreate_stops_every_old_pod_before_it_starts_a_new_one(stage: Stage) -> None:
    steps = recorded("deployment-strategies")
    await _rolled_out(stage, "deployments", "recreate", strategy={"type": "Recreate"})
    mark = stage.mark()
    stage.change("deployments", "recreate", image("app:2"))
    pods = events_after(steps, "PATCH", "/recreate", "pods")
    await stage.shows(mark, "pods", pods)
    deployments = events_after(steps, "PATCH", "/recreate", "deployments")
    await stage.shows(mark, "deployments", deployments, merged=3, extra=2)
    changes = stage.since(mark, "pods")
    stopped = [n for n, (_, pod) in enumerate(changes) if pod["status"]["phase"] == "Succeeded"]
    created = [n for n, (event, _) in enumerate(changes) if event == "ADDED"]
    assert len(created) == 2
    assert sum(n < created[0] for n in stopped) >= 2


@on_stage
async def test_a_paused_deployment_makes_no_replicaset_and_says_so(stage: Stage) -> None:
    stage.create("deployments", workload("deployments", "paused", paused=True))
    await stage.until(lambda: len(stage.status("deployments", "paused").get("conditions", [])) == 2)
    stage.change("deployments", "paused", image("app:2"))
    await stage.until(lambda: stage.status("deployments", "paused")["observedGeneration"] == 2)
    status = stage.status("deployments", "paused")
    assert [
        (entry["type"], entry["status"], entry["reason"]) for entry in status["conditions"]
    ] == [
        ("Progressing", "Unknown", "DeploymentPaused"),
        ("Available", "False", "MinimumReplicasUnavailable"),
    ]
    assert not stage.stored("replicasets")


@on_stage
async def test_an_image_that_cannot_be_pulled_misses_the_deadline_as_recorded(
    stage: Stage,
) -> None:
    await _rolled_out(stage, "deployments", "deployment", 3)

    def within_a_second(body: Json) -> None:
        body["spec"]["progressDeadlineSeconds"] = 1

    stage.change("deployments", "deployment", image("bad:missing"), within_a_second)

    def conditions(status: Json) -> list[tuple[str, str, str]]:
        return [(entry["type"], entry["status"], entry["reason"]) for entry in status["conditions"]]

    recorded_events = events_after(recorded("deployment"), "PATCH", "/deployment", "deployments", 1)
    want: Json = recorded_events[-1][1]["status"]
    await stage.until(
        lambda: conditions(stage.status("deployments", "deployment")) == conditions(want)
    )
    status = stage.status("deployments", "deployment")
    counters = {key for key in want if key not in {"conditions", "observedGeneration"}}
    assert {key: status.get(key) for key in counters} == {key: want[key] for key in counters}


@on_stage
async def test_a_deployment_deleted_in_the_foreground_goes_after_its_pods(stage: Stage) -> None:
    await _rolled_out(stage, "deployments", "deployment")
    mark = stage.mark()
    stage.delete("deployments", "deployment", propagation="Foreground")
    await stage.until(lambda: not stage.stored("deployments"))
    deleted = [
        event.resource
        for event in stage.events[mark:]
        if event.type == "DELETED" and event.resource != "events"
    ]
    assert deleted == ["pods", "pods", "replicasets", "deployments"]


# --- DaemonSet --------------------------------------------------------------------------------


@on_stage
async def test_a_daemonset_deleted_in_mid_rollout_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("daemonset")
    await _rolled_out(stage, "daemonsets", "daemonset")
    stage.change("daemonsets", "daemonset", image("app:2"), digest("1"))
    await stage.until(lambda: stage.is_rolled_out("daemonsets", "daemonset"))
    await stage.settle()
    stage.change("daemonsets", "daemonset", image("app:3"))
    mark = stage.mark()
    await stage.until(lambda: "ContainerCreating" in str(stage.stored("pods")))
    await stage.settle()
    stage.delete("daemonsets", "daemonset", propagation="Foreground")
    for resource in ("daemonsets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "DELETE", "/daemonset", resource))


# --- ReplicaSet -------------------------------------------------------------------------------


async def _three_of_two_templates(stage: Stage) -> list[Json]:
    """A ReplicaSet as the recording has it before its evictions, with a budget of two."""
    await _rolled_out(stage, "replicasets", "replicaset")
    stage.change("replicasets", "replicaset", image("app:2"), digest("1"))
    await stage.settle()
    stage.change("replicasets", "replicaset", scale(3))
    stage.change("replicasets", "replicaset", image("app:3"))
    await stage.until(lambda: stage.is_rolled_out("replicasets", "replicaset"))
    selector = {"matchLabels": {"app": "replicaset"}}
    stage.create(
        "poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 2, "selector": selector}},
    )
    await stage.until(lambda: stage.status("poddisruptionbudgets", "b")["disruptionsAllowed"] == 1)
    pods = stage.owned_pods("replicasets", "replicaset")
    return sorted(pods, key=lambda pod: str(pod["spec"]["containers"][0]["image"]))


@on_stage
async def test_one_eviction_is_allowed_by_a_budget_and_proceeds_as_recorded(stage: Stage) -> None:
    steps = recorded("replicaset")
    pods = await _three_of_two_templates(stage)
    mark = stage.mark()
    stage.evict(pods[0])
    await stage.settle()
    for pod in pods[1:]:
        with pytest.raises(ApiError) as refusal:
            stage.evict(pod)
        causes = refusal.value.status()["details"]["causes"]
        assert (refusal.value.code, [cause["reason"] for cause in causes]) == (
            429,
            ["DisruptionBudget"],
        )
        message = "The disruption budget b needs 2 healthy pods and has 2 currently"
        assert causes[0]["message"] == message
    for resource in ("replicasets", "pods"):
        expected = events_after(steps, "POST", "/eviction", resource, 2)
        await stage.shows(mark, resource, expected)


@on_stage
async def test_a_replicaset_deleted_in_the_foreground_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("replicaset")
    await _three_of_two_templates(stage)
    stage.delete("poddisruptionbudgets", "b")
    mark = stage.mark()
    stage.delete("replicasets", "replicaset", propagation="Foreground")
    expected = events_after(steps, "DELETE", "/replicaset", "replicasets")
    # The collector deletes pod by pod; how many are gone in each event is random.
    await stage.shows(mark, "replicasets", expected, merged=2, extra=2)


# --- StatefulSet ------------------------------------------------------------------------------


@on_stage
async def test_a_statefulset_deleted_in_mid_rollout_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("statefulset")
    await _rolled_out(stage, "statefulsets", "statefulset")
    stage.change("statefulsets", "statefulset", image("app:2"), digest("1"))
    await stage.until(lambda: stage.is_rolled_out("statefulsets", "statefulset"))
    await stage.settle()
    stage.change("statefulsets", "statefulset", scale(3))
    await stage.until(lambda: len(stage.stored("pods")) == 3)
    mark = stage.mark()
    stage.change("statefulsets", "statefulset", image("app:3"))
    await stage.until(lambda: stage.status("statefulsets", "statefulset")["availableReplicas"] == 3)
    stage.delete("statefulsets", "statefulset", propagation="Foreground")
    recorded_events = events_after(steps, "DELETE", "/statefulset", "statefulsets")
    # The recording begins a moment earlier, and saw the three pods stop one after the other.
    after_the_change = recorded_events[1:]
    await stage.until(lambda: not stage.stored("statefulsets"))
    events = stage.since(mark + 1, "statefulsets")
    assert not (problems := differences(after_the_change, events, merged=4, extra=1)), problems
