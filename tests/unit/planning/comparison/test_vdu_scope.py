# SPDX-License-Identifier: Apache-2.0
"""Which objects belong to a workload: what its pods use, and what selects or scales them."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json
from container_update.planning.comparison.package_pair import used_only_by_others
from tests.unit.planning.test_change import config, deployment, manifests, service

LABELS = {"matchLabels": {"app": "other"}}
EXPRESSION = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["other"]}]}


def body(kind: str, spec: Json | None = None, api_version: str = "v1") -> Json:
    """A manifest with the name ``x``."""
    made: Json = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    return made if spec is None else {**made, "spec": spec}


def scale_target(name: str) -> Json:
    return {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}


BELONGS: dict[str, tuple[Json, Json]] = {
    "a ConfigMap in a volume": (
        {"volumes": [{"name": "v", "configMap": {"name": "x"}}]}, config("x"),
    ),
    "a claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]},
        body("PersistentVolumeClaim", {}),
    ),
    "a ServiceAccount": ({"serviceAccountName": "x"}, body("ServiceAccount")),
    "a Service": ({}, service("x", app="other")),
    "an autoscaler": (
        {}, body("HorizontalPodAutoscaler", scale_target("other"), "autoscaling/v2"),
    ),
    "a disruption budget": ({}, body("PodDisruptionBudget", {"selector": LABELS}, "policy/v1")),
    "a disruption budget with an expression": (
        {},
        body("PodDisruptionBudget", {"selector": EXPRESSION}, "policy/v1"),
    ),
    "a network policy": (
        {}, body("NetworkPolicy", {"podSelector": LABELS}, "networking.k8s.io/v1"),
    ),
}  # fmt: skip
"""Fields of the pod spec of the workload ``other``, and the object that belongs to it by them."""


def only_of_others(objects: list[Json], pod_spec: Json, **own: str) -> set[str]:
    """Return the kinds of what belongs to ``other`` and not to ``web``, which changes."""
    web, other = deployment(**own), deployment("other", app="other")
    other["spec"]["template"]["spec"] |= pod_spec
    found = used_only_by_others(
        list(manifests([web, other, *objects]).values()), lambda key: key.name == "web"
    )
    return {key.kind for key in found if key.name == "x"}


@pytest.mark.parametrize(("pod_spec", "belonging"), BELONGS.values(), ids=BELONGS)
def test_what_only_a_workload_that_does_not_change_has_is_found(
    pod_spec: Json, belonging: Json
) -> None:
    assert only_of_others([belonging], pod_spec) == {belonging["kind"]}


@pytest.mark.parametrize(
    "free",
    [config("x"), body("ServiceAccount"), service("x", app="third"),
     body("HorizontalPodAutoscaler", scale_target("third"), "autoscaling/v2")],
    ids=lambda each: str(each["kind"]),
)  # fmt: skip
def test_what_no_workload_has_is_free_to_change(free: Json) -> None:
    assert only_of_others([free], {}) == set()


def test_what_a_workload_that_changes_has_too_is_free_to_change() -> None:
    assert only_of_others([service("x", app="other")], {}, app="other") == set()
