# SPDX-License-Identifier: Apache-2.0
"""Pods, owners, namespaces, Jobs and Services: what a client sees is what was recorded."""

from __future__ import annotations

import pytest

from container_update.emulator.kubernetes.kubelet import Exit
from tests.emulator.stage import NAMESPACE, Stage, image, on_stage, pod_spec, workload
from tests.emulator.watchfacts import events_after, recorded, sequences
from tests.internals.core import Json

# --- pods -------------------------------------------------------------------------------------


def _plain_pod(name: str, image_name: str = "app:1", **container: object) -> Json:
    containers = [{"name": "a", "image": image_name, **container}]
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": containers}}


async def _running_pod(stage: Stage) -> None:
    stage.create("pods", _plain_pod("p", env=[{"name": "X", "value": "1"}]))
    await stage.until(lambda: stage.status("pods", "p")["phase"] == "Running")


@on_stage
async def test_a_pod_comes_up_as_recorded(stage: Stage) -> None:
    await _running_pod(stage)
    await stage.shows(0, "pods", events_after(recorded("pods"), "POST", "/pods", "pods"))


@on_stage
async def test_a_changed_image_restarts_the_container_in_the_same_pod(stage: Stage) -> None:
    await _running_pod(stage)
    uid, mark = stage.get("pods", "p")["metadata"]["uid"], stage.mark()
    stage.change("pods", "p", image("app:2"))
    await stage.shows(mark, "pods", events_after(recorded("pods"), "PUT", "/pods/p", "pods"))
    assert stage.get("pods", "p")["metadata"]["uid"] == uid


@on_stage
async def test_a_deleted_pod_stops_and_goes_as_recorded(stage: Stage) -> None:
    await _running_pod(stage)
    stage.change("pods", "p", image("app:2"))
    await stage.until(lambda: _restarts(stage.get("pods", "p")) == [1])
    mark = stage.mark()
    stage.delete("pods", "p")
    await stage.shows(mark, "pods", events_after(recorded("pods"), "DELETE", "/pods/p", "pods", 1))


def _restarts(pod: Json) -> list[int]:
    return [status["restartCount"] for status in pod["status"]["containerStatuses"]]


@on_stage
async def test_a_pod_without_its_configmap_waits_as_recorded(stage: Stage) -> None:
    reference = {"configMapKeyRef": {"name": "absent", "key": "k"}}
    stage.create("pods", _plain_pod("m", env=[{"name": "X", "valueFrom": reference}]))
    expected = events_after(recorded("pods"), "POST", "/pods", "pods", 1)
    # The recording's nodes say at once what is wrong; ours begin with ContainerCreating.
    await stage.shows(0, "pods", expected, extra=1)


@on_stage
async def test_an_image_that_is_not_there_ends_in_a_back_off_as_recorded(stage: Stage) -> None:
    stage.behaviour.backoff_seconds = 60
    stage.create("pods", _plain_pod("b", "bad:missing", env=[{"name": "X", "value": "1"}]))
    expected = events_after(recorded("pods"), "POST", "/pods", "pods", 2)
    # Likewise; and a real kubelet says ErrImagePull before it backs off.
    await stage.shows(0, "pods", expected, extra=2)


# --- owners -----------------------------------------------------------------------------------


async def _adopted(stage: Stage) -> None:
    stage.create("pods", _plain_pod("orphan") | {
        "metadata": {"name": "orphan", "labels": {"app": "adopt"}}, "spec": pod_spec()
    })  # fmt: skip
    await stage.until(lambda: stage.status("pods", "orphan")["phase"] == "Running")
    await stage.settle()


@on_stage
async def test_a_replicaset_adopts_a_matching_pod_and_makes_only_what_is_missing(
    stage: Stage,
) -> None:
    await _adopted(stage)
    mark = stage.mark()
    stage.create("replicasets", workload("replicasets", "adopt"))
    steps = recorded("owners-and-finalizers")
    await stage.shows(mark, "pods", events_after(steps, "POST", "/replicasets", "pods"))


@on_stage
async def test_orphaned_pods_stay_without_an_owner(stage: Stage) -> None:
    await _adopted(stage)
    stage.create("replicasets", workload("replicasets", "adopt"))
    await stage.until(lambda: stage.is_rolled_out("replicasets", "adopt"))
    mark = stage.mark()
    stage.delete("replicasets", "adopt", propagation="Orphan")
    steps = recorded("owners-and-finalizers")
    await stage.shows(mark, "pods", events_after(steps, "DELETE", "/adopt", "pods"))
    assert not stage.stored("replicasets")


@on_stage
async def test_what_names_an_owner_that_never_was_is_collected(stage: Stage) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "no", "uid": "no-such-uid"}
    stage.create("secrets", {"metadata": {"name": "left", "ownerReferences": [owner]}})
    await stage.until(lambda: not stage.stored("secrets"))


@on_stage
async def test_what_has_another_owner_left_stays_and_forgets_the_one_that_went(
    stage: Stage,
) -> None:
    owners = [stage.create("configmaps", {"metadata": {"name": name}}) for name in ("x", "y")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
         "uid": owner["metadata"]["uid"]}
        for owner in owners
    ]  # fmt: skip
    stage.create("secrets", {"metadata": {"name": "kept", "ownerReferences": references}})
    stage.delete("configmaps", "x")
    await stage.until(
        lambda: stage.get("secrets", "kept")["metadata"]["ownerReferences"] == references[1:]
    )


# --- namespaces -------------------------------------------------------------------------------


@on_stage
async def test_a_deleted_namespace_is_emptied_and_goes_as_recorded(stage: Stage) -> None:
    steps = recorded("namespace-delete")
    stage.create("deployments", workload("deployments", "d"))
    stage.create("jobs", {"metadata": {"name": "j"}, "spec": _job_spec()})
    stage.create("services", {"metadata": {"name": "s"}, "spec": _service_spec("d")})
    await stage.until(lambda: stage.is_rolled_out("deployments", "d"))
    await stage.until(lambda: stage.status("jobs", "j").get("ready") == 1)
    mark = stage.mark()
    stage.registry.delete("namespaces", "", NAMESPACE)
    await stage.until(lambda: stage.registry.get("namespaces", "", NAMESPACE) is None)
    seen = sequences(stage.since(mark, "namespaces"))[NAMESPACE]
    expected = sequences(events_after(steps, "DELETE", "/namespaces/rec", "namespaces"))["rec"]
    assert seen[0][:-1] == expected[0]
    assert seen[0][-1][0] == "DELETED"
    remaining = [resource.key for resource in stage.registry.catalogue
            if resource.namespaced and stage.registry.list(resource.key, NAMESPACE)]  # fmt: skip
    assert remaining == []


# --- Jobs -------------------------------------------------------------------------------------


def _job_spec(**more: object) -> Json:
    spec = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "app:1"}]}
    return {"template": {"spec": spec}, **more}


@on_stage
async def test_a_job_starts_as_recorded(stage: Stage) -> None:
    steps = recorded("jobs")
    stage.create("jobs", {"metadata": {"name": "j"}, "spec": _job_spec()})
    await stage.shows(0, "pods", events_after(steps, "POST", "/jobs", "pods"))
    expected = events_after(steps, "POST", "/jobs", "jobs")
    plain = [(kind, _without_start(obj)) for kind, obj in expected]
    await stage.until(lambda: stage.status("jobs", "j").get("ready") == 1)
    events = [(kind, _without_start(obj)) for kind, obj in stage.since(0, "jobs")]
    assert sequences(events) == sequences(plain)


def _without_start(job: Json) -> Json:
    """Replace the start time, which differs, by whether there is one."""
    status = job["status"]
    if "startTime" in status:
        status = {**status, "startTime": "set"}
    labels = dict.fromkeys(job["metadata"]["labels"], "")
    return {**job, "status": status, "metadata": {**job["metadata"], "labels": labels}}


@on_stage
async def test_a_job_is_complete_when_enough_pods_have_succeeded(stage: Stage) -> None:
    stage.behaviour.exits = [Exit(code=0)]
    stage.create("jobs", {"metadata": {"name": "j"}, "spec": _job_spec(completions=3)})
    await stage.until(lambda: stage.status("jobs", "j").get("succeeded") == 3)
    await stage.until(lambda: "completionTime" in stage.status("jobs", "j"))
    status = stage.status("jobs", "j")
    assert [(entry["type"], entry["status"]) for entry in status["conditions"]] == [
        ("SuccessCriteriaMet", "True"), ("Complete", "True"),
    ]  # fmt: skip
    await stage.settle()
    pods = stage.stored("pods", "j-")
    assert len(pods) == 3
    assert not any(pod["metadata"].get("finalizers") for pod in pods)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_pods_are_not_held_by_a_job_that_is_gone(propagation: str) -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        stage.create("jobs", {"metadata": {"name": "j"}, "spec": _job_spec()})
        await stage.until(lambda: stage.status("jobs", "j").get("ready") == 1)
        stage.delete("jobs", "j", propagation=propagation)
        await stage.until(lambda: not stage.stored("jobs"))
        if propagation == "Orphan":
            (pod,) = stage.stored("pods")
            await stage.until(lambda: "finalizers" not in stage.stored("pods")[0]["metadata"])
            stage.delete("pods", pod["metadata"]["name"])
        await stage.until(lambda: not stage.stored("pods"))

    scenario()


@on_stage
async def test_a_job_fails_after_its_backoff_limit(stage: Stage) -> None:
    stage.behaviour.exits = [Exit(code=3)]
    stage.create("jobs", {"metadata": {"name": "j"}, "spec": _job_spec(backoffLimit=1)})
    await stage.until(lambda: stage.status("jobs", "j").get("conditions"))
    status = stage.status("jobs", "j")
    assert [(entry["type"], entry["reason"]) for entry in status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded"),
    ]  # fmt: skip
    assert status["failed"] == 2


@on_stage
async def test_a_cronjob_makes_a_job_of_its_template_when_its_hour_strikes(stage: Stage) -> None:
    stage.create(
        "cronjobs",
        {"metadata": {"name": "cj"},
         "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": _job_spec()}}},
    )  # fmt: skip
    stage.behaviour.run_cronjob(NAMESPACE, "cj")
    await stage.until(lambda: stage.stored("jobs", "cj-"))

    def new_image(body: Json) -> None:
        template = body["spec"]["jobTemplate"]["spec"]["template"]
        template["spec"]["containers"][0]["image"] = "app:2"

    stage.change("cronjobs", "cj", new_image)
    stage.behaviour.run_cronjob(NAMESPACE, "cj")
    await stage.until(lambda: len(stage.stored("pods", "cj-")) == 2)
    images = {pod["spec"]["containers"][0]["image"] for pod in stage.stored("pods", "cj-")}
    assert images == {"app:1", "app:2"}
    await stage.until(lambda: len(stage.status("cronjobs", "cj").get("active", [])) == 2)


# --- Services ---------------------------------------------------------------------------------


def _service_spec(app: str) -> Json:
    return {"selector": {"app": app}, "ports": [{"name": "http", "port": 8089, "targetPort": 80}]}


def _switch(body: Json) -> None:
    body["spec"]["selector"] = {"app": "green"}


def _slice(obj: Json) -> list[tuple[str, bool, bool, bool]]:
    return [
        (endpoint["targetRef"]["name"].partition("-")[0], *endpoint["conditions"].values())
        for endpoint in obj["endpoints"]
    ]


@on_stage
async def test_a_service_switches_from_one_deployment_to_the_other_in_one_event(
    stage: Stage,
) -> None:
    steps = recorded("service-switch")
    for name in ("blue", "green"):
        stage.create("deployments", workload("deployments", name))
    await stage.until(lambda: stage.is_rolled_out("deployments", "blue"))
    await stage.until(lambda: stage.is_rolled_out("deployments", "green"))
    stage.create("services", {"metadata": {"name": "svc"}, "spec": _service_spec("blue")})
    await stage.until(lambda: stage.stored("endpointslices"))
    stage.change("services", "svc", _switch)
    await stage.until(lambda: stage.stored("endpointslices")[0]["metadata"]["generation"] == 2)
    stage.delete("deployments", "blue", propagation="Background")
    await stage.until(lambda: len(stage.stored("pods")) == 2)
    recorded_kinds = [
        (kind, obj["metadata"]["generation"], [tuple(entry.values())[:3] for entry in
         obj["endpoints"]], obj["ports"])
        for method in ("POST", "PATCH")
        for kind, obj in events_after(steps, method, "/services" if method == "POST" else "/svc",
                                      "endpointslices")
    ]  # fmt: skip
    events = [
        (kind, obj["metadata"]["generation"], [tuple(entry["conditions"].values()) for entry in
         obj["endpoints"]], obj["ports"])
        for kind, obj in stage.since(0, "endpointslices")
    ]  # fmt: skip
    assert events == recorded_kinds
    assert [_slice(obj)[0][0] for _, obj in stage.since(0, "endpointslices")] == ["blue", "green"]
    addresses = stage.get("endpoints", "svc")["subsets"][0]
    assert addresses["ports"] == [{"name": "http", "port": 80, "protocol": "TCP"}]
    assert [entry["targetRef"]["name"].partition("-")[0] for entry in addresses["addresses"]] == [
        "green", "green",
    ]  # fmt: skip


@on_stage
async def test_a_pod_on_its_way_out_serves_but_is_not_ready_in_the_slice(stage: Stage) -> None:
    stage.behaviour.stop_seconds = 30
    stage.create("pods", _plain_pod("p"))
    stage.create("services", {"metadata": {"name": "svc"}, "spec": _service_spec("p")})

    def conditions() -> list[Json]:
        slices = stage.stored("endpointslices")
        return [entry["conditions"] for entry in slices[0]["endpoints"]] if slices else []

    await stage.until(
        lambda: conditions() == [{"ready": True, "serving": True, "terminating": False}]
    )
    stage.delete("pods", "p")
    await stage.until(
        lambda: conditions() == [{"ready": False, "serving": True, "terminating": True}]
    )
    stage.delete("pods", "p", grace_seconds=0)
    await stage.until(lambda: conditions() == [])


@on_stage
async def test_a_deleted_service_takes_its_endpoints_along(stage: Stage) -> None:
    stage.create("pods", _plain_pod("p"))
    stage.create("services", {"metadata": {"name": "svc"}, "spec": _service_spec("p")})
    await stage.until(lambda: stage.stored("endpointslices") and stage.stored("endpoints"))
    stage.delete("services", "svc")
    await stage.until(lambda: not stage.stored("endpointslices") and not stage.stored("endpoints"))
