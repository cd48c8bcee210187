# SPDX-License-Identifier: Apache-2.0
"""An API server that fails one request while the package changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update.model.errors import ClusterError, ContainerUpdateError
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import V1, V2, ContractSite
from tests.functional.upgrade_types import UPGRADE_TYPES

Site = KubernetesContractSite


@pytest.fixture(params=UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A namespace of the cluster to instantiate the VNF in, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        yield contract_site


class _FaultyCluster:
    """A cluster client whose request with this number among the writes fails."""

    def __init__(self, cluster: Any, number: int, fault: str) -> None:
        self._cluster = cluster
        self._left = number
        self._fault = fault
        self._counting = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name not in ("create", "replace", "delete"):
            return method

        def call(*args: Any, **more: Any) -> Any:
            with self._counting:
                self._left -= 1
                is_it = self._left == 0
            if not is_it:
                return method(*args, **more)
            if self._fault == "the answer is lost":
                method(*args, **more)
                raise ClusterError(f"{name}: the connection broke", transient=True)
            if self._fault == "overloaded":
                raise ClusterError(f"{name}: answered 503", status=503, transient=True)
            raise ClusterError(f"{name}: answered 403 Forbidden", status=403)

        return call


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        *(("the answer is lost", number) for number in range(1, 13)),
        *(("overloaded", number) for number in (2, 5, 8)),
    ],
)
def test_a_retried_request_does_no_harm(site: Site, fault: str, number: int) -> None:
    site.instantiate(V1)
    cluster = site.cluster
    site.cluster = _FaultyCluster(cluster, number, fault)  # type: ignore[assignment]
    site.change(V2)
    site.cluster = cluster
    assert site.is_at("v2")


@pytest.mark.parametrize("number", range(1, 11))
def test_a_change_with_a_refused_request_leaves_one_whole_release(site: Site, number: int) -> None:
    site.instantiate(V1)
    cluster = site.cluster
    site.cluster = _FaultyCluster(cluster, number, "forbidden")  # type: ignore[assignment]
    try:
        site.change(V2)
        expected = "v2"  # the request was not needed for the promise: a lock or journal given back
    except ContainerUpdateError:
        expected = "v1"
    site.cluster = cluster
    assert site.running() == {"VDU1": {expected}, "VDU2": {expected}}
    assert site.serving() == {expected}
