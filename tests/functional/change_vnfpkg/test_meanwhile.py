# SPDX-License-Identifier: Apache-2.0
"""What a plan copies from live objects is read again when it is used, or the operation is refused.

============================  ==================================================================
replicas of an old            the new one gets them directly before the switch, and so many pods
Deployment (Blue-Green)       are Ready first
those in a canary             expected as planned, or refused
a Service's selector          expected as planned, or refused; a canary does not write it
an autoscaler that follows    its target expected as planned, or refused; its limits stay as they
                              are by then, where the packages agree on them
a StatefulSet's claims        read from the live object as it is deleted (``engine/claims.py``)
a DaemonSet's nodes           counted by its controller at each look (``workloads/readiness.py``)
============================  ==================================================================
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import ClusterError, UpdateFailedError, promote
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import IMAGES, KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import workload
from tests.functional.upgrade_types import BLUE_GREEN, CANARY
from tests.internals.core import Collection, Json, KubernetesCluster, ObjectKey

HOLD = {
    BLUE_GREEN: Arguments({"hold": True}),
    CANARY: Arguments({"canary_steps": [{"percent": 50, "hold": True}, 100]}),
}


@contextmanager
def held_change(
    request: pytest.FixtureRequest, folder: Path, upgrade_type: str, old: str = "", new: str = ""
) -> Iterator[KubernetesContractSite]:
    """Yield a VNF of three pods in the middle of a change.

    :param old: more of the old package, whose Deployments are then named after their version.
    :param new: more of the new one.
    """
    with kubernetes_site(CANARY, request, folder) as site:
        assert isinstance(site, KubernetesContractSite)
        site.upgrade_type = upgrade_type
        before, after = ({"more.yaml": text} if text else {} for text in (old, new))
        site.shape = Shape(replicas=3, more=before, versioned_names=bool(old))
        site.instantiate(V1)
        site.shape = replace(site.shape, more=after)
        site.change(V2, HOLD[upgrade_type])
        yield site


@pytest.fixture
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesContractSite]:
    """A VNF of three pods in the middle of a change, by the strategy of the parameter."""
    with held_change(request, tmp_path, request.param) as site:
        yield site


def old_one(site: KubernetesContractSite) -> Json:
    return site.get("apps", "Deployment", "web")


def scale(site: KubernetesContractSite, number: int) -> None:
    respecify(site, ("apps", "Deployment", "web"), replicas=number)
    site.until(lambda: old_one(site).get("status", {}).get("readyReplicas", 0) == number)


def respecify(site: KubernetesContractSite, kind: tuple[str, str, str], **fields: Any) -> None:
    """Let another client write fields of an object's spec."""
    live = site.get(*kind)
    overwrite(site.admin, {**live, "spec": {**live["spec"], **fields}})


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


@pytest.mark.parametrize("held", [BLUE_GREEN], indirect=True)
def test_what_another_client_has_stopped_is_not_started(held: KubernetesContractSite) -> None:
    before = old_one(held)["metadata"]["uid"]
    scale(held, 0)
    go_on(held)
    now = old_one(held)
    assert now["metadata"]["uid"] != before
    assert now["spec"]["replicas"] == 0


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
    respecify(held, ("", "Service", "web"), selector={"app": "maintenance"})
    with pytest.raises(UpdateFailedError, match="changed by"):
        go_on(held)
    assert held.get("", "Service", "web")["spec"]["selector"] == {"app": "maintenance"}


@pytest.mark.parametrize("held", [CANARY], indirect=True)
def test_a_canary_writes_no_service_that_another_client_has_pointed_elsewhere(
    held: KubernetesContractSite,
) -> None:
    respecify(held, ("", "Service", "web"), selector={"app": "maintenance"})
    go_on(held)
    assert set().union(*held.running().values()) == {"v2"}
    assert held.get("", "Service", "web")["spec"]["selector"] == {"app": "maintenance"}


AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: 3
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-VERSION}
"""
AUTOSCALERS = [AUTOSCALER.replace("VERSION", version) for version in ("v1", "v2")]


HPA = ("autoscaling", "HorizontalPodAutoscaler", "web")


def test_a_change_is_refused_whose_autoscaler_another_client_has_pointed_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "maintenance"}
    with held_change(request, tmp_path, BLUE_GREEN, *AUTOSCALERS) as site:
        respecify(site, HPA, scaleTargetRef=target)
        with pytest.raises(UpdateFailedError, match="changed by"):
            go_on(site)
        assert site.get(*HPA)["spec"]["scaleTargetRef"] == target


LIMITS: list[Json] = [
    {"maxReplicas": 9},
    {"minReplicas": 1},
    {"minReplicas": 3, "maxReplicas": 3},
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_the_limits_that_another_client_gives_an_autoscaler_stay(
    request: pytest.FixtureRequest, tmp_path: Path, limits: Json
) -> None:
    with held_change(request, tmp_path, BLUE_GREEN, *AUTOSCALERS) as site:
        respecify(site, HPA, **limits)
        go_on(site)
        spec = site.get(*HPA)["spec"]
        assert limits.items() <= spec.items()
        assert spec["scaleTargetRef"]["name"] == "web-v2"


CLAIMING = workload(
    "StatefulSet",
    "db",
    replicas=0,
    spec="""
    persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
    volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
    """,
)


def test_a_claim_that_came_meanwhile_stays_where_its_statefulset_is_deleted(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with held_change(request, tmp_path, BLUE_GREEN, CLAIMING) as site:
        respecify(site, ("apps", "StatefulSet", "db"), replicas=1)
        site.until(lambda: bool(site.objects("", "PersistentVolumeClaim")))
        go_on(site)
        assert not site.objects("apps", "StatefulSet")
        (claim,) = site.objects("", "PersistentVolumeClaim")
        assert not claim["metadata"].get("deletionTimestamp")
        assert not claim["metadata"].get("ownerReferences")


def mark(admin: KubernetesCluster, node: str, label: str, value: str | None) -> None:
    """Give a node a label, or take it away: kubelets write into their nodes all the time."""

    def is_written() -> bool:
        live = admin.get(ObjectKey("", "Node", "", node))
        assert live is not None
        labels = {n: text for n, text in live["metadata"]["labels"].items() if n != label}
        labels |= {label: value} if value else {}
        try:
            admin.replace({**live, "metadata": {**live["metadata"], "labels": labels}})
        except ClusterError as error:
            if error.status != 409:
                raise
            return False
        return True

    until(is_written)


@pytest.fixture
def place(admin: KubernetesCluster) -> Iterator[tuple[str, list[str]]]:
    """A label that no other test selects nodes by, and two nodes; it goes in the end."""
    label = f"{uuid.uuid4().hex[:8]}.example.org/place"
    nodes = [body["metadata"]["name"] for body in admin.list(Collection("", "Node", "")).items]
    yield label, nodes[:2]
    for node in nodes[:2]:
        mark(admin, node, label, None)


def test_nodes_that_came_meanwhile_get_their_pods(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    admin: KubernetesCluster,
    place: tuple[str, list[str]],
) -> None:
    label, (first, second) = place
    old, new = (
        workload(
            "DaemonSet", "agent", image=IMAGES[version], pod=f"nodeSelector: {{{label}: here}}"
        )
        for version in ("v1", "v2")
    )
    mark(admin, first, label, "here")
    with held_change(request, tmp_path, BLUE_GREEN, old, new) as site:
        mark(admin, second, label, "here")
        go_on(site)
        assert site.is_at("v2")
        ready = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2}
        agent = lambda: site.get("apps", "DaemonSet", "agent")["status"]  # noqa: E731
        site.until(lambda: ready.items() <= agent().items())
