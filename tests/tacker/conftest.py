# SPDX-License-Identifier: Apache-2.0
"""A real Tacker for the tests of this folder, started once; a cluster of its own for each test."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from container_update import connect
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.real import REAL
from tests.internals.core import Collection, ObjectKey, is_deleting, samples
from tests.tacker import lab as labs
from tests.tacker import services
from tests.tacker.cluster import RealCluster
from tests.tacker.operator import Operator, until

Build = Callable[..., Mapping[str, Path]]
SAMPLES = samples.root()


@pytest.fixture(scope="session")
def lab() -> labs.Lab:
    """The lab with the checkout installed in it; skipped if it was not fetched."""
    live_object = labs.find()
    if not live_object.is_fetched:
        pytest.skip(f"no Tacker in {live_object.folder}: python tests/tacker/lab.py fetches it")
    labs.install_checkout(live_object)
    return live_object


@pytest.fixture(scope="session")
def tacker(lab: labs.Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[services.Tacker]:
    """A Tacker that runs."""
    with services.running(lab, tmp_path_factory.mktemp("tacker")) as running:
        yield running


@pytest.fixture(scope="session")
def build(lab: labs.Lab, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function that builds the sample packages of an API, with the guide's VNFD ids or others."""

    def build(api: str, vnfd_ids: Mapping[str, str] | None = None) -> Mapping[str, Path]:
        return samples.build_for_tacker(api, lab.types, tmp_path_factory.mktemp(api), vnfd_ids)

    return build


AnyCluster = EmbeddedCluster | RealCluster


@pytest.fixture
def cluster() -> Iterator[AnyCluster]:
    """An empty cluster: the embedded one, or a real one for these tests alone when a kubeconfig is
    given."""
    if REAL:
        real = RealCluster(Path(REAL))
        yield real
        real.clean()
        return
    with EmbeddedCluster() as running:
        yield running


class Kubectl:
    """Reads and changes the objects of a cluster, independently of Tacker."""

    def __init__(self, kubeconfig: Path) -> None:
        self._cluster = connect(str(kubeconfig))
        self.close = self._cluster.close

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the Pods by name, without those that are being deleted."""
        listing = self._cluster.list(Collection("", "Pod", "default"))
        return {pod["metadata"]["name"]: pod for pod in listing.items if not is_deleting(pod)}

    def data(self, kind: str, name: str) -> dict[str, str]:
        """Return the data of a ConfigMap or Secret."""
        listing = self._cluster.list(Collection("", kind, "default"))
        (live_object,) = (each for each in listing.items if each["metadata"]["name"] == name)
        return dict(live_object["data"])

    def get(self, kind: str, name: str, group: str = "") -> dict[str, Any]:
        """Return an object."""
        body = self._cluster.get(ObjectKey(group, kind, "default", name))
        assert body is not None, f"{kind} {name} is not there"
        return body

    def names(self, kind: str, group: str = "") -> set[str]:
        """Return the names of the objects of a kind, without those that are being deleted."""
        listing = self._cluster.list(Collection(group, kind, "default"))
        return {each["metadata"]["name"] for each in listing.items if not is_deleting(each)}

    def define(self, definition: dict[str, Any]) -> None:
        """Create a CustomResourceDefinition and wait until its kind is served."""
        self._cluster.create(definition)
        live = ObjectKey.of(definition)
        until(
            lambda: self._cluster.get(live),
            lambda body: "Established" in str(body.get("status")),
            "the kind is served",
        )


@pytest.fixture
def kubectl(cluster: AnyCluster, tmp_path: Path) -> Iterator[Kubectl]:
    """A reader of the test's cluster."""
    with closing(Kubectl(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as connected:
        yield connected


def guide_request(guide: str, name: str) -> dict[str, Any]:
    """Return a request of one of the user guides: instantiate or modify."""
    text = (SAMPLES / "01-user-guide" / guide / name).read_text()
    return dict(json.loads(text))


def onboarded(operator: Operator, build: Build, *sides: str) -> list[str]:
    """Upload the guide's packages with new VNFD ids; return the ids."""
    vnfd_ids = {side: str(uuid.uuid4()) for side in sides or ("before", "after")}
    packages = build(operator.api, vnfd_ids)
    for side, package in packages.items():
        assert operator.onboard(package) == vnfd_ids[side]
    return list(vnfd_ids.values())


def instantiated(operator: Operator, cluster: AnyCluster, vnfd_id: str, *more_files: str) -> str:
    """Instantiate the guide's CNF from a package; return the id of the instance."""
    request = guide_request(operator.api, "instance_kubernetes.json")
    request["additionalParams"]["lcm-kubernetes-def-files"] += more_files
    request["vimConnectionInfo"] = operator.vim_connection(cluster)
    instance_id = operator.create(vnfd_id)
    occurrence = operator.instantiate(instance_id, request)
    assert occurrence["operationState"] == "COMPLETED", occurrence
    return instance_id


def running_cnf(operator: Operator, cluster: AnyCluster, build: Build) -> tuple[str, str]:
    """Instantiate the guide's CNF; return the ids of the instance and of the new VNFD."""
    old, new = onboarded(operator, build)
    return instantiated(operator, cluster, old), new
