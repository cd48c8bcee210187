# SPDX-License-Identifier: Apache-2.0
"""Updates that fail: the cause is reported, and everything runs as before."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    ContainerUpdateError,
    PackageError,
    Plan,
    PlanError,
    ResumeStarted,
    Step,
    StepResult,
    StepWait,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    resume,
    update,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import ENV, ENV_FROM, config_map, secret, workload
from tests.functional.real import one_of
from tests.internals.core import Collection, Event, ObjectKey, StepState, connect_vim

KINDS = ("Pod", "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
SURGE = "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"
OLD, NEW = config_map(setting="old"), config_map(setting="new")


def is_running(cnf: Cnf, kind: str, name: str, image: str) -> bool:
    pods = cnf.pods(kind, name)
    return bool(pods) and {pod.image for pod in pods.values()} == {image}


@pytest.mark.parametrize("kind", one_of(2, KINDS))
def test_an_image_that_cannot_be_pulled_is_reported_and_undone(cnf: Cnf, kind: str) -> None:
    replicas = 2 if kind in ("Deployment", "ReplicaSet", "StatefulSet") else None
    other = workload(kind, "other")
    old = {"cm": OLD, "w": workload(kind, container=ENV, replicas=replicas), "other": other}
    cnf.instantiate(**old)
    bystanders = cnf.pods(kind, "other")
    bad = workload(kind, container=ENV, image=BAD_IMAGE, replicas=replicas)
    with pytest.raises(UpdateFailedError) as raised:
        cnf.update({"cm": NEW, "w": bad, "other": other})
    message = str(raised.value)
    assert f"{kind} {cnf.namespace}/w failed" in message
    assert "container main: " in message
    assert "ImagePull" in message
    assert "Everything is as before" in message
    outcome = raised.value.outcome
    assert {result.state for result in outcome.results} == {StepState.UNDONE}
    assert outcome.requests > 20
    assert outcome.seconds > max(result.seconds for result in outcome.results)
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    assert is_running(cnf, kind, "w", IMAGES[0])
    assert cnf.pods(kind, "other") == bystanders
    assert cnf.plan(old).is_empty


@pytest.mark.parametrize("kind", one_of(2, KINDS, everywhere=True))
def test_a_workload_that_does_not_get_ready_in_time_is_undone(cnf: Cnf, kind: str) -> None:
    """Its new configuration lacks a required key; the grace period is longer than the timeout."""
    cnf.instantiate(cm=OLD, w=workload(kind, container=ENV))
    options = replace(cnf.options, timeout=3, grace_period=60)
    with pytest.raises(UpdateFailedError, match="not ready in time"):
        cnf.update({"cm": config_map(another="key"), "w": workload(kind, container=ENV)}, options)
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    assert is_running(cnf, kind, "w", IMAGES[0])


@pytest.mark.parametrize(("kind", "spec"), [("Deployment", ""), ("DaemonSet", SURGE)])
def test_an_update_in_the_midst_of_a_roll_that_is_stuck_is_undone_to_that(
    cnf: Cnf, kind: str, spec: str
) -> None:
    cnf.instantiate(w=workload(kind, replicas=2, spec=spec))
    stuck = cnf.get(kind, "w")
    number = len(cnf.pods(kind, "w"))
    # its controller keeps the oldest pod of a node, and tells it by seconds
    pods = cnf.admin.list(Collection("", "Pod", cnf.namespace)).items
    created = max(pod["metadata"]["creationTimestamp"] for pod in pods)
    until(lambda: f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}" > created)
    stuck["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(cnf.admin, stuck)
    until(lambda: len(cnf.pods(kind, "w")) > number)
    cnf.old = cnf.package({"w.yaml": workload(kind, image=BAD_IMAGE, replicas=2, spec=spec)})
    worse = workload(kind, image=f"{BAD_IMAGE}-too", replicas=2, spec=spec)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        cnf.update({"w": worse}, replace(cnf.options, undo_timeout=20))
    running = [pod.image for pod in cnf.pods(kind, "w").values()]
    assert running.count(IMAGES[0]) == number


def test_a_pod_that_comes_back_with_the_old_template_is_no_new_one(cnf: Cnf) -> None:
    """A pod that is lost while the new image cannot be pulled: its ReplicaSet replaces it."""
    cnf.instantiate(w=workload("Deployment"))
    (old,) = cnf.pods("Deployment", "w")
    lost = ObjectKey("", "Pod", cnf.namespace, old)
    came_back: list[str] = []

    def images(cnf: Cnf, but: str) -> set[str]:
        pods = cnf.pods("Deployment", "w").items()
        return {pod.image for name, pod in pods if name != but}

    def lose(event: Event) -> None:
        if not came_back and isinstance(event, StepWait) and event.trouble:
            cnf.admin.delete(lost)
            until(lambda: IMAGES[0] in images(cnf, but=old))
            came_back.append(event.trouble)

    new = cnf.request({"w": workload("Deployment", image=BAD_IMAGE)})
    options = replace(cnf.options, timeout=25, grace_period=4)
    with pytest.raises(UpdateFailedError, match="Everything is as before") as raised:
        update(new, cnf.cluster, options, progress=lose)
    assert came_back
    assert "not ready in time" not in str(raised.value)


def test_an_undo_says_that_somebody_has_paused_a_deployment(cnf: Cnf) -> None:
    """Its controller would replace no pod, however long the undo waits."""
    later = "annotations: {container-update/order: '1'}"
    bad = workload("Deployment", "bad", metadata=later)
    cnf.instantiate(w=workload("Deployment"), bad=bad)

    def pause(event: Event) -> None:
        done = isinstance(event, StepResult) and event.state is StepState.DONE
        if done and event.step.key.name == "w":
            live = cnf.get("Deployment", "w")
            overwrite(cnf.admin, {**live, "spec": {**live["spec"], "paused": True}})

    worse = bad.replace(IMAGES[0], BAD_IMAGE)
    new = cnf.request({"w": workload("Deployment", image=IMAGES[1]), "bad": worse})
    options = replace(cnf.options, undo_timeout=1)
    with pytest.raises(UndoIncompleteError, match=r"w: .*paused .*kubectl rollout resume dep"):
        update(new, cnf.cluster, options, progress=pause)
    live = cnf.get("Deployment", "w")
    overwrite(cnf.admin, {**live, "spec": {**live["spec"], "paused": False}})
    assert cnf.rollback() is not None
    assert is_running(cnf, "Deployment", "w", IMAGES[0])


def test_a_failed_workload_has_all_others_restored(cnf: Cnf) -> None:
    files = {
        "cm": OLD,
        "sec": secret(password="old"),
        "good": workload("Deployment", "good", container=ENV_FROM),
        "bad": workload("Deployment", "bad", container=ENV_FROM),
        "pod": workload("Pod", "pod", container=ENV_FROM),
    }
    cnf.instantiate(**files)
    password = cnf.get("Secret", "sec")["data"]
    new = {
        "cm": NEW,
        "sec": secret(password="new", another="x"),
        "good": workload("Deployment", "good", container=ENV_FROM, image=IMAGES[1]),
        "bad": workload("Deployment", "bad", container=ENV_FROM, image=BAD_IMAGE),
        "pod": workload("Pod", "pod", container=ENV_FROM),
    }
    with pytest.raises(UpdateFailedError):
        cnf.update(new)
    assert cnf.get("Secret", "sec")["data"] == password
    for kind, name in (("Deployment", "good"), ("Deployment", "bad"), ("Pod", "pod")):
        assert is_running(cnf, kind, name, IMAGES[0]), name
    assert cnf.plan(files).is_empty


def test_a_new_object_is_gone_again_after_a_failure(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment"))
    listed = {"w": workload("Deployment", image=BAD_IMAGE), "cm": NEW}
    with pytest.raises(UpdateFailedError):
        cnf.update(listed, config_paths=("Files/cm.yaml",))
    assert cnf.admin.get(cnf.key("ConfigMap", "cm")) is None


def test_an_exception_of_a_progress_callback_does_not_decide_about_a_resume_either(
    cnf: Cnf, caplog: pytest.LogCaptureFixture
) -> None:
    cancel = CancelToken()

    def broken(event: Event) -> None:
        if not isinstance(event, Plan):
            cancel.request("by a test", keep_journal=True)
        raise BrokenPipeError

    cnf.instantiate(cm=OLD, w=workload("Deployment", container=ENV))
    request = cnf.request({"cm": NEW, "w": workload("Deployment", container=ENV)})
    with pytest.raises(UpdateInterruptedError):
        update(request, cnf.cluster, cnf.options, cancel, broken)
    outcome = resume(cnf.cluster, cnf.options, progress=broken, **cnf.where)
    assert outcome is not None
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert caplog.text.count("broken failed") == 2


def stopped(at: type[Event], *, leaves: bool) -> dict[str, Any]:
    """Return the arguments that stop an operation at the first event of a kind."""
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, at):
            cancel.request("by the test", keep_journal=leaves)

    return {"cancel": cancel, "progress": stop}


@pytest.mark.parametrize("leaves", [False, True], ids=["undone", "left for a rollback"])
@pytest.mark.parametrize("at", [ResumeStarted, Step, StepResult])
def test_a_resume_that_is_stopped_goes_back_by_what_the_interrupted_run_did(
    cnf: Cnf, at: type[Event], leaves: bool
) -> None:
    cnf.instantiate(cm=OLD, w=workload("Deployment", container=ENV))
    new = {"cm": NEW, "w": workload("Deployment", container=ENV, image=IMAGES[1])}
    with pytest.raises(UpdateInterruptedError):
        update(cnf.request(new), cnf.cluster, cnf.options, **stopped(StepResult, leaves=True))
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}
    with pytest.raises(UpdateInterruptedError):
        resume(cnf.cluster, cnf.options, **stopped(at, leaves=leaves), **cnf.where)
    assert (cnf.rollback() is not None) is leaves
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    assert is_running(cnf, "Deployment", "w", IMAGES[0])


# --- refused before anything is written ---------------------------------------------------------


def refused(
    cnf: Cnf, error: type[ContainerUpdateError], files: dict[str, str], **more: object
) -> str:
    before = [cnf.get("ConfigMap", "cm"), cnf.get("Deployment", "w")["spec"]]
    with pytest.raises(error) as raised:
        cnf.update(files, **more)
    assert [cnf.get("ConfigMap", "cm"), cnf.get("Deployment", "w")["spec"]] == before
    return str(raised.value)


@pytest.fixture
def deployed(cnf: Cnf) -> Cnf:
    """A ConfigMap and a Deployment that uses it."""
    cnf.instantiate(cm=OLD, w=workload("Deployment", container=ENV))
    return cnf


AFTER = {"cm": NEW, "w": workload("Deployment", container=ENV)}


def test_a_namespace_that_does_not_exist_is_refused(deployed: Cnf) -> None:
    """Reported to accounts that may read there; one with a Role in one namespace may not (403)."""
    deployed.cluster = deployed.admin
    message = refused(deployed, PlanError, AFTER, namespace="no-such-namespace")
    assert "namespace no-such-namespace does not exist" in message


@pytest.mark.parametrize(
    ("files", "more", "expected"),
    [
        pytest.param(
            {"cm": "data: [", "w": workload("Deployment")},
            {},
            "Files/cm.yaml",
            id="a YAML error",
        ),
        pytest.param(
            {"cm": NEW, "w": workload("Deployment")},
            {"config_paths": ("../outside.yaml",)},
            "outside",
            id="a path that leaves the package",
        ),
    ],
)
def test_a_wrong_package_is_refused(
    deployed: Cnf, files: dict[str, str], more: dict[str, object], expected: str
) -> None:
    assert expected in refused(deployed, PackageError, files, **more)


def test_an_eviction_that_a_budget_never_allows_times_out_and_is_undone(cnf: Cnf) -> None:
    budget = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: w}}
"""
    cnf.instantiate(pdb=budget, w=workload("ReplicaSet", replicas=2))
    key = ObjectKey("policy", "PodDisruptionBudget", cnf.namespace, "keep")
    until(lambda: (cnf.admin.get(key) or {}).get("status", {}).get("currentHealthy") == 2)
    before = cnf.pods("ReplicaSet", "w")
    with pytest.raises(UpdateFailedError, match=r"disruption budget\. Everything is as before"):
        cnf.update(
            {"pdb": budget, "w": workload("ReplicaSet", image=IMAGES[1], replicas=2)},
            replace(cnf.options, timeout=3),
        )
    assert cnf.pods("ReplicaSet", "w") == before


def test_an_api_server_that_cannot_be_reached_is_reported() -> None:
    with (
        connect_vim("https://127.0.0.1:1", bearer_token="x") as cluster,
        pytest.raises(ClusterError, match="cannot reach"),
    ):
        cluster.list(Collection("", "Pod", "default"))


def test_a_new_object_whose_name_another_owner_uses_is_refused(deployed: Cnf) -> None:
    foreign_object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "taken", "namespace": deployed.namespace},
        "data": {"whose": "theirs"},
    }
    deployed.cluster.create(foreign_object)
    files = {**AFTER, "taken": config_map("taken", whose="ours")}
    message = refused(deployed, PlanError, files, config_paths=("Files/taken.yaml",))
    assert "does not have the label" in message
    assert deployed.get("ConfigMap", "taken")["data"] == {"whose": "theirs"}


@pytest.mark.parametrize("in_one_file", [True, False], ids=["in its file", "in a file of its name"])
def test_another_hash_in_a_name_is_refused_and_a_change_of_the_package_does_it(
    cnf: Cnf, in_one_file: bool
) -> None:
    """As kustomize's generators name ConfigMaps by their content."""

    def release(name: str) -> dict[str, str]:
        user = workload("Deployment", container=ENV.replace("name: cm", f"name: {name}"))
        settings = config_map(name, setting=name)
        if in_one_file:
            return {"all": f"{settings}---\n{user}"}
        return {"w": user, name: settings}

    cnf.instantiate(**release("cm-1"))
    before = cnf.pods("Deployment", "w")
    with pytest.raises(PackageError, match=r"cm-2 .*cm-1 .*change the package as a whole"):
        cnf.update(release("cm-2"))
    assert cnf.pods("Deployment", "w") == before
    new = cnf.package({f"{name}.yaml": text for name, text in release("cm-2").items()})
    request = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    change_package(request, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)
    assert cnf.admin.get(cnf.key("ConfigMap", "cm-1")) is None
    assert cnf.get("ConfigMap", "cm-2")["data"] == {"setting": "cm-2"}
    assert not before.keys() & cnf.pods("Deployment", "w").keys()
