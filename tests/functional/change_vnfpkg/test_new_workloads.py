# SPDX-License-Identifier: Apache-2.0
"""A new workload whose pods cannot run: the change ends early or says why, and is undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update import ClusterError, StepWait, UpdateFailedError
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments, ContractSite
from tests.functional.manifests import workload
from tests.functional.real import one_of
from tests.functional.upgrade_types import UPGRADE_TYPES

Site = KubernetesContractSite
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod")


@pytest.fixture(params=UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A VNF with the old release, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        contract_site.instantiate(V1)
        yield contract_site


@pytest.mark.parametrize("kind", one_of(2, KINDS, everywhere=True))
def test_pods_without_their_service_account_end_the_change_with_the_servers_words(
    site: Site, kind: str
) -> None:
    """A Pod is refused before anything is written, the pods of a controller are not created."""
    site.shape = Shape(more={"x.yaml": workload(kind, "x", pod="serviceAccountName: none")})
    with pytest.raises(ClusterError if kind == "Pod" else UpdateFailedError) as raised:
        site.change(V2)
    message = str(raised.value)
    assert 'serviceaccount "none" not found' in message
    assert "not ready in time" not in message
    assert site.is_at("v1")


MISSING = "volumes: [{name: v, secret: {secretName: gone}}]"


@pytest.mark.parametrize("kind", one_of(2, KINDS, everywhere=True))
def test_a_secret_that_is_missing_is_named(site: Site, kind: str) -> None:
    site.shape = Shape(more={"x.yaml": workload(kind, "x", pod=MISSING)})
    with pytest.raises(UpdateFailedError) as raised:
        site.change(V2, Arguments(options={"timeout": 2}))
    (failed,) = [result for result in raised.value.outcome.results if result.diagnosis]
    assert failed.step.key.name == "x"
    assert failed.diagnosis is not None
    # by the Event that was read while it was waited for, or by the diagnosis: told once
    told = " ".join((str(raised.value), *failed.diagnosis.events))
    assert told.count("FailedMount") == 1
    assert told.count('"gone" not found') == 1
    assert site.is_at("v1")


def test_why_a_pod_does_not_start_is_told_while_it_is_waited_for(site: Site) -> None:
    site.shape = Shape(more={"x.yaml": workload("Deployment", "x", pod=MISSING)})
    seen: list[object] = []
    with pytest.raises(UpdateFailedError):
        site.change(V2, Arguments(options={"timeout": 5, "grace_period": 1}, progress=seen.append))
    waits = [event.message for event in seen if isinstance(event, StepWait)]
    assert any("FailedMount" in message and '"gone" not found' in message for message in waits)
