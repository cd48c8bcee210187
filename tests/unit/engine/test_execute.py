# SPDX-License-Identifier: Apache-2.0
"""Running a plan: the order, conflicts with others, and the undo, on a cluster in memory."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.engine.execute import Execution
from container_update.engine.executors.workload import WorkloadExecutor
from container_update.engine.rollout import RolloutWaiter
from container_update.model.errors import ClusterError, UndoIncompleteError, UpdateFailedError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Event, Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action, Plan
from container_update.planning.steps import ConfigStep, ObjectStep, RestartStep
from tests.unit.fakes import FakeCluster, config_map, pod

KEY = ObjectKey("", "ConfigMap", "ns", "cm")
POD = ObjectKey("", "Pod", "ns", "p")
OLD, NEW = {"k": "old"}, {"k": "new"}


def replace_step(cluster: FakeCluster, name: str = "cm", **more: Any) -> ObjectStep:
    key = ObjectKey("", "ConfigMap", "ns", name)
    before = copy.deepcopy(cluster.objects[key])
    content = config_map(name, NEW, **more)
    action = Action.RECREATE if before.get("immutable") else Action.REPLACE
    return ConfigStep(key, action, before, content)


def create_step(name: str) -> ObjectStep:
    key = ObjectKey("", "ConfigMap", "ns", name)
    return ConfigStep(key, Action.CREATE, None, config_map(name, NEW))


def pod_step(
    cluster: FakeCluster, action: Action = Action.RESTART_CONTAINERS, name: str = "p"
) -> ObjectStep:
    key = ObjectKey("", "Pod", "ns", name)
    return RestartStep(key, action, copy.deepcopy(cluster.objects[key]), images={"a": "app:2"})


def run(
    cluster: FakeCluster, *steps: ObjectStep, progress: Progress = lambda _: None, **options: Any
) -> Any:
    plan = Plan("ns", "i-1", steps)
    informer = Informer(cluster)
    with informer:
        informer.list({Collection.of(step.key) for step in steps})
        cluster.calls.clear()
        settings = Options(**{"timeout": 2, **options})
        return Execution(plan, cluster, informer, settings, progress=progress).run()


def failure(cluster: FakeCluster, *steps: ObjectStep, **options: Any) -> tuple[str, Outcome]:
    with pytest.raises(UpdateFailedError) as raised:
        run(cluster, *steps, **options)
    return str(raised.value), raised.value.outcome


def refuse(cluster: FakeCluster, verb: str, name: str, times: int = 1, status: int = 500) -> None:
    left = [times]

    def hook(called: str, key: ObjectKey) -> None:
        if called == verb and key.name == name and left[0]:
            left[0] -= 1
            raise ClusterError(f"{verb} {key}: refused", status=status)

    cluster.hooks.append(hook)


def data(cluster: FakeCluster, name: str = "cm") -> Any:
    return cluster.objects[ObjectKey("", "ConfigMap", "ns", name)]["data"]


def test_configuration_is_replaced_with_the_resource_version_that_was_read() -> None:
    cluster = FakeCluster(config_map("cm", OLD))
    (result,) = run(cluster, replace_step(cluster))
    assert result.state is StepState.DONE
    assert data(cluster) == NEW
    assert cluster.calls == ["replace ConfigMap ns/cm"]


def test_what_is_created_bears_the_instances_label() -> None:
    cluster = FakeCluster()
    run(cluster, create_step("cm"))
    assert cluster.objects[KEY]["metadata"]["labels"] == {"tacker_vnf_instance_id": "i-1"}


def test_a_label_that_another_added_in_the_meantime_stays() -> None:
    cluster = FakeCluster(config_map("cm", OLD))
    step = replace_step(cluster)
    labelled = copy.deepcopy(cluster.objects[KEY])
    labelled["metadata"]["labels"] = {"other": "x"}
    cluster.put(labelled)
    run(cluster, step)
    assert data(cluster) == NEW
    assert cluster.objects[KEY]["metadata"]["labels"] == {"other": "x"}


def test_what_the_failure_of_another_ends_is_stopped_and_not_failed() -> None:
    cluster, written = FakeCluster(pod("p"), pod("q")), threading.Event()
    shown: list[Event] = []

    def refuse_the_second(verb: str, key: ObjectKey) -> None:
        if verb == "replace" and key.name == "p":
            written.set()
        elif verb == "replace":
            assert written.wait(30)
            raise ClusterError("refused", status=403)

    cluster.hooks.append(refuse_the_second)
    steps = pod_step(cluster), pod_step(cluster, name="q")
    failure(cluster, *steps, progress=shown.append, timeout=60, undo_timeout=1)
    first = {r.step.key.name: r for r in reversed(shown) if isinstance(r, StepResult)}
    assert (first["p"].state, first["p"].message) == (StepState.STOPPED, "")
    assert (first["q"].state, first["q"].message) == (StepState.FAILED, "refused")


def test_workloads_are_not_begun_when_configuration_failed() -> None:
    cluster = FakeCluster(config_map("cm", OLD), pod("p"))
    refuse(cluster, "replace", "cm")
    _, outcome = failure(cluster, replace_step(cluster), pod_step(cluster))
    assert outcome.results[1].state is StepState.NOT_STARTED
    assert "replace Pod ns/p" not in cluster.calls


def test_configuration_is_put_back_before_the_workloads_that_read_it() -> None:
    cluster = FakeCluster(config_map("cm", OLD), pod("p"))
    failure(cluster, replace_step(cluster), pod_step(cluster), grace_period=0, undo_timeout=1)
    written = [call for call in cluster.calls if call.startswith("replace")]
    assert written == [
        "replace ConfigMap ns/cm",
        "replace Pod ns/p",
        "replace ConfigMap ns/cm",
        "replace Pod ns/p",
    ]
    assert data(cluster) == OLD
    assert cluster.objects[POD]["spec"]["containers"][0]["image"] == "app:1"


def test_the_undo_goes_on_past_what_it_cannot_put_back_and_names_it() -> None:
    cluster = FakeCluster(config_map("one", OLD), config_map("two", OLD))
    one, two = replace_step(cluster, "one"), replace_step(cluster, "two")
    refuse(cluster, "create", "three")

    def break_undo(verb: str, key: ObjectKey) -> None:
        if verb == "get" and key.name == "two":
            raise ClusterError("the disk is full", status=507)

    cluster.hooks.append(break_undo)
    with pytest.raises(UndoIncompleteError) as raised:
        run(cluster, one, two, create_step("three"), workers=1)
    assert "ConfigMap ns/three failed" in str(raised.value)
    assert "ConfigMap ns/two: the disk is full" in str(raised.value)
    assert data(cluster, "one") == OLD
    states = {r.step.key.name: r.state for r in raised.value.outcome.results}
    assert states["two"] is StepState.UNDO_FAILED
    assert states["one"] is StepState.UNDONE


@pytest.mark.parametrize("immutable", [True, False])
def test_the_undo_of_a_recreated_object_brings_its_old_content_back(immutable: bool) -> None:
    cluster = FakeCluster(config_map("one", OLD, immutable=True))
    step = replace_step(cluster, "one", **({"immutable": True} if immutable else {}))
    refuse(cluster, "create", "two")
    failure(cluster, step, create_step("two"), workers=1)
    restored = cluster.objects[ObjectKey("", "ConfigMap", "ns", "one")]
    assert restored["data"] == OLD
    assert restored["immutable"] is True


def test_an_object_lost_between_its_deletion_and_its_creation_comes_back() -> None:
    cluster = FakeCluster(config_map("one", OLD, immutable=True))
    refuse(cluster, "create", "one")
    failure(cluster, replace_step(cluster, "one"))
    assert data(cluster, "one") == OLD


def test_an_interruption_undoes_and_goes_on_its_way() -> None:
    cluster = FakeCluster(config_map("one", OLD), config_map("two", OLD))

    def interrupt(verb: str, key: ObjectKey) -> None:
        if verb == "replace" and key.name == "two" and "get ConfigMap ns/two" not in cluster.calls:
            raise KeyboardInterrupt

    cluster.hooks.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(cluster, replace_step(cluster, "one"), replace_step(cluster, "two"), workers=1)
    assert data(cluster, "one") == OLD


def test_a_write_that_admission_turns_into_no_change_restarts_nothing() -> None:
    cluster = FakeCluster(pod("p"))
    step = pod_step(cluster)
    cluster.replace = lambda body: copy.deepcopy(cluster.objects[POD])  # type: ignore[method-assign]
    (result,) = run(cluster, step)
    assert result.state is StepState.DONE


def test_an_api_server_that_is_lost_at_the_last_look_undoes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: object) -> None:
        raise ClusterError("list Pods: cannot reach the server")

    monkeypatch.setattr(WorkloadExecutor, "apply", lambda *_: None)
    monkeypatch.setattr(RolloutWaiter, "is_still_done", lambda *_: False)
    monkeypatch.setattr(RolloutWaiter, "wait_again", lost)
    cluster = FakeCluster(config_map("cm", OLD), pod("p"))
    message, _ = failure(cluster, replace_step(cluster), pod_step(cluster), undo_timeout=1)
    assert "Pod ns/p failed: list Pods: cannot reach the server" in message
    assert data(cluster) == OLD
