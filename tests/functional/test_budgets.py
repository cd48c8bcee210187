# SPDX-License-Identifier: Apache-2.0
"""A plan that evicts pods says which disruption budget will not let them go."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from container_update import plan_change
from tests.functional.cnf import IMAGES, INSTANCE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import workload
from tests.functional.upgrade_types import ROLLING
from tests.internals.core import ObjectKey, main

ITS_PODS = {"matchLabels": {"app": "w"}}
STRICT = {"keep": {"minAvailable": 2, "selector": ITS_PODS}}
"""As many as there are."""


def some(*, operator: str, values: list[str]) -> object:
    """Return a selector with an expression about the label of the pods."""
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}


NEVER = "PodDisruptionBudget keep allows no eviction of its pods: 2 of 2 pods have to be healthy"
FORBIDS: dict[str, tuple[dict[str, object], str]] = {
    "as many as there are": (STRICT, NEVER),
    "more than there are": (
        {"keep": {"minAvailable": 3, "selector": ITS_PODS}},
        "3 of 2 pods have to be healthy, 2 are",
    ),
    "none may be missing": ({"keep": {"maxUnavailable": 0, "selector": ITS_PODS}}, NEVER),
    "a percentage that is rounded up": (
        {"keep": {"minAvailable": "51%", "selector": ITS_PODS}},
        NEVER,
    ),
    "all pods of the namespace": ({"keep": {"minAvailable": "100%", "selector": {}}}, NEVER),
    "an expression": (
        {"keep": {"minAvailable": 2, "selector": some(operator="NotIn", values=["x"])}},
        NEVER,
    ),
    "two that each allow one": (
        {
            "one": {"maxUnavailable": 1, "selector": ITS_PODS},
            "two": {"maxUnavailable": 1, "selector": {}},
        },
        "2 budgets select its pods (one, two)",
    ),
}
ALLOWS: dict[str, object] = {
    "one may be missing": {"minAvailable": 1, "selector": ITS_PODS},
    "a percentage": {"maxUnavailable": "1%", "selector": ITS_PODS},
    "other pods": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "other"}}},
    "an expression about others": {
        "maxUnavailable": 0,
        "selector": some(operator="In", values=["other"]),
    },
    "no selector": {"maxUnavailable": 0},
}


def texts_of(budgets: dict[str, object]) -> dict[str, str]:
    """Return the manifests of budgets."""
    return {
        name: json.dumps(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name},
                "spec": said,
            }
        )
        for name, said in budgets.items()
    }


def instantiate(
    cnf: Cnf, budgets: dict[str, object], kind: str = "ReplicaSet", spec: str = ""
) -> dict[str, str]:
    """Instantiate two pods under these budgets; return the files of an update that evicts them."""
    texts = texts_of(budgets)
    cnf.instantiate(**texts, w=workload(kind, replicas=2, spec=spec))
    for name in budgets:
        until(lambda name=name: is_counted(cnf, name))
    return {**texts, "w": workload(kind, replicas=2, spec=spec, image=IMAGES[1])}


def is_counted(cnf: Cnf, name: str) -> bool:
    """Tell whether the controller has counted the pods of a budget, or cannot."""
    live = cnf.admin.get(ObjectKey("policy", "PodDisruptionBudget", cnf.namespace, name))
    status = (live or {}).get("status") or {}
    conditions = status.get("conditions") or ()
    failed = any(each["reason"] == "SyncFailed" for each in conditions)
    return failed or bool(conditions and status["currentHealthy"] == status["expectedPods"])


def notes(cnf: Cnf, files: dict[str, str]) -> str:
    """Return the notes of a plan about the workload."""
    plan = cnf.plan(files)
    assert "replace pods one by one" in str([step.action.value for step in plan.steps])
    return "\n".join(note.text for note in plan.notes if note.key.name == "w")


@pytest.mark.parametrize(("budgets", "expected"), FORBIDS.values(), ids=FORBIDS)
def test_a_plan_names_the_budget_that_forbids_its_evictions(
    cnf: Cnf, budgets: dict[str, object], expected: str
) -> None:
    assert expected in notes(cnf, instantiate(cnf, budgets))


@pytest.mark.parametrize("said", ALLOWS.values(), ids=ALLOWS)
def test_a_plan_says_nothing_of_a_budget_that_allows_its_evictions(cnf: Cnf, said: object) -> None:
    files = instantiate(cnf, {"keep": said})
    assert not notes(cnf, files)
    cnf.update(files)
    assert {pod.image for pod in cnf.pods("ReplicaSet", "w").values()} == {IMAGES[1]}


def test_a_plan_names_the_budget_whose_pods_cannot_be_counted(cnf: Cnf) -> None:
    """The controller finds no number of replicas of a DaemonSet."""
    budgets = {"keep": {"maxUnavailable": 1, "selector": ITS_PODS}}
    on_delete = "updateStrategy: {type: OnDelete}"
    files = instantiate(cnf, budgets, "DaemonSet", on_delete)
    assert "its controller cannot count them" in notes(cnf, files)


LAX: dict[str, object] = {"keep": {"minAvailable": 1, "selector": ITS_PODS}}


@pytest.mark.parametrize(
    ("now", "then", "expected"),
    [(STRICT, LAX, ""), (LAX, STRICT, NEVER), ({}, STRICT, NEVER), (STRICT, {}, NEVER)],
    ids=["relaxed", "made stricter", "new", "left out"],
)
def test_a_budget_counts_as_a_change_of_the_package_has_written_it_by_then(
    cnf: Cnf, now: dict[str, object], then: dict[str, object], expected: str
) -> None:
    files = {"w": instantiate(cnf, now)["w"], **texts_of(then)}
    plan = plan_change(
        {"vnfdId": "v2", "additionalParams": {"upgrade_type": ROLLING}},
        cnf.admin,
        cnf.options,
        old=cnf.old,
        new=cnf.package({f"{name}.yaml": text for name, text in files.items()}),
        **cnf.where,
    )
    text = "\n".join(note.text for note in plan.notes if note.key.name == "w")
    assert (expected in text) if expected else not text


def test_a_plan_of_pods_that_are_not_evicted_says_nothing(cnf: Cnf) -> None:
    files = instantiate(cnf, STRICT, "Deployment")
    assert not any("Budget" in note.text for note in cnf.plan(files).notes)


def test_pods_that_are_not_ready_count_as_replaced(cnf: Cnf) -> None:
    """They go without an eviction, whatever a budget says."""
    files = instantiate(cnf, {"keep": {"minAvailable": 1, "selector": ITS_PODS}})
    live = cnf.get("ReplicaSet", "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "bad:missing"
    cnf.admin.replace(live)
    cnf.admin.delete(ObjectKey("", "Pod", cnf.namespace, next(iter(cnf.pods("ReplicaSet", "w")))))
    until(lambda: len(cnf.pods("ReplicaSet", "w")) == 2 and not is_counted(cnf, "keep"))
    live["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGES[0]
    live["metadata"].pop("resourceVersion")
    cnf.admin.replace(live)
    assert not notes(cnf, files)


def test_an_account_that_may_not_list_budgets_gets_the_plan_without(cnf: Cnf) -> None:
    files = instantiate(cnf, STRICT)
    key = ObjectKey("rbac.authorization.k8s.io", "Role", cnf.namespace, "container-update")
    role = cnf.admin.get(key)
    assert role is not None
    rules = [rule for rule in role["rules"] if "poddisruptionbudgets" not in rule["resources"]]
    assert len(rules) < len(role["rules"])
    cnf.admin.replace({**role, "rules": rules})
    until(lambda: not notes(cnf, files))


def run(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    return main([*words], out), out.getvalue()


def test_doctor_calls_it_a_problem_and_a_saved_plan_can_be_carried_out_once_it_is_solved(
    cnf: Cnf, kubeconfig: str, tmp_path: Path
) -> None:
    files = instantiate(cnf, STRICT)
    new = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    saved = str(tmp_path / "saved.plan")
    server = ("--kubeconfig", kubeconfig)
    where = (*server, "-n", cnf.namespace, "--instance-id", INSTANCE)

    status, text = run("doctor", cnf.old, new, *where)
    (line,) = (each for each in text.splitlines() if each.startswith("problem  update:"))
    assert (status, NEVER in line) == (5, True)

    status, text = run("plan", cnf.old, new, *where, "--out", saved)
    assert (status, NEVER in text) == (3, True)

    key = ObjectKey("policy", "PodDisruptionBudget", cnf.namespace, "keep")
    budget = cnf.admin.get(key)
    assert budget is not None
    budget["spec"]["minAvailable"] = 1
    cnf.admin.replace(budget)
    until(lambda: not notes(cnf, files))
    assert run("apply", saved, *server)[0] == 0
    assert {pod.image for pod in cnf.pods("ReplicaSet", "w").values()} == {IMAGES[1]}
