# SPDX-License-Identifier: Apache-2.0
"""Rollouts, evictions and deletions show a client what a real API server 1.36 was recorded to show.

Equality of the sequences of states, object by object, unless a test says how many may be merged:
two pods that the recording saw become ready one after the other do so at the same moment here.
"""

from __future__ import annotations

import pytest

from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.model.objects import Json
from tests.emulator.stage import Stage, digest, image, on_stage, scale, workload
from tests.emulator.watchfacts import differences, events_after, recorded

BOTH_READY_AT_ONCE = {"merged": 1}


# --- Deployment -------------------------------------------------------------------------------


async def _deploy(stage: Stage, name: str, replicas: int = 2, **spec: object) -> None:
    stage.create("deployments", workload("deployments", name, replicas, **spec))
    await stage.until(lambda: stage.is_rolled_out("deployments", name))
    await stage.settle()


@on_stage
async def test_a_new_deployment_comes_up_as_recorded(stage: Stage) -> None:
    steps = recorded("deployment")
    await _deploy(stage, "deployment")
    watched = {
        "deployments": BOTH_READY_AT_ONCE,
        "replicasets": BOTH_READY_AT_ONCE,
        "pods": {},
    }
    for resource, tolerance in watched.items():
        expected = events_after(steps, "POST", "/deployments", resource)
        await stage.shows(0, resource, expected, **tolerance)


@on_stage
async def test_a_changed_template_rolls_as_recorded(stage: Stage) -> None:
    steps = recorded("deployment")
    await _deploy(stage, "deployment")
    mark = stage.mark()
    stage.change("deployments", "deployment", image("app:2"), digest("1"))
    for resource in ("deployments", "replicasets", "pods"):
        expected = events_after(steps, "PUT", "/deployment", resource)
        await stage.shows(mark, resource, expected)


@on_stage
async def test_a_rollout_without_surplus_takes_pod_after_pod_as_recorded(stage: Stage) -> None:
    steps = recorded("deployment-strategies")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await _deploy(stage, "surge", 4, strategy=strategy)
    mark = stage.mark()
    stage.change("deployments", "surge", image("app:2"))
    for resource in ("deployments", "replicasets", "pods"):
        expected = events_after(steps, "PATCH", "/surge", resource)
        await stage.shows(mark, resource, expected)


@on_stage
async def test_recreate_stops_every_old_pod_before_it_starts_a_new_one(stage: Stage) -> None:
    steps = recorded("deployment-strategies")
    await _deploy(stage, "recreate", strategy={"type": "Recreate"})
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
    await _deploy(stage, "deployment", 3)

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
    await _deploy(stage, "deployment")
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


async def _daemon(stage: Stage, name: str, **spec: object) -> None:
    stage.create("daemonsets", workload("daemonsets", name, None, **spec))
    await stage.until(lambda: stage.is_rolled_out("daemonsets", name))
    await stage.settle()


@on_stage
async def test_a_new_daemonset_comes_up_as_recorded(stage: Stage) -> None:
    steps = recorded("daemonset")
    await _daemon(stage, "daemonset")
    await stage.shows(0, "pods", events_after(steps, "POST", "/daemonsets", "pods"))
    # The emulator sends one more state before the first pod, as the recording does in updates.
    expected = events_after(steps, "POST", "/daemonsets", "daemonsets")
    await stage.shows(0, "daemonsets", expected, extra=1)


@on_stage
async def test_a_daemonset_rolls_as_recorded(stage: Stage) -> None:
    steps = recorded("daemonset")
    await _daemon(stage, "daemonset")
    mark = stage.mark()
    stage.change("daemonsets", "daemonset", image("app:2"), digest("1"))
    for resource in ("daemonsets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "PUT", "/daemonset", resource))


@on_stage
async def test_a_daemonset_deleted_in_mid_rollout_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("daemonset")
    await _daemon(stage, "daemonset")
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


@on_stage
async def test_a_daemonset_with_on_delete_replaces_the_evicted_pod_as_recorded(
    stage: Stage,
) -> None:
    name, steps = "ondelete-daemonsets", recorded("ondelete")
    await _daemon(stage, name, updateStrategy={"type": "OnDelete"})
    stage.change("daemonsets", name, image("app:2"))
    await stage.until(lambda: stage.status("daemonsets", name)["observedGeneration"] == 2)
    mark = stage.mark()
    stage.evict(stage.owned_pods("daemonsets", name)[0])
    for resource in ("daemonsets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "POST", "/eviction", resource))


# --- ReplicaSet -------------------------------------------------------------------------------


async def _replicate(stage: Stage, name: str, replicas: int = 2) -> None:
    stage.create("replicasets", workload("replicasets", name, replicas))
    await stage.until(lambda: stage.is_rolled_out("replicasets", name))
    await stage.settle()


@on_stage
async def test_a_new_replicaset_comes_up_as_recorded(stage: Stage) -> None:
    steps = recorded("replicaset")
    await _replicate(stage, "replicaset")
    await stage.shows(0, "pods", events_after(steps, "POST", "/replicasets", "pods"))
    expected = events_after(steps, "POST", "/replicasets", "replicasets")
    await stage.shows(0, "replicasets", expected, **BOTH_READY_AT_ONCE)


@on_stage
async def test_a_replicaset_with_a_new_template_keeps_its_pods(stage: Stage) -> None:
    steps = recorded("replicaset")
    await _replicate(stage, "replicaset")
    mark = stage.mark()
    stage.change("replicasets", "replicaset", image("app:2"), digest("1"))
    for resource in ("replicasets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "PUT", "/replicaset", resource))


async def _three_of_two_templates(stage: Stage) -> list[Json]:
    """A ReplicaSet as the recording has it before its evictions, with a budget of two."""
    await _replicate(stage, "replicaset")
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


async def _order(stage: Stage, name: str, replicas: int = 2, **spec: object) -> None:
    stage.create("statefulsets", workload("statefulsets", name, replicas, **spec))
    await stage.until(lambda: stage.is_rolled_out("statefulsets", name))
    await stage.settle()


@on_stage
async def test_a_new_statefulset_comes_up_in_order_as_recorded(stage: Stage) -> None:
    steps = recorded("statefulset")
    await _order(stage, "statefulset")
    for resource in ("statefulsets", "pods"):
        await stage.shows(0, resource, events_after(steps, "POST", "/statefulsets", resource))


@on_stage
async def test_a_statefulset_rolls_from_the_last_pod_to_the_first_as_recorded(
    stage: Stage,
) -> None:
    steps = recorded("statefulset")
    await _order(stage, "statefulset")
    mark = stage.mark()
    stage.change("statefulsets", "statefulset", image("app:2"), digest("1"))
    for resource in ("statefulsets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "PUT", "/statefulset", resource))


@on_stage
async def test_a_statefulset_deleted_in_mid_rollout_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("statefulset")
    await _order(stage, "statefulset")
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


@on_stage
async def test_a_statefulset_with_on_delete_replaces_the_evicted_pod_as_recorded(
    stage: Stage,
) -> None:
    name, steps = "ondelete-statefulsets", recorded("ondelete")
    await _order(stage, name, updateStrategy={"type": "OnDelete"})
    stage.change("statefulsets", name, image("app:2"))
    await stage.until(lambda: stage.status("statefulsets", name)["observedGeneration"] == 2)
    mark = stage.mark()
    stage.evict(stage.get("pods", f"{name}-0"))
    for resource in ("statefulsets", "pods"):
        await stage.shows(mark, resource, events_after(steps, "POST", "/eviction", resource, 1))
