# SPDX-License-Identifier: Apache-2.0
"""Many operations on the service, whose PostgreSQL is restarted again and again: nothing is left,
nothing grows.

In a round one VNF is updated there and back, and another one scaled out and in, from instantiation
to termination: ten operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from container_update.emulator.kubernetes import EmbeddedCluster, Registry
from tests.circles import Circle, in_circles
from tests.footprint import Footprint, footprint, resident_bytes
from tests.functional.reference_update import quick
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.consumer import Consumer
from tests.vnfm.postgres import Server
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of
from tests.vnfm.waiting import until

ROUNDS = {Circle.THOROUGH: (1, 1), Circle.COMPLETE: (20, 4)}
"""Rounds that are counted, and before them those that fill caches and pools."""
OPERATIONS_PER_RESTART = 8
POOLS = Footprint(descriptors=5, threads=5, processes=0, files=0)
"""By how much pools of threads and connections may still grow after the warm-up: by less than one
for each operation of a round."""
MARGIN_BYTES, BYTES_PER_ROUND = 12 * 2**20, 2**19
SETTINGS = """
auth = none
callback_hosts = 127.0.0.1
operation_seconds = 0.001
"""
TABLES = ("packages", "instances", "operations", "steps", "vims", "subscriptions", "outbox")
KEPT = {"events"}
"""What Kubernetes keeps for an hour."""


@dataclass
class Site:
    """A service with its cluster, its database and a subscriber of each API."""

    service: Served
    cluster: EmbeddedCluster
    server: Server
    folder: Path
    """For temporary files of the service."""
    clients: list[Client] = field(default_factory=list)
    subscriptions: list[str] = field(default_factory=list)
    operations: int = 0
    most: Footprint = field(default_factory=lambda: Footprint(0, 0, 0, 0))
    """Of the service, after any operation so far."""
    connections: int = 0
    """To the database, likewise."""

    def start(self, consumer: Consumer) -> None:
        """Start the service and subscribe."""
        self.service.start()
        for api in ("v1", "v2"):
            client = client_of(self.service, api)
            body = {"callbackUri": f"{consumer.url}/{api}"}
            created = client.call("POST", f"/vnflcm/{api}/subscriptions", body, 201)
            self.subscriptions.append(f"/vnflcm/{api}/subscriptions/{created['id']}")
            self.clients.append(client)

    def do(self, client: Client, method: str, path: str, body: Any = None) -> None:
        """Carry out an operation; while some are at work the database is restarted."""
        operation = client.begin(method, path, body)
        self.operations += 1
        if self.operations % OPERATIONS_PER_RESTART == 0:
            self.server.stop()
            self.server.start()
            until(self._is_ready, "the service is ready again")
        ended = client.settled(operation)
        assert ended["operationState"] == "COMPLETED", ended.get("error")

    def look(self) -> None:
        """Add what there is now to the most that there was."""
        self.most = self.most.most(self.held())
        self.connections = max(self.connections, self.connected())

    def _is_ready(self) -> bool:
        return bool(self.clients[0].send("GET", "/readyz").status_code == 200)

    # --- what there is --------------------------------------------------------------------------

    def held(self) -> Footprint:
        return footprint(self.service.process, self.folder)

    def connected(self) -> int:
        database = self.service.database.rpartition("/")[2]
        query = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
        with psycopg.connect(f"{self.server.url}/postgres") as connection:
            (number,) = connection.execute(query).fetchone() or (0,)
            return int(number)

    def rows(self) -> dict[str, int]:
        """Return the number of rows by table."""
        with psycopg.connect(self.service.database) as connection:
            numbers = [connection.execute(f"SELECT count(*) FROM {name}") for name in TABLES]
            return {
                name: int((number.fetchone() or (0,))[0])
                for name, number in zip(TABLES, numbers, strict=True)
            }

    def objects(self) -> dict[str, list[str]]:
        """Return the names of the objects in the cluster by resource."""

        def names(registry: Registry) -> dict[str, list[str]]:
            return {
                each.key: [body["metadata"]["name"] for body in registry.list(each.key)]
                for each in registry.catalogue
                if each.key not in KEPT
            }

        return {resource: found for resource, found in self.cluster.call(names).items() if found}

    def files(self) -> list[str]:
        """Return the files and folders of the state directory."""
        return sorted(map(str, (self.service.folder / "state").rglob("*")))


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A cluster whose containers start and stop at once."""
    with EmbeddedCluster(behaviour=quick()) as running:
        yield running


@pytest.fixture
def site(cluster: EmbeddedCluster, own_postgresql: Server, tmp_path: Path) -> Iterator[Site]:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    service = Served(
        tmp_path / "service", own_postgresql.create_database(), SETTINGS,
        environment={"TMPDIR": str(temporary)},
    )  # fmt: skip
    with Consumer() as consumer:
        running = Site(service, cluster, own_postgresql, temporary)
        try:
            running.start(consumer)
            yield running
        finally:
            if service.process:
                service.kill()


@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_many_operations_and_restarts_of_the_database_leave_nothing(
    site: Site, circle: Circle, tmp_path: Path
) -> None:
    rounds, warm_up = ROUNDS[circle]
    archive = scalable.package(tmp_path)
    objects = site.objects()
    apis = itertools.cycle(site.clients)
    for _ in range(warm_up):
        carry_out(site, next(apis), archive, tmp_path)
        site.look()
    files = site.files()
    most, connections = site.most.plus(POOLS), site.connections + POOLS.descriptors
    size = resident_bytes(site.service.process)
    for number in range(rounds):
        carry_out(site, next(apis), archive, tmp_path)
        until(lambda: site.held().within(most), f"at most {most}, round {number}")
        until(lambda: site.connected() <= connections, f"{connections} connections")
        assert site.objects() == objects
        assert site.files() == files
        rows = site.rows()
        assert {**rows, **dict.fromkeys(("steps", "outbox"), 0)} == {
            "packages": 0, "instances": 0, "operations": site.operations,
            "steps": 0, "vims": 0, "subscriptions": 2, "outbox": 0,
        }  # fmt: skip
    grown = resident_bytes(site.service.process) - size
    now = f"{site.held()}, {site.connected()} connections, {rows}"
    print(f"\nwarmed up: {site.most}, {site.connections} connections, {size} bytes resident")
    print(f"{site.operations} operations: {now}, {grown} bytes more")
    assert grown < MARGIN_BYTES + rounds * BYTES_PER_ROUND

    assert site.service.stop() == 0
    assert list(site.folder.iterdir()) == []
    site.service.start()  # which deletes what is kept no longer
    until(lambda: not site.rows()["operations"], "old operations are deleted")
    for path in site.subscriptions:
        site.clients[0].call("DELETE", path, status=204)
    assert not any(site.rows().values()), site.rows()


def carry_out(site: Site, client: Client, archive: Path, folder: Path) -> None:
    """Carry out one round."""
    packages = [
        client.read_in(client.upload(path)) for path in (archive, *_versions(client.api, folder))
    ]
    assert [each["onboardingState"] for each in packages] == ["ONBOARDED"] * 3, packages
    scaled, old, new = (str(each["vnfdId"]) for each in packages)
    path = client.create(old)
    site.do(client, "POST", f"{path}/instantiate", vnfs.instantiation(client.vims(site.cluster)))
    for vnfd_id in (new, old):
        site.do(client, *_to(client.api, path, vnfd_id))
    site.do(client, "POST", f"{path}/heal", {})
    site.do(client, "POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    client.call("DELETE", path, status=204)

    path = client.create(scaled)
    request = scalable.instantiation(client.vims(site.cluster))
    site.do(client, "POST", f"{path}/instantiate", request)
    for kind in ("OUT", "IN"):
        body = {"type": f"SCALE_{kind}", "aspectId": scalable.ASPECT}
        site.do(client, "POST", f"{path}/scale", body)
    site.do(client, "POST", f"{path}/heal", {})
    site.do(client, "POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
    client.call("DELETE", path, status=204)
    for package in packages:
        self = package["_links"]["self"]["href"]
        client.call("PATCH", self, {"operationalState": "DISABLED"})
        client.call("DELETE", self, status=204)


def _versions(api: str, folder: Path) -> list[Path]:
    return [vnfs.package(folder, version, vnfs.ours(api))[0] for version in ("1.0", "2.0")]


def _to(api: str, path: str, vnfd_id: str) -> tuple[str, str, Any]:
    """Return the request that brings a VNF to another package."""
    if api == "v1":
        return "PATCH", path, vnfs.modification(vnfd_id)
    params = {"upgrade_type": "RollingUpdate"}
    return "POST", f"{path}/change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": params}
