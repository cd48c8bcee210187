# SPDX-License-Identifier: Apache-2.0
"""The emulated nodes do what real ones do to a pod, as far as a client can see."""

from __future__ import annotations

from typing import Any

from container_update.emulator.kubernetes.kubelet import Behaviour, Exit
from tests.emulator.stage import NAMESPACE, Stage, image, on_stage, pod_spec, workload
from tests.internals.core import Json


def _pod(name: str = "p", **spec: Any) -> Json:
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {**pod_spec(), **spec}}


def _container(name: str = "a", image_name: str = "app:1", **more: Any) -> Json:
    return {"name": name, "image": image_name, **more}


def _state(stage: Stage, name: str = "p", container: str = "a") -> tuple[str, str, int]:
    """Return kind of state, reason and restarts of a container's status."""
    status = stage.status("pods", name)
    for kind in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(kind, []):
            if entry["name"] == container:
                ((state, details),) = entry["state"].items()
                return state, details.get("reason", ""), entry["restartCount"]
    return "", "", 0


def _states(stage: Stage, name: str = "p", container: str = "a") -> list[tuple[str, str, int]]:
    """Return all states in the events, without repetitions."""
    seen: list[tuple[str, str, int]] = []
    for _, pod in stage.since(0, "pods"):
        if pod["metadata"]["name"] != name:
            continue
        statuses = [
            *pod["status"].get("initContainerStatuses", []),
            *pod["status"].get("containerStatuses", []),
        ]
        for entry in statuses:
            ((state, details),) = entry["state"].items()
            now = (state, details.get("reason", ""), entry["restartCount"])
            if entry["name"] == container and (not seen or seen[-1] != now):
                seen.append(now)
    return seen


def _reasons(stage: Stage) -> set[str]:
    return {event["reason"] for event in stage.stored("events")}


async def _runs(stage: Stage, name: str = "p") -> None:
    await stage.until(lambda: stage.status("pods", name)["phase"] == "Running")


# --- images -----------------------------------------------------------------------------------


@on_stage
async def test_an_image_that_fails_twice_is_there_at_the_third_try(stage: Stage) -> None:
    stage.behaviour.flaky_images = {"app:*": 2}
    stage.create("pods", _pod())
    await _runs(stage)
    assert _states(stage) == [
        ("waiting", "ContainerCreating", 0),
        ("waiting", "ErrImagePull", 0),
        ("waiting", "ImagePullBackOff", 0),
        ("waiting", "ErrImagePull", 0),
        ("waiting", "ImagePullBackOff", 0),
        ("running", "", 0),
    ]


@on_stage
async def test_a_good_image_takes_the_place_of_a_bad_one_without_a_restart(stage: Stage) -> None:
    stage.behaviour.backoff_seconds = 3600
    stage.create("pods", _pod(containers=[_container(image_name="app:missing")]))
    await stage.until(lambda: _state(stage)[1] == "ImagePullBackOff")
    stage.change("pods", "p", image("app:2"))
    await _runs(stage)
    assert _state(stage) == ("running", "", 0)


@on_stage
async def test_only_the_container_whose_image_changed_is_restarted(stage: Stage) -> None:
    stage.create("pods", _pod(containers=[_container("a"), _container("b")]))
    await _runs(stage)
    stage.change("pods", "p", image("app:2"))
    await stage.until(lambda: _state(stage, container="a") == ("running", "", 1))
    assert _state(stage, container="b") == ("running", "", 0)
    statuses = stage.status("pods", "p")["containerStatuses"]
    assert [list(entry["lastState"]) for entry in statuses] == [["terminated"], []]


# --- ends and restarts ------------------------------------------------------------------------


@on_stage
async def test_a_crashing_container_is_restarted_once_at_once_and_then_backs_off(
    stage: Stage,
) -> None:
    stage.behaviour.exits = [Exit(code=1)]
    stage.behaviour.backoff_seconds = 3600
    stage.create("pods", _pod())
    await stage.until(lambda: _state(stage)[1] == "CrashLoopBackOff")
    assert _states(stage)[1:] == [
        ("running", "", 0),
        ("terminated", "Error", 0),
        ("running", "", 1),
        ("terminated", "Error", 1),
        ("waiting", "CrashLoopBackOff", 1),
    ]
    entry = stage.status("pods", "p")["containerStatuses"][0]
    assert entry["lastState"]["terminated"]["exitCode"] == 1
    assert (entry["ready"], stage.status("pods", "p")["phase"]) == (False, "Running")
    assert "BackOff" in _reasons(stage)


def test_a_back_off_doubles_up_to_its_limit() -> None:
    behaviour = Behaviour(backoff_seconds=10, backoff_limit_seconds=60)
    assert [behaviour.backoff(failures) for failures in (1, 2, 3, 4, 9)] == [10, 20, 40, 60, 60]


@on_stage
async def test_on_failure_restarts_until_success(stage: Stage) -> None:
    stage.behaviour.exits = [Exit(code=1, times=1), Exit(code=0)]
    stage.create("pods", _pod(restartPolicy="OnFailure"))
    await stage.until(lambda: stage.status("pods", "p")["phase"] == "Succeeded")
    assert _state(stage) == ("terminated", "Completed", 1)


@on_stage
async def test_a_container_that_does_not_stop_is_killed_after_the_grace_period(
    stage: Stage,
) -> None:
    stage.behaviour.stop_seconds = 3600
    stage.create("pods", _pod())
    await _runs(stage)
    stage.delete("pods", "p", grace_seconds=1)
    await stage.until(lambda: not stage.stored("pods"))
    last = next(pod for event, pod in stage.since(0, "pods") if event == "DELETED")
    terminated = last["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "Error")


# --- init containers --------------------------------------------------------------------------


@on_stage
async def test_init_containers_run_one_after_the_other_before_the_rest(stage: Stage) -> None:
    inits = [_container("one"), _container("two")]
    stage.create("pods", _pod(initContainers=inits))
    await _runs(stage)
    started = [
        name for name in ("one", "two", "a") if stage.behaviour.started(NAMESPACE, "p", name)
    ]
    assert started == ["one", "two", "a"]
    shown = [
        tuple(next(iter(entry["state"])) for entry in [
            *pod["status"].get("initContainerStatuses", []),
            *pod["status"].get("containerStatuses", [])])
        for _, pod in stage.since(0, "pods")
    ]  # fmt: skip
    first_running = next(states for states in shown if states and states[2] == "running")
    assert first_running == ("terminated", "terminated", "running")
    assert not any(states[1] == "running" for states in shown if states and states[0] == "running")


@on_stage
async def test_a_pod_is_not_initialized_while_an_init_container_fails(stage: Stage) -> None:
    stage.behaviour.exits = [Exit(container="one")]
    stage.behaviour.backoff_seconds = 3600
    stage.create("pods", _pod(initContainers=[_container("one")]))
    await stage.until(lambda: _state(stage, container="one")[1] == "CrashLoopBackOff")
    conditions = {entry["type"]: entry for entry in stage.status("pods", "p")["conditions"]}
    assert conditions["Initialized"]["reason"] == "ContainersNotInitialized"
    assert stage.status("pods", "p")["phase"] == "Pending"
    assert _state(stage) == ("waiting", "PodInitializing", 0)


@on_stage
async def test_a_sidecar_keeps_running_beside_the_containers(stage: Stage) -> None:
    inits = [_container("side", restartPolicy="Always"), _container("one")]
    stage.create("pods", _pod(initContainers=inits))
    await _runs(stage)
    states = [_state(stage, container=name)[0] for name in ("side", "one", "a")]
    assert states == ["running", "terminated", "running"]


# --- readiness --------------------------------------------------------------------------------


@on_stage
async def test_readiness_comes_after_its_delay(stage: Stage) -> None:
    stage.behaviour.ready_seconds = 0.05
    stage.create("pods", _pod())
    await stage.until(lambda: _state(stage)[0] == "running")
    assert not stage.status("pods", "p")["containerStatuses"][0]["ready"]
    await stage.until(lambda: stage.status("pods", "p")["containerStatuses"][0]["ready"])


# --- configuration ----------------------------------------------------------------------------


def _set(key: str, value: str) -> Any:
    def change(body: Json) -> None:
        body["data"][key] = value

    return change


@on_stage
async def test_a_container_starts_when_the_missing_secret_appears(stage: Stage) -> None:
    reference = {"secretKeyRef": {"name": "s", "key": "k"}}
    stage.create("pods", _pod(containers=[_container(env=[{"name": "E", "valueFrom": reference}])]))
    await stage.until(lambda: _state(stage)[1] == "CreateContainerConfigError")
    waiting = stage.status("pods", "p")["containerStatuses"][0]["state"]["waiting"]
    assert waiting["message"] == 'secret "s" not found'
    stage.create("secrets", {"metadata": {"name": "s"}, "stringData": {"other": "x"}})
    await stage.until(
        lambda: (
            "couldn't find key k in Secret rec/s"
            in str(stage.status("pods", "p")["containerStatuses"])
        )
    )
    stage.change("secrets", "s", _set("k", "dmFsdWU="))
    await _runs(stage)
    (start,) = stage.behaviour.started(NAMESPACE, "p", "a")
    assert start.env == {"E": "value"}


@on_stage
async def test_a_missing_volume_source_keeps_the_pod_creating(stage: Stage) -> None:
    volumes = [{"name": "v", "configMap": {"name": "absent"}}]
    mounts = [{"name": "v", "mountPath": "/etc/v"}]
    stage.create("pods", _pod(containers=[_container(volumeMounts=mounts)], volumes=volumes))
    await stage.until(lambda: "FailedMount" in _reasons(stage))
    assert _state(stage) == ("waiting", "ContainerCreating", 0)
    stage.create("configmaps", {"metadata": {"name": "absent"}, "data": {"f": "text"}})
    await _runs(stage)
    assert stage.behaviour.files(NAMESPACE, "p", "a")["/etc/v/f"] == b"text"


@on_stage
async def test_a_container_keeps_its_environment_until_it_is_started_again(stage: Stage) -> None:
    stage.create("pods", _pod())
    await _runs(stage)
    stage.change("configmaps", "cfg", _set("k", "new"))
    await stage.settle()
    assert [start.env["E"] for start in stage.behaviour.started(NAMESPACE, "p", "a")] == ["v"]
    stage.change("pods", "p", image("app:2"))
    await stage.until(lambda: _state(stage) == ("running", "", 1))
    starts = stage.behaviour.started(NAMESPACE, "p", "a")
    assert [(start.image, start.env["E"]) for start in starts] == [
        ("app:1", "v"), ("app:2", "new"),
    ]  # fmt: skip


@on_stage
async def test_a_mounted_file_follows_its_configmap_unless_mounted_with_a_sub_path(
    stage: Stage,
) -> None:
    stage.behaviour.volume_refresh_seconds = 0.01
    volumes = [{"name": "v", "configMap": {"name": "cfg"}}]
    mounts = [
        {"name": "v", "mountPath": "/etc/all"},
        {"name": "v", "mountPath": "/etc/one", "subPath": "k"},
    ]
    stage.create("pods", _pod(containers=[_container(volumeMounts=mounts)], volumes=volumes))
    await _runs(stage)
    stage.change("configmaps", "cfg", _set("k", "new"))

    def seen() -> list[bytes]:
        files = stage.behaviour.files(NAMESPACE, "p", "a")
        return [files["/etc/all/k"], files["/etc/one"]]

    await stage.until(lambda: seen() == [b"new", b"v"])
    (start,) = stage.behaviour.started(NAMESPACE, "p", "a")
    assert start.files["/etc/all/k"] == b"v"


@on_stage
async def test_a_pod_crashes_when_a_test_asks_for_it(stage: Stage) -> None:
    stage.create("deployments", workload("deployments", "web", 1))
    await stage.until(lambda: stage.is_rolled_out("deployments", "web"))
    (pod,) = stage.stored("pods")
    name = pod["metadata"]["name"]
    stage.behaviour.crash_pod("rec", name, code=3)
    stage.behaviour.crash_pod("rec", "nobody")

    def status() -> Json:
        (container,) = stage.status("pods", name)["containerStatuses"]
        return dict(container)

    await stage.until(lambda: status()["restartCount"] == 1 and status()["ready"])
    assert status()["lastState"]["terminated"]["exitCode"] == 3
    assert stage.get("pods", name)["metadata"]["uid"] == pod["metadata"]["uid"]
