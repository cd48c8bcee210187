# SPDX-License-Identifier: Apache-2.0
"""After a change with new Deployments all have the names of the manifests, and no pod restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import PlanError, Step, UpdateFailedError, UpdateRequest, update
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Arguments, ContractSite, Release
from tests.functional.conftest import overwrite
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import Action, Json, ObjectKey, is_deleting

V3 = Release("v3")
MOST_WRITES = 16
"""From the first write of a hand-over on, until all is done."""
Site = KubernetesContractSite


@pytest.fixture(params=[BLUE_GREEN, CANARY])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A VNF of the first release."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        contract_site.instantiate(V1)
        yield contract_site


def names(site: Site) -> list[str]:
    return sorted(body["metadata"]["name"] for body in site.objects("apps", "Deployment"))


def uids(site: Site) -> set[str]:
    """Return the UIDs of all pods, whoever owns them."""
    return {pod["metadata"]["uid"] for pod in site.objects("", "Pod") if not is_deleting(pod)}


def before_the_hand_over(do: Callable[[], object]) -> Callable[[object], None]:
    """Return what does something once, when the first hand-over begins."""
    first = threading.Lock()

    def watch(event: object) -> None:
        is_hand_over = isinstance(event, Step) and event.action is Action.HAND_OVER
        if is_hand_over and first.acquire(blocking=False):
            do()

    return watch


def _note(site: Site, into: list[set[str]]) -> None:
    into.append(uids(site))


def test_the_pods_are_handed_over_as_they_are(site: Site) -> None:
    for release in (V2, V3, V1):
        before: list[set[str]] = []
        watch = before_the_hand_over(partial(_note, site, before))
        changed = site.change(release, Arguments(progress=watch))
        site.runs_from(release)
        assert before == [uids(site)]
        assert names(site) == ["web", "worker"]
        assert site.is_at(release.version)
        assert set(changed.records.resource_names.values()) == {"web", "worker"}
        assert {vnfc.workload_name for vnfc in changed.records.vnfcs} == {"web", "worker"}
        restarted = {key.name for key in changed.outcome.restarted}
        assert restarted == {"web", "worker"}


def test_the_plan_says_so_and_a_second_one_is_empty(site: Site) -> None:
    plan = site.plan(V2)
    last = [step for step in plan.steps if step.action is Action.HAND_OVER]
    assert list(plan.steps[-2:]) == last
    assert {step.key.name for step in last} == {"web", "worker"}
    assert all("without a restart" in str(step.reasons[0]) for step in last)
    site.change(V2)
    again = site.change(V2)
    assert again.outcome.plan.is_empty
    assert {vnfc.pod_name for vnfc in again.records.vnfcs} == {
        *site.instances("VDU1"),
        *site.instances("VDU2"),
    }


def test_what_follows_works_on_what_was_handed_over(site: Site) -> None:
    site.change(V2)
    site.runs_from(V2)
    old = site.old
    site.runs_from(V3)
    request = UpdateRequest(old, site.old, namespace=site.namespace, instance_id=INSTANCE)
    update(request, site.cluster, site.options)
    assert site.is_at("v3")
    site.upgrade_type = ROLLING
    site.change(V1)
    assert site.is_at("v1")
    assert names(site) == ["web", "worker"]


def test_an_autoscaler_keeps_its_number_of_pods(site: Site) -> None:
    """Also one that scales the new Deployment before its pods are handed over."""

    def scale() -> None:
        (green,) = (n for n in names(site) if n.startswith("web-"))
        live = site.get("apps", "Deployment", green)
        live["spec"]["replicas"] = 3
        overwrite(site.admin, live)
        site.until(lambda: len(site.pods("VDU1")) == 3)

    site.change(V2, Arguments(progress=before_the_hand_over(scale)))
    assert site.get("apps", "Deployment", "web")["spec"]["replicas"] == 3
    assert site.is_at("v2")


def test_what_somebody_else_makes_of_the_name_is_left_alone(site: Site) -> None:
    theirs = site.get("apps", "Deployment", "web")
    theirs["metadata"] = {"name": "web", "namespace": site.namespace}
    labels = {"app": "theirs"}
    theirs["spec"]["selector"] = {"matchLabels": labels}
    theirs["spec"]["template"]["metadata"] = {"labels": labels}
    theirs["spec"]["replicas"] = 0
    create = before_the_hand_over(lambda: site.admin.create(theirs))
    with pytest.raises(UpdateFailedError, match=r"Deployment .*web was created by another client"):
        site.change(V2, Arguments(progress=create))
    web = ObjectKey("apps", "Deployment", site.namespace, "web")
    live = site.admin.get(web)
    assert live is not None
    assert live["spec"]["selector"]["matchLabels"] == labels


def test_a_template_that_admission_changes_restarts_nothing(site: Site) -> None:
    """A webhook that is not idempotent: the second Deployment would not be of the same template."""
    real = site.cluster
    site.cluster = _Admission(real)  # type: ignore[assignment]
    with pytest.raises(UpdateFailedError, match="admission webhook"):
        site.change(V2)
    site.cluster = real
    assert site.is_at("v1")


class _Admission:
    """A client of a server that gives what is created paused another template."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def create(self, body: Any) -> Any:
        if (body.get("spec") or {}).get("paused"):
            template = body["spec"]["template"]
            metadata = {**template["metadata"], "annotations": {"webhook": "2"}}
            spec = {**body["spec"], "template": {**template, "metadata": metadata}}
            body = {**body, "spec": spec}
        return self._cluster.create(body)


@pytest.mark.thorough  # a matrix of faults
@pytest.mark.parametrize("site", [BLUE_GREEN], indirect=True)
@pytest.mark.parametrize(
    ("recovery", "number"),
    [
        pytest.param(recovery, number, marks=[pytest.mark.complete] * ((turn + number) % 3 > 0))
        for turn, recovery in enumerate(("rollback", "resume", "again"))
        for number in range(MOST_WRITES)
    ],
)
def test_killed_at_any_write_of_the_hand_over_it_is_finished_or_undone(
    site: Site, recovery: str, number: int
) -> None:
    begun: list[int] = []
    counted = _Counted(site.cluster)
    site.cluster, real = counted, site.cluster  # type: ignore[assignment]
    site.change(V2, Arguments(progress=before_the_hand_over(lambda: begun.append(counted.writes))))
    site.cluster = real
    site.runs_from(V2)
    was_interrupted = site.interrupt(V3, Arguments(), begun[0] + number)
    pods = uids(site)
    if not was_interrupted:
        assert number > MOST_WRITES / 2
        assert site.is_at("v3")
        return
    assert number < MOST_WRITES - 1, "a write is not tested"
    {"rollback": site.rollback, "resume": site.resume, "again": lambda: site.change(V3)}[recovery]()
    expected = "v2" if recovery == "rollback" else "v3"
    assert site.is_at(expected) or (recovery == "rollback" and site.is_at("v3"))
    if site.running()["VDU1"] == {"v3"}:
        assert uids(site) == pods
    assert names(site) == ["web", "worker"]


class _Counted:
    """A client that counts its writes."""

    def __init__(self, cluster: Any) -> None:
        self._cluster, self.writes = cluster, 0

    def __getattr__(self, name: str) -> Any:
        self.writes += name in ("create", "replace", "delete")
        return getattr(self._cluster, name)


@pytest.mark.parametrize("site", [BLUE_GREEN], indirect=True)
def test_names_of_their_own_need_no_hand_over(site: Site) -> None:
    """As the specification has it: the new package names other Deployments."""
    site.shape = Shape(versioned_names=True)
    site.change(V2)
    site.runs_from(V2)
    plan = site.plan(replace(V3))
    assert not [step for step in plan.steps if step.action is Action.HAND_OVER]


RIVAL = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: rival}
spec:
  selector: {matchLabels: {vnf: sample}}
  template:
    metadata: {labels: {vnf: sample}}
    spec: {containers: [{name: main, image: nginx}]}
"""
"""Selects the pods of all others, as one in the sample of the v2 guide does: Kubernetes lets it."""


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, CANARY])
def test_pods_that_another_deployment_of_the_package_would_take_are_not_planned_to_be_handed_over(
    upgrade_type: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with kubernetes_site(upgrade_type, request, tmp_path) as site:
        site.shape = Shape(more={"rival.yaml": RIVAL})
        site.instantiate(V1)
        with pytest.raises(PlanError, match="rival, which would take its ReplicaSet"):
            site.change(V2)
        site.runs_from(V1)
        assert names(site) == ["rival", "web", "worker"]


def foreign(site: Site) -> Json:
    """A Deployment that another client has in the namespace, which selects the VNF's pods."""
    rival: Json = yaml.safe_load(RIVAL)
    rival["metadata"]["namespace"] = site.namespace
    return rival


@pytest.mark.parametrize("site", [BLUE_GREEN, CANARY], indirect=True)
def test_pods_that_a_foreign_deployment_would_take_are_not_planned_to_be_handed_over(
    site: Site,
) -> None:
    rival = site.admin.create(foreign(site))
    with pytest.raises(PlanError, match="rival, which would take its ReplicaSet"):
        site.plan(V2)
    site.admin.delete(ObjectKey.of(rival))
    site.change(V2)
    site.runs_from(V2)
    assert names(site) == ["web", "worker"]


IN_ANY = {"matchExpressions": [{"key": "vnf", "operator": "Exists"}]}


@pytest.mark.parametrize("selector", [None, IN_ANY], ids=["by labels", "by an expression"])
@pytest.mark.parametrize("site", [BLUE_GREEN], indirect=True)
def test_pods_are_not_given_away_to_a_deployment_that_came_during_the_change(
    site: Site, selector: Json | None
) -> None:
    (web,) = site.deployments("VDU1")
    rival = foreign(site)
    rival["spec"]["selector"] = selector or rival["spec"]["selector"]
    intrude = before_the_hand_over(partial(site.admin.create, rival))
    with pytest.raises(UpdateFailedError, match="which would take its ReplicaSet"):
        site.change(V2, Arguments(progress=intrude))
    assert names(site) == ["rival", "web", "worker"]
    assert {pod["metadata"]["name"].split("-")[0] for pod in site.objects("", "Pod")} == {
        *("rival", "web", "worker")
    }
    assert web["spec"]["template"] == site.deployments("VDU1")[0]["spec"]["template"]
