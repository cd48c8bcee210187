# SPDX-License-Identifier: Apache-2.0
"""A change of the package that also changes how a workload's pods are replaced, or whether."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    HealRequest,
    PlanError,
    UpdateFailedError,
    change_package,
    plan_change,
    plan_of,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import workload
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING, UPGRADE_TYPES

ROLLS, ON_DELETE = ("updateStrategy: {type: RollingUpdate}", "updateStrategy: {type: OnDelete}")
TWO_AT_A_TIME = "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}"
STRATEGIES = pytest.mark.parametrize(
    ("now", "then"), [(ROLLS, ON_DELETE), (ON_DELETE, ROLLS)], ids=["to OnDelete", "from OnDelete"]
)
KINDS = pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])


def change(cnf: Cnf, manifest: str, upgrade_type: str = ROLLING) -> Any:
    """Change the package of a CNF whose workload is w to one with this manifest."""
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    packages = {"old": cnf.old, "new": cnf.package({"w.yaml": manifest})}
    return change_package(body, cnf.admin, cnf.options, **packages, **cnf.where)


def is_updated(cnf: Cnf, kind: str) -> bool:
    """Tell whether its controller counts all of its pods as of the present template."""
    status = cnf.get(kind, "w")["status"]
    number = status.get("updatedReplicas") or status.get("updatedNumberScheduled")
    return bool(number == len(cnf.pods(kind, "w")))


def images(cnf: Cnf, kind: str) -> set[str]:
    return {pod.image for pod in cnf.pods(kind, "w").values()}


@KINDS
@STRATEGIES
def test_the_pods_are_replaced_as_the_new_strategy_says(
    cnf: Cnf, kind: str, now: str, then: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=now, replicas=2))
    change(cnf, workload(kind, spec=then, replicas=2, image=IMAGES[1]))
    assert images(cnf, kind) == {IMAGES[1]}


@KINDS
@STRATEGIES
def test_an_undo_replaces_them_as_the_old_strategy_says(
    cnf: Cnf, kind: str, now: str, then: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=now, replicas=2))
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        change(cnf, workload(kind, spec=then, replicas=2, image=BAD_IMAGE))
    assert images(cnf, kind) == {IMAGES[0]}


@KINDS
def test_another_strategy_alone_makes_no_workload_ready_that_was_not(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(w=workload(kind, spec=TWO_AT_A_TIME))
    live = cnf.get(kind, "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(cnf.admin, live)
    until(lambda: images(cnf, kind) == {BAD_IMAGE} and is_updated(cnf, kind))
    cnf.old = cnf.package({"w.yaml": workload(kind, spec=TWO_AT_A_TIME, image=BAD_IMAGE)})
    cnf.options = replace(cnf.options, timeout=20)
    change(cnf, workload(kind, spec=ROLLS, image=BAD_IMAGE))
    assert "2" not in str(cnf.get(kind, "w")["spec"]["updateStrategy"])
    assert images(cnf, kind) == {BAD_IMAGE}


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet"])
def test_pods_that_a_stuck_roll_left_as_they_are_to_be_stay(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(w=workload(kind, replicas=2))
    before = cnf.pods(kind, "w")
    live = cnf.get(kind, "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(cnf.admin, live)
    until(lambda: BAD_IMAGE in images(cnf, kind))
    cnf.old = cnf.package({"w.yaml": workload(kind, replicas=2, image=BAD_IMAGE)})
    cnf.options = replace(cnf.options, timeout=20)
    change(cnf, workload(kind, replicas=2))
    assert images(cnf, kind) == {IMAGES[0]}
    assert set(before.values()) & set(cnf.pods(kind, "w").values())


def test_nothing_is_drained_where_pods_are_replaced_in_place(cnf: Cnf) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selector: {app: w}\n"
    deployment = workload("Deployment")
    cnf.instantiate(w=f"{service}  ports: [{{port: 80}}]\n---\n{deployment}")
    cnf.options = replace(cnf.options, drain_seconds=3600)
    new = workload("Deployment", image=IMAGES[1])
    change(cnf, f"{service}  ports: [{{port: 81}}]\n---\n{new}")
    assert images(cnf, "Deployment") == {IMAGES[1]}


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_deployment_that_would_be_paused_is_refused(cnf: Cnf, upgrade_type: str) -> None:
    cnf.instantiate(w=workload("Deployment"))
    paused = workload("Deployment", image=IMAGES[1], spec="paused: true")
    with pytest.raises(PlanError, match=r"w \(Files/w.yaml:1\): .*found spec.paused: true"):
        change(cnf, paused, upgrade_type)
    assert images(cnf, "Deployment") == {IMAGES[0]}
    with pytest.raises(PlanError, match=r"new \(Files/w.yaml:1\): .*found spec.paused: true"):
        change(cnf, workload("Deployment", "new", spec="paused: true"), upgrade_type)


def test_one_that_is_paused_is_not_installed(cnf: Cnf) -> None:
    with pytest.raises(PlanError, match=r"found spec.paused: true"):
        cnf.instantiate(w=workload("Deployment", spec="paused: true"))


@pytest.mark.parametrize(
    ("upgrade_type", "is_noted"), [(BLUE_GREEN, True), (CANARY, True), (ROLLING, False)]
)
def test_pods_of_a_recreated_deployment_that_run_beside_the_old_ones_are_noted(
    cnf: Cnf, upgrade_type: str, is_noted: bool
) -> None:
    recreates = "strategy: {type: Recreate}"
    cnf.instantiate(w=workload("Deployment", spec=recreates))
    new = cnf.package({"w.yaml": workload("Deployment", spec=recreates, image=IMAGES[1])})
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    plan = plan_change(body, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)
    assert any("its strategy is Recreate" in note.text for note in plan.notes) is is_noted


HOST_PORT = "ports: [{containerPort: 80, hostPort: 8080}]"
NOTED = {
    "host ports": ("Deployment", HOST_PORT, "", "host ports (8080)", (BLUE_GREEN, CANARY)),
    "host network": (
        "Deployment",
        "ports: [{containerPort: 80}]",
        "hostNetwork: true",
        "host ports (80)",
        (BLUE_GREEN, CANARY),
    ),
    "no host ports": ("Deployment", "ports: [{containerPort: 80}]", "", "host ports", ()),
    "a CronJob": ("CronJob", "", "", "its next Job is the first", UPGRADE_TYPES),
}


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
@pytest.mark.parametrize("name", NOTED)
def test_what_a_change_cannot_know_of_its_pods_is_noted(
    cnf: Cnf, name: str, upgrade_type: str
) -> None:
    kind, container, pod, text, noted = NOTED[name]
    cnf.instantiate(w=workload(kind, container=container, pod=pod))
    manifest = workload(kind, container=container, pod=pod, image=IMAGES[1])
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    packages = {"old": cnf.old, "new": cnf.package({"w.yaml": manifest})}
    plan = plan_change(body, cnf.admin, cnf.options, **packages, **cnf.where)
    assert any(text in note.text for note in plan.notes) is (upgrade_type in noted)


PARTITION = "updateStrategy: {rollingUpdate: {partition: 1}}"


def test_pods_that_a_partition_keeps_are_noted_in_a_change_and_in_a_heal(cnf: Cnf) -> None:
    old, new = (workload("StatefulSet", spec=PARTITION, image=image) for image in IMAGES[:2])
    cnf.instantiate(w=old)
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": ROLLING}}
    packages = {"old": cnf.old, "new": cnf.package({"w.yaml": new})}
    change = plan_change(body, cnf.admin, cnf.options, **packages, **cnf.where)
    heal = plan_of(HealRequest(cnf.old, **cnf.where), cnf.admin, cnf.options)
    for plan in (change, heal):
        assert any("its partition keeps the pods" in note.text for note in plan.notes)


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_labels_and_annotations_of_others_stay(cnf: Cnf, upgrade_type: str) -> None:
    ours = "annotations: {mine: old, goes: old}"
    cnf.instantiate(w=workload("Deployment", metadata=ours))
    live = cnf.get("Deployment", "w")
    live["metadata"]["labels"] = {**(live["metadata"].get("labels") or {}), "team": "y"}
    live["metadata"]["annotations"]["meta.helm.sh/release-name"] = "r"
    live["spec"]["template"]["metadata"]["annotations"] = {"inject": "true"}
    cnf.admin.replace(live)
    change(
        cnf,
        workload("Deployment", metadata="annotations: {mine: new}", image=IMAGES[1]),
        upgrade_type,
    )
    live = cnf.get("Deployment", "w")
    found = live["metadata"]["annotations"]
    assert live["metadata"]["labels"]["team"] == "y"
    assert live["spec"]["template"]["metadata"]["annotations"]["inject"] == "true"
    assert (found["meta.helm.sh/release-name"], found["mine"]) == ("r", "new")
    assert "goes" not in found
