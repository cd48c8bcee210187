"""Two services whose PostgreSQL goes away and comes back while they work."""

from __future__ import annotations

from pathlib import Path

import pytest

from container_update.cluster.client import KubernetesCluster
from container_update.emulator.faults import Fault, Faults
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.vnfm import fleet
from tests.vnfm.postgres import Server
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of, modify
from tests.vnfm.waiting import until

WAITS = "the database does not answer, waiting"
LOOKS = 6
"""More looks of a service at the database than it waits until another one is dead."""


def is_ready(service: Served) -> bool:
    return bool(client_of(service, "v1").send("GET", "/readyz").status_code == 200)


def misses_the_database(service: Served) -> bool:
    """Return whether it looked for the database often enough, in vain."""
    return service.log().count("the database does not answer:") >= LOOKS


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_an_operation_survives_an_outage_of_the_database(
    api: str,
    pair: tuple[Served, Served],
    own_postgresql: Server,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    first, second = pair
    client = client_of(first, api)
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
    gate = Gate()
    cluster.middlewares.append(Faults(Fault(gate, method="PUT", path="*/deployments/*")))
    operation = modify(client, instances, instances.paths[0])
    with gate.held():
        own_postgresql.stop()
        for service in pair:
            until(lambda service=service: misses_the_database(service), "it looks in vain")
            assert not is_ready(service)
    until(lambda: WAITS in first.log(), "the update waits for the database")
    own_postgresql.start()
    for service in pair:
        until(lambda service=service: is_ready(service), "the service is ready again")

    ended = client.settled(operation)
    assert ended["operationState"] == "COMPLETED", ended.get("error")
    steps = client.call("GET", f"{operation}/progress")["steps"]
    assert {step["state"] for step in steps} == {"done"}
    other_client = client_of(second, api)
    operation = modify(other_client, instances, instances.paths[0])
    assert other_client.settled(operation)["operationState"] == "COMPLETED"
    fleet.check(client, instances, kubernetes)


def test_operations_of_a_service_that_died_in_an_outage_are_taken_over(
    pair: tuple[Served, Served],
    own_postgresql: Server,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    first, second = pair
    client = client_of(second, "v1")
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
    gate = Gate()
    cluster.middlewares.append(Faults(Fault(gate, method="PUT", path="*/deployments/*")))
    operation = modify(client_of(first, "v1"), instances, instances.paths[0])
    with gate.held():
        own_postgresql.stop()
        first.kill()
    own_postgresql.start()
    assert client.settled(operation)["operationState"] == "FAILED_TEMP"
    client.do("POST", f"{operation}/retry")
    fleet.check(client, instances, kubernetes)
