# SPDX-License-Identifier: Apache-2.0
"""Which pods a selector selects; which get the traffic of a Service, from its EndpointSlices."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.workloads.readiness import RolloutState
from container_update.workloads.traffic import matches, service_readiness


def _served(*uids: str, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"kubernetes.io/service-name": "s"}},
        "endpoints": [{"conditions": {"ready": ready}, "targetRef": {"uid": u}} for u in uids],
    }


def _behind(uid: str, ready: bool = True, **labels: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": {"uid": uid, "labels": labels or {"app": "w"}}, "status": status}


_TWO = [_behind("a"), _behind("b")]


@pytest.mark.parametrize(
    ("slices", "pods", "old", "says"),
    [
        pytest.param([_served("a", "b")], _TWO, (), "", id="all there"),
        pytest.param([_served("a"), _served("b")], _TWO, (), "", id="in two slices"),
        pytest.param([_served("a")], _TWO, (), "1 ready pods get no traffic", id="one missing"),
        pytest.param([_served("a", "b", "c")], _TWO, (), "1 other pods still", id="one too many"),
        pytest.param([_served("a", "b", "c")], _TWO, ("c",), "1 old pods still", id="an old one"),
        pytest.param([_served("a", "b")], _TWO, ("b",), "", id="an old one that is selected"),
        pytest.param([_served("a", "b", ready=False)], _TWO, (), "2 ready pods", id="not ready"),
        pytest.param([], [_behind("a", app="other")], (), "", id="selects nobody"),
        pytest.param([], [_behind("a", ready=False)], (), "", id="nobody is ready"),
    ],
)
def test_a_service_is_done_when_its_endpoints_are_the_ready_pods_it_selects(
    slices: list[Any], pods: list[Any], old: tuple[str, ...], says: str
) -> None:
    live = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "w"}}}
    readiness = service_readiness(live, slices, pods, frozenset(old))
    assert readiness.message.startswith(says)
    assert (readiness.state is RolloutState.DONE) is not bool(says)


def test_a_service_without_a_selector_is_not_waited_for() -> None:
    live = {"metadata": {"name": "s"}, "spec": {}}
    assert service_readiness(live, [_served("x")], [], frozenset({"x"})).state is RolloutState.DONE


def _label(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "selects_web", "selects_none"),
    [
        pytest.param({}, True, True, id="an empty one selects all"),
        pytest.param(None, False, False, id="none at all selects none"),
        pytest.param({"matchLabels": {"app": "web"}}, True, False, id="a label"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, True, True, id="null"),
        pytest.param(_label("In", "db", "web"), True, False, id="one of these"),
        pytest.param(_label("In", "db"), False, False, id="one of others"),
        pytest.param(_label("NotIn", "web"), False, True, id="none of these"),
        pytest.param(_label("Exists"), True, False, id="any"),
        pytest.param(_label("DoesNotExist"), False, True, id="no such label"),
        pytest.param(
            {"matchLabels": {"app": "web"}, **_label("NotIn", "web")}, False, False, id="both"
        ),
    ],
)
def test_a_label_selector_selects_what_the_server_says(
    selector: dict[str, Any] | None, selects_web: bool, selects_none: bool
) -> None:
    """Source: Kubernetes documentation, "Labels and Selectors"."""
    web, other = {"metadata": {"labels": {"app": "web"}}}, {"metadata": {}}
    assert (matches(selector, web), matches(selector, other)) == (selects_web, selects_none)
