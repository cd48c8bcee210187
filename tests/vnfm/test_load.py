# SPDX-License-Identifier: Apache-2.0
"""Many concurrent instances, and a service that is killed."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Event
from typing import Protocol

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import KubernetesCluster
from tests.vnfm import fleet, vnfs
from tests.vnfm.client import SETTLED, Client
from tests.vnfm.served import served

try:
    import httpx2 as httpx
except ImportError:  # Python 3.10
    import httpx  # type: ignore[no-redef]


class Reachable(Protocol):
    """A service that answers at a URL."""

    @property
    def url(self) -> str: ...


INSTANCES, WORKERS = 50, 8
KILLS, KILLED_INSTANCES = 20, {"v1": 5, "v2": 1}
SEED = 20261121


def client_of(service: Reachable, api: str, seconds: float = 60) -> Client:
    return Client(httpx.Client(base_url=service.url, timeout=seconds), api)


def modify(client: Client, instances: fleet.Fleet, path: str) -> str:
    """Begin to update an instance to the other version and return the operation's path."""
    now = client.call("GET", path)["vnfdId"]
    return client.begin("PATCH", path, vnfs.modification(instances.other(now)))


def test_fifty_concurrent_updates_end_in_a_consistent_state(
    cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    with served(tmp_path) as service:
        client = client_of(service, "v1")
        instances = fleet.launch(client, cluster, kubernetes, tmp_path, INSTANCES)

        operations = [modify(client, instances, path) for path in instances.paths]

        at_work = _running(client)
        for operation in operations:
            assert client.settled(operation)["operationState"] == "COMPLETED"
        assert at_work <= WORKERS
        versions = fleet.check(client, instances, kubernetes)
        assert list(versions.values()) == ["2.0"] * INSTANCES


def _running(client: Client) -> int:
    listed = client.call("GET", f"/vnflcm/{client.api}/vnf_lcm_op_occs")
    return sum(each["operationState"] == "PROCESSING" for each in listed)


def test_acknowledged_operations_survive_kills_of_the_service(
    cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    with served(tmp_path) as service:
        clients = {api: client_of(service, api) for api in KILLED_INSTANCES}
        fleets = {
            api: fleet.launch(client, cluster, kubernetes, tmp_path, KILLED_INSTANCES[api])
            for api, client in clients.items()
        }
        accepted: dict[str, list[str]] = {api: [] for api in clients}
        for _ in range(KILLS):
            for api, client in clients.items():
                _settle(client, chance, wait=False)
                accepted[api] += _begin_where_possible(client, fleets[api])
            Event().wait(chance.uniform(0, 1.5))
            service.kill()
            service.start()
        for api, client in clients.items():
            _settle(client, chance, wait=True)
            states = [client.call("GET", path)["operationState"] for path in accepted[api]]
            assert set(states) <= {"COMPLETED", "ROLLED_BACK"}
            assert states, "kills met a load"
            fleet.check(client, fleets[api], kubernetes)
        assert "was interrupted" in service.log() or "going on with" in service.log()


def _begin_where_possible(client: Client, instances: fleet.Fleet) -> list[str]:
    """Begin to update every instance without an unsettled operation; return the operations."""
    operations = []
    for path in instances.paths:
        now = client.call("GET", path)["vnfdId"]
        answer = client.send("PATCH", path, vnfs.modification(instances.other(now)))
        assert answer.status_code in (202, 409), answer.text
        if answer.status_code == 202:
            operations.append(answer.headers["Location"])
    return operations


def _settle(client: Client, chance: random.Random, *, wait: bool) -> None:
    """Retry or roll back failed operations; with *wait* until all are settled."""
    root = f"/vnflcm/{client.api}/vnf_lcm_op_occs"
    while True:
        operations = client.call("GET", root)
        failed = [each for each in operations if each["operationState"] == "FAILED_TEMP"]
        for each in failed:
            action = chance.choice(("retry", "rollback"))
            client.begin("POST", f"{root}/{each['id']}/{action}")
        unsettled = [each for each in operations if each["operationState"] not in SETTLED]
        if not wait or not (failed or unsettled):
            return
        for each in unsettled:
            client.settled(f"{root}/{each['id']}")
