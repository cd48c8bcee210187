# SPDX-License-Identifier: Apache-2.0
"""Which workloads restart, shown by new pods or containers, and which do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from container_update import Outcome, change_package
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import (
    ENV,
    ENV_FROM,
    MOUNT,
    PROJECTED,
    SUB_PATH,
    VOLUME,
    config_map,
    secret,
    workload,
)
from tests.functional.real import one_of
from tests.internals.core import CHANGED_KEYS, CHANGED_OBJECTS, Action, StepState

CONTROLLED = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
KINDS = ("Pod", *CONTROLLED)

INIT = """
initContainers:
- name: prepare
  image: %s
  command: ["true"]
  env:
  - name: SETTING
    valueFrom: {configMapKeyRef: {name: cm, key: setting}}
""" % IMAGES[0]  # noqa: UP031

USES = {
    "env": {"container": ENV},
    "envFrom": {"container": ENV_FROM},
    "a volume": {"container": MOUNT, "pod": VOLUME},
    "a subPath mount": {"container": SUB_PATH, "pod": VOLUME},
    "a projected volume": {"container": MOUNT, "pod": PROJECTED},
    "an init container": {"pod": INIT},
}

OLD, NEW = config_map(setting="old", other="same"), config_map(setting="new", other="same")


def actions(outcome: Outcome) -> dict[str, Action]:
    return {f"{r.step.key.kind} {r.step.key.name}": r.step.action for r in outcome.results}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", one_of(2, KINDS))
def test_configuration_alone_restarts_a_workload_that_uses_it(
    cnf: Cnf, kind: str, use: str
) -> None:
    user = workload(kind, "user", **USES[use])
    bystander = workload(kind, "bystander")
    cnf.instantiate(cm=OLD, user=user, bystander=bystander)
    before = {name: cnf.pods(kind, name) for name in ("user", "bystander")}

    outcome = cnf.update({"cm": NEW, "user": user, "bystander": bystander})

    assert all(result.state is StepState.DONE for result in outcome.results)
    assert cnf.get("ConfigMap", "cm")["data"]["setting"] == "new"
    after = cnf.pods(kind, "user")
    assert len(after) == len(before["user"])
    assert not {p.uid for p in after.values()} & {p.uid for p in before["user"].values()}
    assert cnf.pods(kind, "bystander") == before["bystander"]
    (reason,) = outcome.results[1].step.reasons
    assert f"ConfigMap {cnf.namespace}/cm" in str(reason)


@pytest.mark.parametrize("kind", one_of(2, KINDS))
def test_another_key_of_the_same_object_restarts_nothing(cnf: Cnf, kind: str) -> None:
    user = workload(kind, "user", container=ENV)
    cnf.instantiate(cm=config_map(setting="same", other="old"), user=user)
    before = cnf.pods(kind, "user")
    outcome = cnf.update({"cm": config_map(setting="same", other="new"), "user": user})
    assert list(actions(outcome)) == ["ConfigMap cm"]
    assert cnf.pods(kind, "user") == before


@pytest.mark.parametrize("kind", CONTROLLED)
def test_a_new_image_replaces_the_pods(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(w=workload(kind))
    before = cnf.pods(kind, "w")
    outcome = cnf.update({"w": workload(kind, image=IMAGES[1])})
    after = cnf.pods(kind, "w")
    assert {p.image for p in after.values()} == {IMAGES[1]}
    assert not {p.uid for p in after.values()} & {p.uid for p in before.values()}
    assert outcome.restarted[cnf.key(kind, "w")] == tuple(sorted(after))


def test_a_pod_whose_images_change_is_restarted_in_place(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=workload("Pod", container=ENV))
    (before,) = cnf.pods("Pod", "w").values()
    outcome = cnf.update({"cm": NEW, "w": workload("Pod", container=ENV, image=IMAGES[1])})
    (after,) = cnf.pods("Pod", "w").values()
    assert actions(outcome)["Pod w"] is Action.RESTART_CONTAINERS
    assert (after.uid, after.restarts, after.image) == (before.uid, 1, IMAGES[1])


def test_a_pod_with_another_container_using_the_configuration_is_recreated(cnf: Cnf) -> None:

    pod = """apiVersion: v1
kind: Pod
metadata: {{name: w}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {image}
  - name: second
    image: {other}
    command: [sleep, "100000"]
    env:
    - name: SETTING
      valueFrom: {{configMapKeyRef: {{name: cm, key: setting}}}}
"""
    cnf.instantiate(cm=OLD, w=pod.format(image=IMAGES[0], other=IMAGES[0]))
    (before,) = cnf.pods("Pod", "w").values()
    outcome = cnf.update({"cm": NEW, "w": pod.format(image=IMAGES[1], other=IMAGES[0])})
    (after,) = cnf.pods("Pod", "w").values()
    assert actions(outcome)["Pod w"] is Action.RECREATE_POD
    assert after.uid != before.uid
    assert (after.restarts, after.image) == (0, IMAGES[1])


def test_an_update_with_nothing_changed_writes_nothing(cnf: Cnf) -> None:
    files = {"cm": OLD, "sec": secret(password="x"), "w": workload("Deployment", container=ENV)}
    cnf.instantiate(**files)
    objects = (("ConfigMap", "cm"), ("Secret", "sec"), ("Deployment", "w"))

    def state() -> list[str]:
        return [cnf.get(*name)["metadata"]["resourceVersion"] for name in objects]

    before, pods = state(), cnf.pods("Deployment", "w")
    outcome = cnf.update(files)
    assert outcome.plan.is_empty
    assert outcome.results == ()
    assert state() == before
    assert cnf.pods("Deployment", "w") == pods


@pytest.mark.parametrize("kind", one_of(2, KINDS))
def test_the_same_update_a_second_time_does_nothing(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(cm=OLD, sec=secret(password="old"), w=workload(kind, container=ENV))
    after = {
        "cm": NEW,
        "sec": secret(password="new"),
        "w": workload(kind, container=ENV, image=IMAGES[1]),
    }
    cnf.update(after)
    pods = cnf.pods(kind, "w")
    assert cnf.update(after).plan.is_empty
    assert cnf.pods(kind, "w") == pods


def test_of_listed_files_alone_the_configuration_takes_effect(cnf: Cnf) -> None:
    def release(value: str) -> dict[str, str]:
        return {
            "cm": config_map(setting=value),
            "other": config_map("other", setting=value),
            "w": workload("Deployment", container=ENV),
            "o": workload("Deployment", "o", container=ENV.replace("name: cm", "name: other")),
        }

    cnf.instantiate(**release("old"))
    before = cnf.pods("Deployment", "o")
    cnf.update(release("new"), config_paths=("Files/cm.yaml",))
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}
    assert cnf.get("ConfigMap", "other")["data"] == {"setting": "old"}
    assert cnf.pods("Deployment", "o") == before
    cnf.update(release("new"))
    assert cnf.get("ConfigMap", "other")["data"] == {"setting": "new"}
    assert cnf.pods("Deployment", "o") != before


@pytest.mark.parametrize("way", ["update", "change"])
@pytest.mark.parametrize("restart_for", [CHANGED_KEYS, CHANGED_OBJECTS])
def test_another_key_restarts_who_reads_more_than_it_declares_where_that_is_asked_for(
    cnf: Cnf, restart_for: str, way: str
) -> None:
    user = workload("Deployment", container=ENV)
    cnf.instantiate(cm=config_map(setting="same", other="old"), w=user)
    before = cnf.pods("Deployment", "w")
    files = {"cm": config_map(setting="same", other="new"), "w": user}
    options = replace(cnf.options, restart_for=restart_for)
    if way == "update":
        cnf.update(files, options)
    else:
        new = cnf.package({f"{name}.yaml": text for name, text in files.items()})
        request = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
        change_package(request, cnf.cluster, options, old=cnf.old, new=new, **cnf.where)
    assert cnf.get("ConfigMap", "cm")["data"]["other"] == "new"
    assert (cnf.pods("Deployment", "w") != before) is (restart_for == CHANGED_OBJECTS)


def volume_images(cnf: Cnf, names: Iterable[str]) -> list[str]:
    """Return the images that these pods have as volumes."""
    volumes = [volume for name in names for volume in cnf.get("Pod", name)["spec"]["volumes"]]
    return [volume["image"]["reference"] for volume in volumes if "image" in volume]


@pytest.mark.parametrize("kind", one_of(2, KINDS))
def test_the_image_of_a_volume_restarts_its_pods_as_that_of_a_container_does(
    kind: str, cnf: Cnf
) -> None:
    def release(tag: str) -> dict[str, str]:
        pod = f"volumes: [{{name: models, image: {{reference: 'models:{tag}'}}}}]"
        return {"w": workload(kind, pod=pod, replicas=2)}

    cnf.instantiate(**release("1"))
    before = cnf.pods(kind, "w")
    outcome = cnf.update(release("2"))
    reasons = [str(reason) for result in outcome.results for reason in result.step.reasons]
    assert reasons == ["volume models: image models:1 -> models:2"]
    after = cnf.pods(kind, "w")
    assert not {pod.uid for pod in before.values()} & {pod.uid for pod in after.values()}
    assert volume_images(cnf, after) == ["models:2"] * len(before)
    assert cnf.plan(release("2")).is_empty
    cnf.undo()
    assert volume_images(cnf, cnf.pods(kind, "w")) == ["models:1"] * len(before)


def test_a_job_that_ended_and_is_gone_does_not_hold_an_update(cnf: Cnf) -> None:
    """``ttlSecondsAfterFinished`` deletes it; its image is often that of the workloads."""
    old, new = (
        {"w": workload("Deployment", image=image), "j": workload("Job", "j", image=image)}
        for image in IMAGES[:2]
    )
    cnf.instantiate(**old)
    cnf.admin.delete(cnf.key("Job", "j"))
    outcome = cnf.update(new)
    assert [step.key.kind for step in outcome.plan.steps] == ["Deployment"]
    assert [str(note) for note in outcome.plan.notes] == [
        f"Job {cnf.namespace}/j: is not in the cluster: left alone"
    ]
