# SPDX-License-Identifier: Apache-2.0
"""The targets that the contract runs on: one for each strategy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from container_update import connect
from tests.functional import role
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import ContractSite
from tests.functional.conftest import OPTIONS, REAL
from tests.functional.upgrade_types import CANARY, UPGRADE_TYPES
from tests.internals.core import ObjectKey, samples

CHANGE_OPTIONS = replace(OPTIONS, drain_seconds=0.1, coordination_seconds=20)


RIGHTS = samples.root() / "rbac/change-vnfpkg.yaml"

STRATEGIES = [
    *(("kubernetes", kind) for kind in (*UPGRADE_TYPES, CANARY)),
    *(("openstack", kind) for kind in UPGRADE_TYPES if not REAL),
]
"""A run on a real API server says nothing about stacks."""


@pytest.fixture(params=STRATEGIES, ids=lambda strategy: f"{strategy[0]}-{strategy[1]}")
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A target to instantiate the VNF on, with the strategy that changes it."""
    vim, kind = request.param
    make = kubernetes_site if vim == "kubernetes" else openstack_site
    with make(kind, request, tmp_path) as contract_site:
        yield contract_site


@pytest.fixture
def elsewhere(site: KubernetesContractSite) -> Iterator[str]:
    """Another namespace, in which nothing is."""
    name = f"{site.namespace}-b"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    site.admin.create(body)
    yield name
    site.admin.delete(ObjectKey.of(body))


@contextmanager
def kubernetes_site(
    kind: str, request: pytest.FixtureRequest, folder: Path
) -> Iterator[ContractSite]:
    """Yield a namespace of the cluster, with no more rights than samples/rbac grants."""
    admin = request.getfixturevalue("admin")
    namespace = request.getfixturevalue("namespace")
    kubeconfig = request.getfixturevalue("kubeconfig")
    for body in role.objects(namespace, RIGHTS):
        admin.create(body)
    with connect(kubeconfig, options=CHANGE_OPTIONS) as cluster:
        yield KubernetesContractSite(
            kind, admin, cluster, namespace, folder, CHANGE_OPTIONS, kubeconfig=kubeconfig
        )


@contextmanager
def openstack_site(kind: str, _: pytest.FixtureRequest, folder: Path) -> Iterator[ContractSite]:
    """Yield the embedded cloud, which does not have the image BAD_IMAGE."""
    pytest.importorskip("openstack", reason="the extra openstack is not installed")
    from container_update.emulator.heat import (  # noqa: PLC0415
        CloudFaults,
        EmbeddedOpenStack,
        ResourceFault,
    )
    from tests.functional.change_vnfpkg.openstack import (  # noqa: PLC0415
        BAD_IMAGE,
        OpenStackContractSite,
    )
    from tests.internals.stacks import connect as connect_cloud  # noqa: PLC0415
    from tests.internals.stacks import writer  # noqa: PLC0415

    missing = ResourceFault(
        f"Image {BAD_IMAGE} could not be found (HTTP 404)",
        "NotFound",
        where=lambda properties: properties.get("image") == BAD_IMAGE,
    )
    options = replace(CHANGE_OPTIONS, timeout=30, undo_timeout=30)
    with (
        EmbeddedOpenStack(faults=CloudFaults(seconds=0.001, resources=[missing])) as cloud,
        connect_cloud(auth=cloud.auth(), options=options) as heat,
        mock.patch.object(writer, "_FIRST_PAUSE", 0.005),  # this cloud is done in milliseconds
    ):
        yield OpenStackContractSite(kind, heat, folder, options)
