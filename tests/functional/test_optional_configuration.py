# SPDX-License-Identifier: Apache-2.0
"""Configuration without which a pod starts too: that it comes or goes reaches the pods, on every
way. A pod that starts before such an object goes has its content for good."""

from __future__ import annotations

from typing import Any

import pytest

from container_update import StepResult, UpdateFailedError, change_package, plan_change, update
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import config_map, workload
from tests.internals.core import Event

OPTIONAL = "env: [{name: A, valueFrom: {configMapKeyRef: {name: extra, key: a, optional: true}}}]"
EXTRA = config_map("extra", a="1")
LISTED = ("Files/extra.yaml",)
KINDS = pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])


def user(kind: str, **how: Any) -> dict[str, str]:
    return {"w": workload(kind, container=OPTIONAL, **how)}


@KINDS
@pytest.mark.parametrize("image", IMAGES, ids=["the same image", "another image"])
def test_a_change_deletes_it_before_it_restarts_whoever_has_it(
    cnf: Cnf, kind: str, image: str
) -> None:
    cnf.instantiate(**user(kind), extra=EXTRA)
    new = cnf.request(user(kind, image=image)).new
    before = cnf.pods(kind, "w")
    request = {"vnfdId": "v", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    outcome = change_package(request, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)
    steps = [(step.key.kind, step.action.value) for step in outcome.plan.steps]
    assert steps == [("ConfigMap", "delete"), (kind, "roll")]
    reasons = " ".join(str(reason) for reason in outcome.plan.steps[1].reasons)
    assert "env A of container main uses key a of ConfigMap" in reasons
    assert "extra, which goes" in reasons
    assert cnf.pods(kind, "w") != before


def test_blue_green_deletes_it_before_the_new_pods_start(cnf: Cnf) -> None:
    cnf.instantiate(**user("Deployment"), extra=EXTRA)
    before = cnf.pods("Deployment", "w")
    request = {"vnfdId": "v", "additionalParams": {"upgrade_type": "Blue-Green"}}
    packages = {"old": cnf.old, "new": cnf.request(user("Deployment")).new}
    outcome = change_package(request, cnf.admin, cnf.options, **packages, **cnf.where)
    steps = [(step.key.kind, step.action.value) for step in outcome.plan.steps]
    assert steps[:2] == [("ConfigMap", "delete"), ("Deployment", "create")]
    assert not set(cnf.pods("Deployment", "w")) & set(before)


def test_a_change_notes_who_needs_what_it_deletes(cnf: Cnf) -> None:
    needed = {"w": workload("Deployment", container=OPTIONAL.replace(", optional: true", ""))}
    cnf.instantiate(**needed, extra=EXTRA)
    request = {"vnfdId": "v", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    packages = {"old": cnf.old, "new": cnf.request(needed).new}
    plan = plan_change(request, cnf.cluster, cnf.options, **packages, **cnf.where)
    (note,) = [note.text for note in plan.notes if note.key.kind == "ConfigMap"]
    assert note.endswith("of the new package needs it: env A of container main")


@KINDS
def test_an_undo_of_its_creation_restarts_whoever_has_it(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(**user(kind))
    cnf.update({**user(kind), "extra": EXTRA}, config_paths=LISTED)
    before = cnf.pods(kind, "w")
    outcome = cnf.undo()
    assert outcome is not None
    steps = [(step.key.kind, step.action.value) for step in outcome.plan.steps]
    assert steps == [("ConfigMap", "delete"), (kind, "roll")]
    assert cnf.pods(kind, "w") != before


@KINDS
def test_what_failed_is_undone_with_pods_that_start_without_it(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(**user(kind))
    undone: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, StepResult) and event.reverted is not None:
            undone.append(event.step.key.kind)

    new = {**user(kind, image=BAD_IMAGE), "extra": EXTRA}
    request = cnf.request(new, config_paths=LISTED)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        update(request, cnf.cluster, cnf.options, progress=note)
    assert undone == ["ConfigMap", kind]
