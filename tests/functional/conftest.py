# SPDX-License-Identifier: Apache-2.0
"""A cluster to run against: the embedded one, or a real one when a kubeconfig is given.

    CONTAINER_UPDATE_KUBECONFIG=... pytest tests/functional

What brings a server of its own, or needs none, is not run then: it would say the same again.

Each test has a namespace of its own, which is deleted in the end. What is instantiated and looked
at there is so by the administrator; what updates has exactly the rights of samples/rbac/role.yaml.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from container_update import Options, connect
from tests.functional import role
from tests.functional.cnf import Cnf
from tests.functional.real import REAL, reaches_it
from tests.functional.reference_update import Lab
from tests.internals.core import Json, KubernetesCluster, ObjectKey, Right

WITHOUT_REAL = {
    "change_vnfpkg/test_records.py": "its VNFs are in stacks",
    "test_api_client.py": "its client is a mock",
    "test_driver_inputs.py": "what the driver refuses, before it reaches a cluster or at its first "
    "answer",
    "test_driver_rollback.py": "the records of a Tacker that runs beside the embedded cluster",
    "test_host_changes.py": "the records of a Tacker that runs beside the embedded cluster",
    "test_hostile_server.py": "answers that no real server gives",
    "test_inputs.py": "how packages are found and read",
    "test_json_documents.py": "documents of the command against their schema",
}
"""Files of which a real cluster proves nothing that other files do not: they start a server of
their own, or are about what this program does by itself. With what they are about."""

collect_ignore = [*WITHOUT_REAL] if REAL else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on a real cluster, the tests that would not reach it."""
    if not REAL:
        return
    left_out = [item for item in items if not reaches_it(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


OPTIONS = Options(timeout=120, grace_period=3 if REAL else 0.5)
"""A real cluster pulls images and has slower kubelets."""

PATIENCE_SECONDS = 120.0 if REAL else 30.0
"""How long a condition of the cluster may take to come true."""


@pytest.fixture(scope="session")
def admin_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The administrator's kubeconfig of the cluster to test against."""
    if REAL:
        yield REAL
        return
    from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster  # noqa: PLC0415
    from container_update.emulator.kubernetes.kubelet import Exit  # noqa: PLC0415
    from tests.functional.rollouts.controller import Rollouts  # noqa: PLC0415

    exits = [Exit(image="*crash*"), Exit(pod="j-*", code=0, after_seconds=0.3)]
    behaviour = Behaviour(exits=exits)
    with EmbeddedCluster(nodes=2, behaviour=behaviour, controllers=[Rollouts]) as embedded:
        yield str(embedded.write_kubeconfig(tmp_path_factory.mktemp("embedded") / "kubeconfig"))


@pytest.fixture(scope="session")
def admin(admin_kubeconfig: str) -> Iterator[KubernetesCluster]:
    """The administrator's client: creates namespaces, instantiates and reads everything."""
    with connect(admin_kubeconfig, options=OPTIONS) as connected:
        yield connected


@pytest.fixture
def namespace(admin: KubernetesCluster) -> Iterator[str]:
    """A new namespace in which pods can be created."""
    with new_namespace(admin) as name:
        yield name


@contextmanager
def new_namespace(admin: KubernetesCluster) -> Iterator[str]:
    """Have a new namespace in which pods can be created."""
    name = f"cu-{uuid.uuid4().hex[:10]}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = ObjectKey("", "ServiceAccount", name, "default")
    until(lambda: admin.get(account) is not None)
    yield name
    admin.delete(ObjectKey("", "Namespace", "", name))


@pytest.fixture
def kubeconfig(
    admin: KubernetesCluster, admin_kubeconfig: str, namespace: str, tmp_path: Path
) -> str:
    """A kubeconfig of an account with only the rights that an update needs in the namespace."""
    for body in role.objects(namespace):
        admin.create(body)
    return role.write_kubeconfig(admin_kubeconfig, namespace, tmp_path / "kubeconfig")


@pytest.fixture
def cluster(kubeconfig: str, namespace: str) -> Iterator[KubernetesCluster]:
    """The client of the account that updates."""
    with connect(kubeconfig, options=OPTIONS) as connected:
        # an API server hears of a new Role a moment after it was created
        until(lambda: not connected.missing_rights([Right(namespace, "", "Secret", "create")]))
        yield connected


@pytest.fixture
def cnf(
    admin: KubernetesCluster, cluster: KubernetesCluster, namespace: str, tmp_path: Path
) -> Cnf:
    """A CNF to instantiate; its packages are written into the test's folder."""
    return Cnf(admin, cluster, namespace, tmp_path, OPTIONS)


def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition of the cluster.

    :raises AssertionError: it did not come true in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def overwrite(cluster: KubernetesCluster, body: Json) -> None:
    """Replace an object as another client does that has read no version of it: a controller may
    have written its status in between."""
    metadata = {
        name: value for name, value in body["metadata"].items() if name != "resourceVersion"
    }
    cluster.replace({**body, "metadata": metadata})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server that records requests and takes faults, with a VNF in each namespace."""
    with Lab.running(tmp_path_factory.mktemp("lab")) as running:
        yield running
