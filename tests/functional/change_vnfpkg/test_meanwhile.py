# SPDX-License-Identifier: Apache-2.0
"""What a plan copies from live objects is read again when it is used, or the operation is refused.

============================  ==================================================================
replicas of an old            the new one gets them directly before the switch, and so many pods
Deployment (Blue-Green)       are Ready first
those in a canary             expected as planned, or refused
a Service's selector          expected as planned, or refused
the target of an autoscaler   the same; its limits are no number of the plan
a StatefulSet's claims        read from the live object as it is deleted (``engine/claims.py``)
a DaemonSet's nodes           counted by its controller at each look (``workloads/readiness.py``)
============================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update import UpdateFailedError, promote
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments
from tests.functional.conftest import overwrite
from tests.functional.upgrade_types import BLUE_GREEN, CANARY
from tests.internals.core import Json

HOLD = {
    BLUE_GREEN: Arguments({"hold": True}),
    CANARY: Arguments({"canary_steps": [{"percent": 50, "hold": True}, 100]}),
}


@pytest.fixture
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesContractSite]:
    """A VNF of three pods in the middle of a change, by the strategy of the parameter."""
    with kubernetes_site(CANARY, request, tmp_path) as site:
        assert isinstance(site, KubernetesContractSite)
        site.shape, site.upgrade_type = Shape(replicas=3), request.param
        site.instantiate(V1)
        site.change(V2, HOLD[request.param])
        yield site


def old_one(site: KubernetesContractSite) -> Json:
    return site.get("apps", "Deployment", "web")


def scale(site: KubernetesContractSite, number: int) -> None:
    live = old_one(site)
    overwrite(site.admin, {**live, "spec": {**live["spec"], "replicas": number}})
    site.until(lambda: old_one(site).get("status", {}).get("readyReplicas") == number)


def go_on(site: KubernetesContractSite) -> Any:
    packages = list(filter(None, (site.old, site.new)))
    return promote(site.cluster, site.options, **site.where(), packages=packages)


@pytest.mark.parametrize("held", [BLUE_GREEN], indirect=True)
@pytest.mark.parametrize("number", [5, 1])
def test_as_many_new_pods_serve_as_old_ones_did_directly_before_the_switch(
    held: KubernetesContractSite, number: int
) -> None:
    scale(held, number)
    go_on(held)
    assert held.is_at("v2")
    assert old_one(held)["spec"]["replicas"] == number
    assert len(held.endpoints()) == number


@pytest.mark.parametrize("held", [CANARY], indirect=True)
def test_a_canary_is_refused_whose_pods_another_client_has_counted_anew(
    held: KubernetesContractSite,
) -> None:
    scale(held, 5)
    with pytest.raises(UpdateFailedError, match="found 5: another client has scaled it"):
        go_on(held)
    assert held.is_at("v1")
    assert old_one(held)["spec"]["replicas"] == 5


@pytest.mark.parametrize("held", [BLUE_GREEN], indirect=True)
def test_a_switch_is_refused_whose_service_another_client_has_pointed_elsewhere(
    held: KubernetesContractSite,
) -> None:
    live = held.get("", "Service", "web")
    overwrite(held.admin, {**live, "spec": {**live["spec"], "selector": {"app": "maintenance"}}})
    with pytest.raises(UpdateFailedError, match="changed by"):
        go_on(held)
    assert held.get("", "Service", "web")["spec"]["selector"] == {"app": "maintenance"}
