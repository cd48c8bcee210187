# SPDX-License-Identifier: Apache-2.0
"""Services and autoscalers that stay follow their pods; no cluster."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.blue_green import BlueGreenPlanner
from container_update.planning.rolling import RollingPlanner
from container_update.planning.strategy import Strategy
from tests.unit.planning.test_change import deployment, live, manifests, plan, service, told

STRATEGIES = pytest.mark.parametrize("kind", [RollingPlanner, BlueGreenPlanner])
OLD = deployment(app="web", version="1")
NEW = deployment(image="a:2", app="web", version="2")


def changed(kind: type[Strategy], stays: Json, new: Json = NEW, *more: Json) -> Any:
    """The plan of a change that applies a Deployment beside what stays."""
    return plan(kind, [OLD, stays, *more], [new], kept=manifests([stays, *more]))


def autoscaler() -> Json:
    """An autoscaler's manifest."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": target},
    }


@STRATEGIES
def test_the_selector_of_a_service_gets_the_values_of_the_new_pods(
    kind: type[Strategy],
) -> None:
    planned = changed(kind, service(app="web", version="1"))
    (switch,) = [step for step in planned.steps if step.action is Action.SWITCH]
    assert switch.content["spec"]["selector"] == {"app": "web", "version": "2"}
    assert switch.content["spec"]["ports"] == [{"port": 80}]


def test_a_rolling_update_leaves_a_service_alone_that_selects_old_and_new_pods() -> None:
    assert told(changed(RollingPlanner, service(app="web"))) == ["ROLL Deployment web"]


def test_blue_green_holds_and_switches_a_service_that_selects_old_and_new_pods() -> None:
    actions = [step.action for step in changed(BlueGreenPlanner, service(app="web")).steps]
    switched = [Action.HOLD, Action.CREATE, Action.SWITCH, Action.DELETE]
    assert actions == [*switched, Action.HAND_OVER]


@STRATEGIES
def test_a_service_of_other_pods_stays(kind: type[Strategy]) -> None:
    planned = changed(kind, service(app="another"))
    assert not [step for step in planned.steps if step.key.kind == "Service"]
    assert ObjectKey("", "Service", "n", "web") in planned.unchanged


@STRATEGIES
def test_a_service_stays_while_no_pods_change(kind: type[Strategy]) -> None:
    assert not changed(kind, service(app="web"), OLD).steps


def test_an_autoscaler_names_the_new_deployment_of_another_name() -> None:
    renamed = {**NEW, "metadata": {**NEW["metadata"], "name": "front"}}
    planned = plan(
        BlueGreenPlanner, [OLD, autoscaler()], [renamed], kept=manifests([autoscaler()]),
        old_vdus={"VDU1": "web"}, new_vdus={"VDU1": "front"},
    )  # fmt: skip
    (switch,) = [step for step in planned.steps if step.key.kind == "HorizontalPodAutoscaler"]
    assert switch.content["spec"]["scaleTargetRef"]["name"] == "front"


@STRATEGIES
def test_an_autoscaler_stays_where_the_name_does(kind: type[Strategy]) -> None:
    planned = changed(kind, autoscaler())
    assert not [step for step in planned.steps if step.key.kind == "HorizontalPodAutoscaler"]


@STRATEGIES
@pytest.mark.parametrize(
    ("new", "more", "words"),
    [
        (deployment(image="a:2", app="web"), [], "found no such label"),
        (NEW, [deployment("beside", app="web", version="1")], "Deployment n/beside too"),
    ],
    ids=["the new pods lack the label", "another workload would lose it"],
)
def test_a_service_that_cannot_follow_is_refused_with_its_file(
    kind: type[Strategy], new: Json, more: list[Json], words: str
) -> None:
    with pytest.raises(PlanError, match=rf"Service n/web.*{words}.*add Service\.yaml"):
        changed(kind, service(app="web", version="1"), new, *more)


@STRATEGIES
def test_a_workload_that_stays_restarts_for_configuration_that_changes(
    kind: type[Strategy],
) -> None:
    reader = deployment("other", app="other")
    source = [{"configMapRef": {"name": "cm"}}]
    reader["spec"]["template"]["spec"]["containers"][0]["envFrom"] = source
    cm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}
    old, new = ({**cm, "data": {"a": value}} for value in "12")
    planned = plan(kind, [reader, old], [new], kept=manifests([reader]))
    assert told(planned) == ["REPLACE ConfigMap cm", "ROLL Deployment other"]
    assert not plan(
        kind, [reader, old], [new], kept=manifests([reader]), chosen=frozenset({"VDU1"})
    ).steps[1:]


@STRATEGIES
def test_what_an_earlier_change_left_behind_is_applied_when_it_is_listed(
    kind: type[Strategy],
) -> None:
    """Both packages describe it alike, but the cluster has what came before them."""
    there = live([OLD, service(app="web", version="1")])
    described = service(app="web", version="1")
    described["spec"]["ports"] = [{"port": 8080}]
    assert not plan(kind, [OLD, described], [OLD, described], there).steps
    there[ObjectKey("apps", "Deployment", "n", "web")]["metadata"]["annotations"] = {
        "container-update/manifest-digest": "of another change"
    }
    steps = told(plan(kind, [OLD, described], [described], there, kept=manifests([OLD])))
    assert steps == ["REPLACE Service web"]
