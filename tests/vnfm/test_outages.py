# SPDX-License-Identifier: Apache-2.0
"""Services whose database goes away and comes back while they work."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.faults import Fault, Faults
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import KubernetesCluster
from tests.internals.service import Service, Settings, content
from tests.internals.service import database as store
from tests.vnfm import fleet, scalable, vnfs
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
        with closing(
            sqlite3.connect(str(file), isolation_level=None, check_same_thread=False)
        ) as other:
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


class Return(logging.Handler):
    """Ends an outage as soon as the service logs anything."""

    def __init__(self) -> None:
        super().__init__()
        self.outage = ExitStack()

    def emit(self, _: logging.LogRecord) -> None:
        self.outage.close()


@pytest.mark.parametrize("moment", ["_unpack", "end_upload"])
def test_a_package_is_onboarded_though_the_database_is_away_for_a_moment(
    moment: str, lone: Service, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that cannot be stored is sent again."""
    back, step = Return(), getattr(content, moment)
    log = logging.getLogger("container_update.vnfm")

    def lose_the_database_once(*arguments: Any) -> None:
        if back not in log.handlers:
            log.addHandler(back)
            back.outage.enter_context(away(database, lone))
        step(*arguments)

    monkeypatch.setattr(content, moment, lose_the_database_once)
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    with TestClient(lone.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http)
        try:
            created = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)["id"]
            path = f"/vnfpkgm/v1/vnf_packages/{created}/package_content"
            sent = client.send("PUT", path, content=package.read_bytes())
            if sent.status_code == 503:
                sent = client.send("PUT", path, content=package.read_bytes())
            assert sent.status_code == 202, sent.text
            path = path.rpartition("/")[0]
            ends = ("ONBOARDED", "ERROR")  # until then it may be answered with 503
            read = lambda: client.send("GET", path).json().get("onboardingState")  # noqa: E731
            until(lambda: read() in ends, "the package is read in")
            assert read() == "ONBOARDED"
        finally:
            log.removeHandler(back)


FULL = """
CREATE TRIGGER full BEFORE UPDATE ON packages WHEN new.onboarding_state IN ('ONBOARDED', 'ERROR')
BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END
"""


def test_a_package_is_onboarded_though_its_end_could_not_be_recorded_at_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(
        Settings(state_dir=str(tmp_path / "state"), auth="none", lock_seconds=0.2), Options()
    )
    with (
        TestClient(service.app, base_url="http://127.0.0.1:9890") as http,
        closing(sqlite3.connect(str(service.context.database.file))) as other,
    ):
        client = Client(http)
        other.executescript(FULL)
        package_id = client.upload(vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))[0])
        until(lambda: "its end is not recorded" in caplog.text, "its end could not be stored")
        other.executescript("DROP TRIGGER full")
        assert client.read_in(package_id)["onboardingState"] == "ONBOARDED"


def test_an_upload_for_which_there_is_no_room_can_be_sent_again(tmp_path: Path) -> None:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), Options())
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    app = TestClient(service.app, "http://127.0.0.1:9890", raise_server_exceptions=False)
    with app as http:
        client = Client(http)
        created = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)["id"]
        path = f"/vnfpkgm/v1/vnf_packages/{created}/package_content"
        service.context.settings.packages.write_text("in place of the folder")
        assert client.send("PUT", path, content=package.read_bytes()).status_code == 500
        service.context.settings.packages.unlink()
        sent = client.send("PUT", path, content=package.read_bytes())
        assert sent.status_code == 202, sent.text
        assert client.read_in(created)["onboardingState"] == "ONBOARDED"
