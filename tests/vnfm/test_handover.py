# SPDX-License-Identifier: Apache-2.0
"""Operations of a service that is stopped: another one, or the next start, goes on with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import KubernetesCluster
from tests.vnfm import fleet
from tests.vnfm.client import Client
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of, modify
from tests.vnfm.waiting import until

HANDED_OVER = "interrupted, as the service ends"
GOES_ON = "continuing what it began before"


@pytest.fixture
def pair(postgresql: str, tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two services on one database and with one state directory; a stop interrupts at once.

    Only the first runs, so that it has begun what the second shall finish.
    """
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "state").symlink_to(tmp_path / "first" / "state")
    services = [
        Served(tmp_path / name, postgresql, f"auth = none\nworkers = {workers}", drain_seconds=0)
        for name, workers in (("first", 2), ("second", 3))
    ]
    try:
        services[0].start()
        yield services[0], services[1]
    finally:
        for service in services:
            if service.process:
                service.kill()


def begin_and_wait(
    client: Client, instances: fleet.Fleet, cluster: EmbeddedCluster, at_work: int
) -> list[str]:
    """Begin to update every instance to a version that does not start yet."""
    cluster.behaviour.bad_images = ["*:2.0"]
    cluster.behaviour.backoff_seconds = cluster.behaviour.backoff_limit_seconds = 0.1
    begun = [modify(client, instances, path) for path in instances.paths]

    def restarting() -> int:
        steps = [client.call("GET", f"{path}/progress")["steps"] for path in begun]
        return sum(any(step["state"] == "running" for step in each) for each in steps)

    until(lambda: restarting() >= at_work, "pods of the new version are waited for")
    return begun


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_another_service_finishes_what_a_stopped_one_was_doing(
    api: str,
    pair: tuple[Served, Served],
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    first, second = pair
    instances = fleet.launch(client_of(first, api), cluster, kubernetes, tmp_path, 3)
    begun = begin_and_wait(client_of(first, api), instances, cluster, at_work=2)
    second.start()
    client = client_of(second, api)
    assert first.stop() == 0
    assert first.logged(HANDED_OVER) == 2
    for operation in begun:
        assert client.call("GET", operation)["operationState"] in ("STARTING", "PROCESSING")
    until(lambda: second.logged(GOES_ON) >= 2, "the other service goes on")

    cluster.behaviour.bad_images = []
    for operation in begun:
        ended = client.settled(operation)
        assert ended["operationState"] == "COMPLETED", ended.get("error")
    assert set(fleet.check(client, instances, kubernetes).values()) == {"2.0"}


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_without_another_service_the_next_start_finishes_it(
    api: str, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    service = Served(tmp_path / "only", "", drain_seconds=0)
    try:
        service.start()
        client = client_of(service, api)
        instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
        (operation,) = begin_and_wait(client, instances, cluster, at_work=1)
        assert service.stop() == 0
        assert service.logged(HANDED_OVER) == 1
        cluster.behaviour.bad_images = []
        service.start()
        ended = client.settled(operation)
        assert ended["operationState"] == "COMPLETED", ended.get("error")
        assert set(fleet.check(client, instances, kubernetes).values()) == {"2.0"}
    finally:
        if service.process:
            service.kill()
