# SPDX-License-Identifier: Apache-2.0
"""A change that waits for a person, over REST: no worker waits with it, it outlives the service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.service import Service, Settings
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.waiting import until


def served(state: Path) -> TestClient:
    """A service with this state, as another process would start it."""
    service = Service(Settings(state_dir=str(state), auth="none"), Options(timeout=30))
    return TestClient(service.app, base_url="http://127.0.0.1:9890")


@dataclass
class Change:
    """A Blue-Green change of a small VNF that waits before the switch."""

    client: Client
    instance: str
    operation: str
    new: str

    def show(self) -> Any:
        return self.client.call("GET", self.operation)

    def requests(self) -> set[str]:
        return set(self.show()["_links"]) - {"self", "vnfInstance"}


@pytest.fixture
def change(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Change]:
    """A change that waits for a person."""
    with served(tmp_path / "state") as http:
        client = Client(http, "v2")
        old, new = (
            client.onboard(vnfs.package(tmp_path, version, vnfs.ours("v2"))[0])
            for version in ("1.0", "2.0")
        )
        path = client.create(old)
        client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
        body = {
            "vnfdId": new,
            "additionalParams": {"upgrade_type": "Blue-Green", "hold": True},
        }
        made = Change(client, path, client.begin("POST", f"{path}/change_vnfpkg", body), new)
        until(lambda: "promote" in made.requests(), "it waits for a person", 60, lasts=True)
        yield made


def test_it_stays_at_work_and_says_what_it_waits_for(change: Change) -> None:
    assert change.show()["operationState"] == "PROCESSING"
    assert change.requests() == {"promote", "abort"}
    steps = change.client.call("GET", f"{change.operation}/progress")["steps"]
    (waiting,) = (step for step in steps if step["action"] == "wait")
    assert (waiting["object"], waiting["state"]) == ("Hold before the switch", "waits for a person")
    change.client.call("POST", f"{change.operation}/retry", status=409)


def test_a_promotion_lets_it_go_on(change: Change) -> None:
    change.client.call("POST", f"{change.operation}/promote", status=202)
    ended = change.client.settled(change.operation)
    assert ended["operationState"] == "COMPLETED", ended.get("error")
    assert change.client.call("GET", change.instance)["vnfdId"] == change.new
    change.client.call("POST", f"{change.operation}/promote", status=409)


def test_an_abort_undoes_it(change: Change) -> None:
    change.client.call("POST", f"{change.operation}/abort", status=202)
    until(lambda: change.show()["operationState"] == "ROLLED_BACK", "it is undone", 60, lasts=True)
    assert change.client.call("GET", change.instance)["vnfdId"] != change.new


def test_it_outlives_the_service(cluster: EmbeddedCluster, tmp_path: Path, change: Change) -> None:
    change.client.http.__exit__(None, None, None)
    with served(tmp_path / "state") as http:
        change.client = Client(http, "v2")
        assert change.requests() == {"promote", "abort"}
        test_a_promotion_lets_it_go_on(change)
