# SPDX-License-Identifier: Apache-2.0
"""Autoscalers and disruption budgets of a VNF that changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import PlanError, UpdateFailedError
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import IMAGES, KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments, ContractSite, Release
from tests.functional.conftest import overwrite
from tests.functional.manifests import workload
from tests.functional.upgrade_types import UPGRADE_TYPES

Site = KubernetesContractSite
V3 = Release("v3")


@pytest.fixture(params=UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A namespace of the cluster to instantiate the VNF in, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        yield contract_site


def manifest(body: Any) -> str:
    """Return a manifest's text."""
    return yaml.safe_dump(body)


def autoscaler(site: Site, vdu: str) -> str:
    """Return the manifest of a VDU's autoscaler, from 1 to 5 pods."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": site.shape.name(vdu, "v1")}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}
    return manifest({**body, "metadata": {"name": "scaler"}})


def scaler_of(site: Site) -> Any:
    """Return the live autoscaler."""
    return site.get("autoscaling", "HorizontalPodAutoscaler", "scaler")


@pytest.mark.parametrize("vdu", ["VDU1", "VDU2"])
def test_an_autoscaler_targets_the_current_deployment_after_every_change(
    site: Site, vdu: str
) -> None:
    site.shape = Shape(more={"scaler.yaml": autoscaler(site, vdu)})
    site.instantiate(V1)
    for release in (V2, V3):
        site.change(release)
        site.runs_from(release)
        (deployment,) = site.deployments(vdu)
        target = scaler_of(site)["spec"]["scaleTargetRef"]
        assert target["name"] == deployment["metadata"]["name"]


def test_an_autoscaler_with_equal_limits_keeps_them(site: Site) -> None:
    """Operators also pause an autoscaler by equal limits; only they may undo it."""
    site.shape = Shape(more={"scaler.yaml": autoscaler(site, "VDU1")})
    site.instantiate(V1)
    live = scaler_of(site)
    live["metadata"]["annotations"] = {"autoscaling.example/paused": "true"}
    live["spec"] |= {"minReplicas": 2, "maxReplicas": 2}
    site.admin.replace(live)
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, broken=("VDU2",)))
    for _ in range(2):
        live_scaler = scaler_of(site)
        assert (live_scaler["spec"]["minReplicas"], live_scaler["spec"]["maxReplicas"]) == (2, 2)
        assert live_scaler["metadata"]["annotations"]["autoscaling.example/paused"] == "true"
        site.change(V2)
    assert site.is_at("v2")


def test_where_no_pod_changes_only_what_points_elsewhere_is_switched(site: Site) -> None:
    def shape(most: int, app: str) -> Shape:
        scaler = autoscaler(site, "VDU1").replace("maxReplicas: 5", f"maxReplicas: {most}")
        spec = {"selector": {"app": app}, "ports": [{"port": most}]}
        services = [
            manifest({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": s})
            for name, s in [("one", spec), ("two", {**spec, "selector": {"app": "web"}})]
        ]
        return Shape(more={"scaler.yaml": scaler, "s.yaml": "---\n".join(services)})

    site.shape = shape(5, "web")
    site.instantiate(V1)
    site.shape = shape(6, "worker")
    plan = site.plan(V1)
    assert {step.key.name: step.action.value for step in plan.steps} == {
        "scaler": "replace",
        "one": "switch to the new pods",
        "two": "replace",
    }
    site.change(V1)
    assert scaler_of(site)["spec"]["maxReplicas"] == 6


def test_a_paused_deployment_is_refused(site: Site) -> None:
    site.instantiate(V1)
    (deployment,) = site.deployments("VDU1")
    deployment["spec"]["paused"] = True
    overwrite(site.admin, deployment)
    with pytest.raises(PlanError, match="is paused"):
        site.change(V2)
    (live,) = site.deployments("VDU1")
    assert live["spec"]["template"] == deployment["spec"]["template"]


def budgeted(site: Site, image: str) -> Shape:
    """Return the shape of three pods, of which two must always be available."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}},
    }
    pods = workload("ReplicaSet", "x", replicas=3, image=image)
    return Shape(more={"budget.yaml": manifest(budget), "x.yaml": pods})


def test_a_disruption_budget_is_respected(site: Site) -> None:
    site.shape = budgeted(site, IMAGES["v1"])
    site.instantiate(V1)
    site.shape = budgeted(site, IMAGES["v2"])
    with _ReadyPods(site) as ready_pods:
        site.change(V2)
    assert min(ready_pods.counts) >= 2
    assert site.is_at("v2")


def test_a_disruption_budget_without_allowed_evictions_fails_the_change(
    site: Site,
) -> None:
    site.shape = budgeted(site, IMAGES["v1"])
    site.instantiate(V1)
    budget = site.get("policy", "PodDisruptionBudget", "x")
    budget["spec"]["minAvailable"] = 3
    site.admin.replace(budget)
    site.until(lambda: _allowed(site) == 0)
    site.shape = budgeted(site, IMAGES["v2"])
    with pytest.raises(UpdateFailedError, match="disruption budget"):
        site.change(V2, Arguments(options={"timeout": 3}))
    assert site.is_at("v1")


def _allowed(site: Site) -> Any:
    status = site.get("policy", "PodDisruptionBudget", "x").get("status") or {}
    return status.get("disruptionsAllowed", 0)


class _ReadyPods:
    """Counts the ready pods of x all the time."""

    def __init__(self, site: Site) -> None:
        self.counts: list[int] = []
        self._site = site
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._observe)

    def __enter__(self) -> _ReadyPods:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _observe(self) -> None:
        while not self._done.is_set():
            ready: Callable[[Any], bool] = lambda pod: any(  # noqa: E731
                c["type"] == "Ready" and c["status"] == "True"
                for c in pod["status"].get("conditions") or ()
            )
            pods = self._site.objects("", "Pod")
            owned = [p for p in pods if p["metadata"]["name"].startswith("x-")]
            self.counts.append(sum(map(ready, owned)))
            self._done.wait(0.02)
