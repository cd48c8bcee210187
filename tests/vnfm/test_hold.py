# SPDX-License-Identifier: Apache-2.0
"""A change that waits for a person, over REST: no worker waits with it, it outlives the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from container_update import Options, abort
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import connect_vim
from tests.internals.service import OperationRow, Service, Settings, now
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.waiting import until


def served(state: Path) -> tuple[Service, TestClient]:
    """A service with this state, as another process would start it, and its client."""
    options = Options(timeout=30, lease_seconds=3, retry_seconds=0)
    service = Service(Settings(state_dir=str(state), auth="none"), options)
    return service, TestClient(service.app, base_url="http://127.0.0.1:9890")


@dataclass
class Change:
    """A Blue-Green change of a small VNF that waits before the switch."""

    service: Service
    client: Client
    instance: str
    operation: str
    new: str

    def show(self) -> Any:
        return self.client.call("GET", self.operation)

    def requests(self) -> set[str]:
        return set(self.show()["_links"]) - {"self", "vnfInstance"}

    def look(self) -> None:
        """Let the service look at it, as it does once a minute."""
        with self.service.context.database.writing() as session:
            session.execute(update(OperationRow).where(OperationRow.due > now()).values(due=now()))
        self.service.workers.look()


@pytest.fixture
def change(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Change]:
    """A change that waits for a person."""
    service, starting = served(tmp_path / "state")
    with starting as http:
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
        made = Change(
            service, client, path, client.begin("POST", f"{path}/change_vnfpkg", body), new
        )
        until(lambda: "promote" in made.requests(), "it waits for a person", 60, lasts=True)
        yield made


def test_it_stays_at_work_says_what_it_waits_for_and_a_promotion_lets_it_go_on(
    change: Change,
) -> None:
    assert change.show()["operationState"] == "PROCESSING"
    assert change.requests() == {"promote", "abort"}
    steps = change.client.call("GET", f"{change.operation}/progress")["steps"]
    (waiting,) = (step for step in steps if step["action"] == "wait")
    assert (waiting["object"], waiting["state"]) == ("Hold before the switch", "waits for a person")
    change.client.call("POST", f"{change.operation}/retry", status=409)
    refused = change.client.call(
        "POST", f"{change.operation}/cancel", {"cancelMode": "FORCEFUL"}, 409
    )
    assert "send a request to promote or abort it" in refused["detail"]
    promote(change)


def promote(change: Change) -> None:
    """Promote it, and check that it goes on to its end."""
    change.client.call("POST", f"{change.operation}/promote", status=202)
    ended = change.client.settled(change.operation)
    assert ended["operationState"] == "COMPLETED", ended.get("error")
    assert change.client.call("GET", change.instance)["vnfdId"] == change.new
    change.client.call("POST", f"{change.operation}/promote", status=409)


@pytest.mark.parametrize(
    ("request_", "state"), [("promote", "COMPLETED"), ("abort", "ROLLED_BACK")]
)
def test_a_decision_counts_though_the_service_looks_at_it_at_that_moment(
    request_: str, state: str, change: Change, cluster: EmbeddedCluster
) -> None:
    gate = Gate()
    cluster.middlewares.append(Faults(Fault(gate, method="GET")))
    change.look()
    with gate.held():
        change.client.call("POST", f"{change.operation}/{request_}", status=202)
    ended = change.client.settled(change.operation)
    assert ended["operationState"] == state, ended.get("error")
    is_new = change.client.call("GET", change.instance)["vnfdId"] == change.new
    assert is_new is (request_ == "promote")
    if not is_new:
        assert "aborted while it waited for a person" in ended["error"]["detail"]


@pytest.mark.parametrize(
    ("request_", "status", "state"),
    [("retry", 202, "PROCESSING"), ("rollback", 202, "ROLLED_BACK"), ("fail", 200, "FAILED")],
)
def test_where_a_look_at_it_fails_it_can_be_settled_in_every_way(
    request_: str, status: int, state: str, change: Change, cluster: EmbeddedCluster
) -> None:
    refusing = Faults(Fault(answer(403), times=1000))
    cluster.middlewares.append(refusing)
    change.look()
    failed = change.client.settled(change.operation)
    assert failed["operationState"] == "FAILED_TEMP"
    cluster.middlewares.remove(refusing)

    change.client.call("POST", f"{change.operation}/{request_}", status=status)

    until(lambda: change.show()["operationState"] == state, state, 60, lasts=True)
    if request_ == "retry":
        until(lambda: "promote" in change.requests(), "it waits for a person", 60, lasts=True)
        promote(change)


@pytest.mark.parametrize(
    ("request_", "state"), [("retry", "PROCESSING"), ("rollback", "ROLLED_BACK")]
)
def test_one_that_was_aborted_in_the_cluster_does_not_begin_again_by_itself(
    request_: str, state: str, change: Change, cluster: EmbeddedCluster
) -> None:
    """The command may have aborted it, on any host."""
    (vim,) = change.client.vims(cluster).values()
    options, instance_id = change.service.context.options, change.instance.rpartition("/")[2]
    interface, access = vim["interfaceInfo"], vim["accessInfo"]
    login = {"ca_text": interface["ssl_ca_cert"], "bearer_token": access["bearer_token"]}
    with closing(connect_vim(interface["endpoint"], **login, options=options)) as admin:
        abort(admin, options, namespace="default", instance_id=instance_id)
    change.look()
    failed = change.client.settled(change.operation)
    assert failed["operationState"] == "FAILED_TEMP"
    assert "was aborted in the cluster. Finish it: POST " in failed["error"]["detail"]

    change.client.call("POST", f"{change.operation}/{request_}", status=202)

    until(lambda: change.show()["operationState"] == state, state, 60, lasts=True)
    if request_ == "retry":
        until(lambda: "promote" in change.requests(), "it waits for a person", 60, lasts=True)
        promote(change)


def test_a_cancel_that_comes_as_it_begins_to_wait_is_too_late(change: Change) -> None:
    with change.service.context.database.writing() as session:
        row = session.get_one(OperationRow, change.operation.rpartition("/")[2])
        row.kept = {**(row.kept or {}), "cancelled": "FORCEFUL"}
    change.look()
    until(lambda: not change.show()["isCancelPending"], "it is not pending", 20)
    assert change.requests() == {"promote", "abort"}
    promote(change)


def test_it_outlives_the_service(cluster: EmbeddedCluster, tmp_path: Path, change: Change) -> None:
    change.client.http.__exit__(None, None, None)
    change.service, starting = served(tmp_path / "state")
    with starting as http:
        change.client = Client(http, "v2")
        assert change.requests() == {"promote", "abort"}
        promote(change)
