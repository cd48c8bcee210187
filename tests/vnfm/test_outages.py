# SPDX-License-Identifier: Apache-2.0
"""Services whose database goes away and comes back while they work."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.faults import Fault, Faults
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import KubernetesCluster
from tests.internals.service import Service, Settings
from tests.internals.service import database as store
from tests.vnfm import fleet, scalable
from tests.vnfm.client import Client
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
    return service.logged("the database does not answer:") >= LOOKS


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


@contextmanager
def away(url: str, service: Service) -> Iterator[None]:
    """Let the service get no connection to its PostgreSQL, or no lock of its SQLite file."""
    if not url:
        file = service.context.database.file
        with closing(sqlite3.connect(str(file), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    server, _, name = url.rpartition("/")
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(others, [name])
        yield
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@pytest.fixture
def lone(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service with each kind of database, impatient with SQLite."""
    monkeypatch.setattr(store, "_BUSY_SECONDS", 0.1)
    state = str(tmp_path / "state")
    settings = Settings(state_dir=state, auth="none", database_url=database, lock_seconds=1)
    return Service(settings, Options(lease_seconds=3))


def test_a_request_that_cannot_be_stored_is_answered_with_503(
    lone: Service, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with TestClient(lone.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http)
        with away(database, lone):
            for _ in range(3):
                refused = client.send("POST", "/vnfpkgm/v1/vnf_packages", {})
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
                assert "the database does not answer" in refused.json()["detail"]
                assert client.send("GET", "/healthz").status_code == 200
            assert "Traceback" not in caplog.text
        until(lambda: client.send("GET", "/readyz").status_code == 200, "it is ready again")
        client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)


def test_an_operation_waits_for_a_database_that_somebody_else_holds(
    lone: Service,
    database: str,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with TestClient(lone.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http)
        path = client.create(client.onboard(scalable.package(tmp_path)))
        gate = Gate()
        cluster.middlewares.append(Faults(Fault(gate, method="POST", path="*/deployments")))
        request = scalable.instantiation(client.vims(cluster))
        operation = client.begin("POST", f"{path}/instantiate", request)
        with ExitStack() as stack:
            with gate.held():
                stack.enter_context(away(database, lone))
            until(lambda: WAITS in caplog.text, "the operation waits for the database")
        ended = client.settled(operation)
        assert ended["operationState"] == "COMPLETED", ended.get("error")
