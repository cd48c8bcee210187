# SPDX-License-Identifier: Apache-2.0
"""Heal and scale of every kind of workload, with no more rights than an update has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from container_update import (
    HealRequest,
    Outcome,
    PackageError,
    PlanError,
    ScaleRequest,
    UndoIncompleteError,
    UpdateFailedError,
    install,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import Heal, ObjectKey, Scale, StepState, run

KINDS = ("Pod", "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
ON_DELETE = "updateStrategy: {type: OnDelete}"


def healed(cnf: Cnf, *names: str, leave_failed: bool = False) -> Outcome:
    """Heal the VNF, or pods of the workload ``w``."""
    vnfcs = [("VDU1", name) for name in names]
    goal = Heal(HealRequest(cnf.old, tuple(vnfcs), **cnf.where), cnf.options)
    return _run(goal, cnf, leave_failed=leave_failed)


def scaled(cnf: Cnf, number: int) -> Outcome:
    numbers = {"VDU1": number}
    return _run(Scale(ScaleRequest(cnf.old, numbers, **cnf.where), cnf.options), cnf)


def _run(goal: Heal | Scale, cnf: Cnf, *, leave_failed: bool = False) -> Outcome:
    """Run a goal; the packages here have no VNFD that names the VDU of ``w``."""
    goal.packages = replace(goal.packages, new_vdus={"VDU1": "w"})
    return run(goal, cnf.cluster, cnf.options, leave_failed=leave_failed)


def uids(cnf: Cnf, kind: str) -> set[str]:
    return {pod.uid for pod in cnf.pods(kind, "w").values()}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [*((kind, "") for kind in KINDS), ("DaemonSet", ON_DELETE), ("StatefulSet", ON_DELETE)],
)
def test_a_heal_replaces_all_pods_and_brings_back_what_others_changed(
    kind: str, spec: str, cnf: Cnf
) -> None:
    manifest = workload(kind, container=ENV, spec=spec, replicas=2)
    cnf.instantiate(cm=config_map(setting="right"), w=manifest)
    before = uids(cnf, kind)
    changed = cnf.get("ConfigMap", "cm")
    cnf.admin.replace({**changed, "data": {"setting": "wrong"}})
    if kind != "Pod":
        body = cnf.get(kind, "w")
        body["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGES[1]
        cnf.admin.replace(body)

    outcome = healed(cnf)

    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert not before & uids(cnf, kind)
    assert len(uids(cnf, kind)) == len(before)
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "right"}
    assert {pod.image for pod in cnf.pods(kind, "w").values()} == {IMAGES[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_heal_of_one_pod_leaves_the_others(kind: str, cnf: Cnf) -> None:
    cnf.instantiate(w=workload(kind, replicas=2))
    before = cnf.pods(kind, "w")
    first, *others = sorted(before)
    outcome = healed(cnf, first)
    after = uids(cnf, kind)
    assert {vnfc.pod_name for vnfc in outcome.vnfcs} == cnf.pods(kind, "w").keys()
    assert before[first].uid not in after
    assert {before[name].uid for name in others} < after
    assert len(after) == len(before)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_workload_is_scaled_out_and_in(kind: str, cnf: Cnf) -> None:
    cnf.instantiate(w=workload(kind, replicas=1))
    before = uids(cnf, kind)
    scaled(cnf, 3)
    assert len(uids(cnf, kind)) == 3
    assert before < uids(cnf, kind)
    scaled(cnf, 1)
    assert len(uids(cnf, kind)) == 1


@pytest.mark.parametrize("kind", ["DaemonSet", "Pod"])
def test_what_has_no_number_of_pods_is_not_scaled_and_installed_without_one(
    kind: str, cnf: Cnf
) -> None:
    cnf.old = cnf.package({"w.yaml": workload(kind)})
    install(cnf.old, cnf.admin, options=cnf.options, replicas={"w": 3}, **cnf.where)
    assert "replicas" not in cnf.get(kind, "w")["spec"]
    before = uids(cnf, kind)
    with pytest.raises(PlanError, match=f"w: expected .* VDU1, which is scaled, found a {kind}"):
        scaled(cnf, 3)
    assert uids(cnf, kind) == before


def test_a_vnf_whose_package_has_no_manifests_any_more_is_not_healed(cnf: Cnf) -> None:
    cnf.instantiate(cm=config_map())
    cnf.old = cnf.package({})
    Path(cnf.old).mkdir()
    with pytest.raises(PackageError, match=r"expected manifests .* found no files at all"):
        healed(cnf)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_heal_that_fails_for_a_wrong_template_lets_the_next_one_put_that_right(
    kind: str, cnf: Cnf
) -> None:
    """No pod that was replaced can be put back: an undo that insisted would end never."""
    cnf.instantiate(w=workload(kind, replicas=2, spec=ON_DELETE if kind != "ReplicaSet" else ""))
    body = cnf.get(kind, "w")
    body["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    cnf.admin.replace(body)
    options, cnf.options = cnf.options, replace(cnf.options, timeout=3, undo_timeout=3)
    with pytest.raises(UpdateFailedError, match="those that were replaced are not ready") as raised:
        healed(cnf, min(cnf.pods(kind, "w")))
    assert not isinstance(raised.value, UndoIncompleteError)
    cnf.options = options
    healed(cnf)
    assert {pod.image for pod in cnf.pods(kind, "w").values()} == {IMAGES[0]}


def test_a_heal_of_a_pod_that_cannot_end_names_its_finalizers(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("StatefulSet", replicas=2))
    pod = ObjectKey("", "Pod", cnf.namespace, "w-0")
    body = cnf.admin.get(pod)
    assert body is not None
    body["metadata"]["finalizers"] = ["example.org/slow"]
    cnf.admin.replace(body)
    cnf.admin.delete(pod)
    cnf.options = replace(cnf.options, timeout=2, undo_timeout=2)
    try:
        with pytest.raises(UpdateFailedError, match=r"w-0 ends when .*: example\.org/slow"):
            healed(cnf, "w-0")
    finally:
        body = cnf.admin.get(pod)
        assert body is not None
        del body["metadata"]["finalizers"]
        cnf.admin.replace(body)
