# SPDX-License-Identifier: Apache-2.0
"""No request is lost while traffic moves from the old pods to the new ones, or back.

The client is the emulated data path: it knows the endpoints of a Service as a node does, a little
late, picks one for each request, and the request is lost unless that pod is running and ready.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import UpdateFailedError, connect
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster, Registry
from tests.functional.change_vnfpkg.conftest import CHANGE_OPTIONS
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments, Release
from tests.functional.conftest import REAL
from tests.functional.upgrade_types import BLUE_GREEN

pytestmark = pytest.mark.skipif(bool(REAL), reason="the client looks into the embedded cluster")

V3 = Release("v3")
OPTIONS = replace(CHANGE_OPTIONS, drain_seconds=0.2)
LATE_SECONDS = 0.05
"""How late the client sees a change of the endpoints."""
LATEST_SECONDS = 0.18
"""The client's greatest delay: below the drain time, which allows for such a client. On a machine
that is so busy that more time has passed, the client reads the endpoints again."""

FAILS = "import sys; sys.exit('not yet')"
"""The new pods are Ready when the new VNF's script fails, and serve when the old VNF's does."""


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedCluster]:
    """A cluster whose containers come and go fast."""
    behaviour = Behaviour(start_seconds=0.005, stop_seconds=0.005, backoff_seconds=0.1)
    with EmbeddedCluster(behaviour=behaviour, history=100_000) as cluster:
        yield cluster


@pytest.fixture
def make(embedded: EmbeddedCluster, tmp_path: Path) -> Iterator[Callable[[Shape], Any]]:
    """Return a function that instantiates a VNF of a shape for Blue-Green."""
    kubeconfig = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
    namespace = f"n{random.randrange(10**9)}"

    def account(registry: Registry) -> Any:
        return registry.get("serviceaccounts", namespace, "default")

    with connect(kubeconfig, options=OPTIONS) as cluster:

        def make_site(shape: Shape) -> KubernetesContractSite:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            cluster.create(body)
            contract_site = KubernetesContractSite(
                BLUE_GREEN, cluster, cluster, namespace, tmp_path, OPTIONS, shape
            )
            contract_site.until(lambda: embedded.call(account) is not None)
            contract_site.instantiate(V1)
            return contract_site

        yield make_site


class Client:
    """Sends requests to the Service all the time."""

    def __init__(self, embedded: EmbeddedCluster, namespace: str) -> None:
        self._embedded = embedded
        self._namespace = namespace
        self._done = threading.Event()
        self.answers: dict[str, int] = {}
        """Image to how many requests its pods answered."""
        self.lost: list[str] = []

    @contextmanager
    def sending_requests(self) -> Iterator[Client]:
        """Send requests while the block runs."""
        thread = threading.Thread(target=self._send_all)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join()

    def _send_all(self) -> None:
        while not self._done.is_set():
            latest = time.monotonic() + LATEST_SECONDS
            known = self._embedded.call(self._endpoints)
            self._done.wait(LATE_SECONDS)
            for _ in range(10):
                self._embedded.call(self._send, known, latest)

    def _endpoints(self, registry: Registry) -> list[str]:
        slices = registry.list("endpointslices", self._namespace)
        return [
            str(endpoint["targetRef"]["uid"])
            for body in slices
            if body["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
            for endpoint in body["endpoints"]
            if endpoint["conditions"]["ready"]
        ]

    def _send(self, registry: Registry, known: list[str], latest: float) -> None:
        """Send one request."""
        if time.monotonic() > latest:
            return
        pods = {pod["metadata"]["uid"]: pod for pod in registry.list("pods", self._namespace)}
        chosen = pods.get(random.choice(known)) if known else None
        if chosen is None or not _answers(chosen):
            self.lost.append(chosen["metadata"]["name"] if chosen else "no pod")
            return
        image = chosen["spec"]["containers"][0]["image"]
        self.answers[image] = self.answers.get(image, 0) + 1


def _answers(pod: Any) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


SHAPES = {
    "one name, no label": Shape(),
    "labels with the version": Shape(labelled=True),
    "names with the version": Shape(versioned_names=True),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_no_request_is_lost_in_twenty_switches_with_rollbacks_in_between(
    embedded: EmbeddedCluster, make: Callable[[Shape], KubernetesContractSite], shape: Shape
) -> None:
    site = make(shape)
    releases = [V2, V3, V1]
    with Client(embedded, site.namespace).sending_requests() as client:
        for number in range(20):
            release = releases[number % 3]
            if number % 4 == 3:
                role = "new" if number % 8 == 3 else "old"
                broken = replace(release, scripts={"Scripts/fails.py": FAILS})
                with pytest.raises(UpdateFailedError, match="not yet"):
                    site.change(
                        broken,
                        Arguments({f"lcm-operation-coordinate-{role}-vnf": "Scripts/fails.py"}),
                    )
                assert site.serving() == {releases[(number - 1) % 3].version}
            site.change(release)
            assert site.is_at(release.version)
            site.runs_from(release)
    assert not client.lost
    assert len(client.answers) == 3
    assert sum(client.answers.values()) > 500


def test_without_a_drain_the_client_loses_requests(
    embedded: EmbeddedCluster, make: Callable[[Shape], KubernetesContractSite]
) -> None:
    """Old pods that end at once, without a drain, lose requests: the client notices late."""
    site = make(Shape())
    with Client(embedded, site.namespace).sending_requests() as client:
        for release in (V2, V3, V1, V2, V3, V1):
            site.change(release, Arguments(options={"drain_seconds": 0.0}))
            site.runs_from(release)
    assert client.lost
