# SPDX-License-Identifier: Apache-2.0
"""Objects of others in the namespace: only what gets the VNF's traffic is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from container_update import PlanError
from tests.functional import upgrade_types
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import PLAIN, V1, V2, VDUS
from tests.functional.counted import Counted
from tests.functional.manifests import workload

OTHERS = 3
INTERRUPTED_AFTER = 6
"""Writes, lease and journal included: a few of the objects."""
BLUE_GREEN = pytest.mark.parametrize("site", [upgrade_types.BLUE_GREEN], indirect=True)


@pytest.fixture(params=upgrade_types.UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesContractSite]:
    """A namespace in which others have Deployments."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        assert isinstance(contract_site, KubernetesContractSite)
        for number in range(OTHERS):
            create(contract_site, "Deployment", f"other{number}", {"app": f"other{number}"})
        yield contract_site


def create(site: KubernetesContractSite, kind: str, name: str, labels: dict[str, str]) -> None:
    """Create a workload of others, whose pods have these labels, and wait for its pod."""
    body = yaml.safe_load(workload(kind, name))
    body["metadata"]["namespace"] = site.namespace
    if kind == "Pod":
        body["metadata"]["labels"] = labels
    else:
        body["spec"]["selector"] = {"matchLabels": labels}
        body["spec"]["template"]["metadata"] = {"labels": labels}
    before = len(site.objects("", "Pod"))
    site.admin.create(body)
    site.until(lambda: len(site.objects("", "Pod")) > before)


def test_they_are_not_kept_and_their_pods_are_not_sent(site: KubernetesContractSite) -> None:
    site.instantiate(V1)
    pods = sum(len(site.instances(vdu)) for vdu in VDUS)
    counted = Counted(site.cluster)
    replace(site, cluster=counted).change(V2)
    assert site.is_at("v2")
    assert counted.kept["Pod"] == counted.sent["Pod"] == pods
    for kind in ("Deployment", "ReplicaSet"):
        lists = counted.sent[kind] // (len(VDUS) + OTHERS)
        assert 0 < counted.kept[kind] <= lists * len(VDUS)
    assert not {name for name in counted.names if name.startswith("other")}


@pytest.mark.parametrize("end", ["resume", "rollback"])
def test_they_are_not_kept_by_who_ends_an_interrupted_change(
    site: KubernetesContractSite, end: str
) -> None:
    site.instantiate(V1)
    assert site.interrupt(V2, PLAIN, INTERRUPTED_AFTER)
    counted = Counted(site.cluster)
    getattr(replace(site, cluster=counted), end)()
    assert site.is_at("v2" if end == "resume" else "v1")
    assert counted.kept["Deployment"] >= len(VDUS)
    assert not {name for name in counted.names if name.startswith("other")}


@BLUE_GREEN
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ReplicaSet"])
def test_one_that_would_lose_its_traffic_is_seen(site: KubernetesContractSite, kind: str) -> None:
    site.instantiate(V1)
    create(site, kind, "served", {"app": "web", "of": "others"})
    with pytest.raises(PlanError, match=f"sends traffic to {kind} .*/served too"):
        site.change(V2)
    assert site.is_at("v1")


@BLUE_GREEN
def test_one_that_gets_traffic_after_the_switch_is_seen(site: KubernetesContractSite) -> None:
    site = replace(site, shape=Shape(labelled=True))
    site.instantiate(V1)
    create(site, "Pod", "served", {"vnf": "others", "app": "web", "version": "v2"})
    site.change(V2)
    assert site.running() == {vdu: {"v2"} for vdu in VDUS}


@pytest.mark.parametrize(
    ("selector", "is_lost"),
    [
        ({"app": "web", "version": "v1"}, True),
        ({"app": "web"}, False),
        ({"vnf": "sample"}, False),
        ({"app": "other0"}, False),
        ({"app": "nothing"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_service_of_others_that_loses_all_of_its_pods_is_noted(
    site: KubernetesContractSite, selector: dict[str, str], is_lost: bool
) -> None:
    site.shape = Shape(labelled=True)
    site.instantiate(V1)
    metadata = {"name": "foreign", "namespace": site.namespace}
    spec = {"selector": selector, "ports": [{"port": 80}]}
    site.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    notes = [str(note) for note in site.plan(V2).notes if note.key.name == "foreign"]
    assert len(notes) == is_lost
    assert all("does not belong to this VNF, and selects none of" in note for note in notes)
