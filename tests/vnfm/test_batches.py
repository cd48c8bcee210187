# SPDX-License-Identifier: Apache-2.0
"""Batches: many instances are updated in waves, with a bound on failures."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import KubernetesCluster
from tests.internals.service import Service, Settings
from tests.vnfm import fleet, vnfs
from tests.vnfm.client import PATIENCE_SECONDS, Client
from tests.vnfm.fleet import Fleet
from tests.vnfm.served import Served, served
from tests.vnfm.test_load import client_of
from tests.vnfm.waiting import until

Json = dict[str, Any]
NEW = "2.0"


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=30, grace_period=1, drain_seconds=0, retry_seconds=0)


def wanted(instances: Fleet, size: int = 2, failures: int = 0) -> Json:
    (_, new) = instances.versions
    return {
        "operation": "MODIFY_INFO",
        "request": vnfs.modification(new),
        "vnfInstanceIds": [path.rpartition("/")[2] for path in instances.paths],
        "waveSize": size,
        "maxFailures": failures,
    }


def created(client: Client, request: Json) -> str:
    """Create a batch and return its path."""
    path = f"/vnflcm/{client.api}/batches"
    return f"{path}/{client.call('POST', path, request, 201)['id']}"


def ended(client: Client, batch: str) -> Json:
    """Wait until a batch and the operations that it began have ended."""
    running = {"STARTING", "PROCESSING", "ROLLING_BACK"}

    def read() -> Json | None:
        shown: Json = client.call("GET", batch)
        at_work = {shown["state"], *states(shown)} & running
        return None if at_work else shown

    shown = until(read, f"{batch} ends", PATIENCE_SECONDS, lasts=True)
    assert shown is not None
    return shown


def states(batch: Json) -> list[str]:
    return [member["state"] for member in batch["members"]]


def waves(batch: Json) -> list[int]:
    return [member["wave"] for member in batch["members"]]


def refuse(cluster: EmbeddedCluster, namespace: str) -> None:
    """Let the cluster refuse to change the Deployment in a namespace."""
    path = f"*/namespaces/{namespace}/deployments/*"
    refusal = answer(422)
    cluster.middlewares.append(Faults(Fault(refusal, method="PUT", path=path)))


def test_a_batch_goes_on_in_waves(
    client: Client, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 6)
    gate = Gate()
    namespace = instances.namespaces[instances.paths[1]]
    path = f"*/namespaces/{namespace}/deployments/*"
    cluster.middlewares.append(Faults(Fault(gate, method="PUT", path=path)))
    batch = created(client, wanted(instances))
    with gate.held():
        until(lambda: states(client.call("GET", batch))[0] == "COMPLETED", "the first ends")
        shown = client.call("GET", batch)
        assert states(shown) == ["COMPLETED", "PROCESSING", *["WAITING"] * 4]
    shown = ended(client, batch)
    assert (shown["state"], waves(shown)) == ("COMPLETED", [1, 1, 2, 2, 3, 3])
    assert set(states(shown)) == {"COMPLETED"}
    assert set(fleet.check(client, instances, kubernetes).values()) == {NEW}
    assert client.send("POST", f"{batch}/resume").status_code == 409
    assert client.send("POST", f"{batch}/cancel").status_code == 409
    assert [each["id"] for each in client.call("GET", batch.rpartition("/")[0])] == [shown["id"]]


@pytest.mark.parametrize("failures", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_more_failures_than_are_borne_stop_it_until_it_is_resumed(
    failures: int,
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 6)
    refuse(cluster, instances.namespaces[instances.paths[2]])
    batch = created(client, wanted(instances, failures=failures))
    shown = ended(client, batch)
    assert states(shown)[:3] == ["COMPLETED", "COMPLETED", "FAILED_TEMP"]
    assert states(shown)[4:] == ["COMPLETED" if failures else "WAITING"] * 2
    assert shown["state"] == ("COMPLETED" if failures else "FAILED")
    assert "the API server answered 422" in shown["members"][2]["problem"]
    cluster.middlewares.clear()

    client.call("POST", f"{batch}/resume")

    shown = ended(client, batch)
    assert (shown["state"], set(states(shown))) == ("COMPLETED", {"COMPLETED"})
    assert set(fleet.check(client, instances, kubernetes).values()) == {NEW}
    operations = client.call("GET", f"/vnflcm/{client.api}/vnf_lcm_op_occs")
    assert sum(each["operation"] == "MODIFY_INFO" for each in operations) == 6, "it was retried"


@pytest.mark.thorough
def test_a_busy_instance_has_failed_with_its_reason_and_is_begun_by_a_resume(
    client: Client, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 3)
    busy, *_ = instances.paths
    refuse(cluster, instances.namespaces[busy])
    request = wanted(instances, size=1)
    operation = client.do("PATCH", busy, request["request"], "FAILED_TEMP")
    batch = created(client, request)
    shown = ended(client, batch)
    assert (shown["state"], states(shown)) == ("FAILED", ["REFUSED", "WAITING", "WAITING"])
    assert "another operation has not ended" in shown["members"][0]["problem"]
    cluster.middlewares.clear()
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    client.call("POST", f"{batch}/resume")
    shown = ended(client, batch)
    assert (shown["state"], set(states(shown))) == ("COMPLETED", {"COMPLETED"})
    assert all(not member["problem"] for member in shown["members"])


def test_a_cancelled_batch_begins_nothing_more(
    client: Client, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 3)
    gate = Gate()
    path = f"*/namespaces/{instances.namespaces[instances.paths[0]]}/deployments/*"
    cluster.middlewares.append(Faults(Fault(gate, method="PUT", path=path)))
    batch = created(client, wanted(instances, size=1))
    with gate.held():
        client.call("POST", f"{batch}/cancel")
    shown = ended(client, batch)
    assert (shown["state"], states(shown)) == ("CANCELLED", ["COMPLETED", "WAITING", "WAITING"])
    client.call("POST", f"{batch}/resume")
    assert ended(client, batch)["state"] == "COMPLETED"


def test_it_is_one_row_of_the_history_with_its_operations_behind_it(
    client: Client, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 2)
    batch = ended(client, created(client, wanted(instances)))

    def past(**query: str) -> list[Json]:
        return list(client.http.get("/view/operations", params=query).json())

    row, *others = past()
    assert (row["id"], row["kind"], row["state"]) == (batch["id"], "batch", "COMPLETED")
    assert {each["operation"] for each in others} == {"INSTANTIATE"}
    assert past(before=row["marker"]) == others
    assert row["members"] == batch["members"]
    assert len(past(operation="MODIFY_INFO")) == 2, "who looks for operations finds each"


UNKNOWN = "00000000-0000-4000-8000-000000000000"
WRONG: list[Json] = [
    {"waveSize": 0},
    {"waveSize": 101},
    {"maxFailures": -1},
    {"vnfInstanceIds": []},
    {"vnfInstanceIds": [UNKNOWN] * 1001},
    {"vnfInstanceIds": [UNKNOWN]},
    {"vnfInstanceIds": ["x"]},
    {"operation": "TERMINATE"},
    {"request": {"vnfdId": 1}},
    {"other": 1},
]


def test_sizes_have_bounds(client: Client, created: str) -> None:
    path, (*_, instance) = f"/vnflcm/{client.api}/batches", created.split("/")
    good = {
        "operation": "MODIFY_INFO",
        "request": {"vnfInstanceDescription": "changed"},
        "vnfInstanceIds": [instance],
        "waveSize": 1,
        "maxFailures": 0,
    }
    for change in WRONG:
        answered = client.send("POST", path, {**good, **change})
        assert answered.status_code == 422, (change, answered.text)
    answered = client.send("POST", path, {**good, "vnfInstanceIds": [instance] * 2})
    assert "expected each instance once" in answered.json()["detail"]
    client.call("POST", path, good, 201)


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A service with a token that may write and one that may only read."""
    values = {name: secrets.token_urlsafe() for name in ("admin", "guest")}
    file = tmp_path / "tokens"
    file.write_text(f"admin {values['admin']}\nguest {values['guest']} read\n")
    file.chmod(0o600)
    settings = Settings(state_dir=str(tmp_path / "state"), token_file=str(file))
    with TestClient(Service(settings, Options()).app, base_url="http://127.0.0.1:9890") as http:
        yield http, values


def test_who_may_only_read_begins_no_batch(
    tokens: tuple[TestClient, dict[str, str]],
) -> None:
    http, values = tokens
    version = {"Version": "2.0.0"}
    guest, admin = ({**version, "X-Auth-Token": values[name]} for name in ("guest", "admin"))
    assert http.get("/vnflcm/v2/batches", headers=guest).json() == []
    for path, status in {"": 422, f"/{UNKNOWN}/resume": 404, f"/{UNKNOWN}/cancel": 404}.items():
        url = f"/vnflcm/v2/batches{path}"
        assert http.post(url, headers=guest, json={}).status_code == 403
        assert http.post(url, headers=admin, json={}).status_code == status


@pytest.mark.thorough
def test_a_killed_service_goes_on_with_the_next_wave(
    cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    with served(tmp_path) as service:
        client = client_of(service, "v1")
        instances = fleet.launch(client, cluster, kubernetes, tmp_path, 6)
        batch = created(client, wanted(instances, failures=6))
        until(lambda: 2 in waves(client.call("GET", batch)), "the second wave", lasts=True)
        service.kill()
        service.start()
        shown = ended(client, batch)
        assert shown["state"] == "COMPLETED"
        assert "WAITING" not in states(shown)
        if "FAILED_TEMP" in states(shown):  # they were at work when it was killed
            client.call("POST", f"{batch}/resume")
            shown = ended(client, batch)
        assert set(states(shown)) == {"COMPLETED"}
        assert set(fleet.check(client, instances, kubernetes).values()) == {NEW}
        assert begun(client) == {path.rpartition("/")[2]: 1 for path in instances.paths}


@pytest.mark.thorough
def test_two_services_begin_no_instance_twice(
    pair: tuple[Served, Served],
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    clients = [client_of(service, "v1", 120) for service in pair]
    instances = fleet.launch(clients[0], cluster, kubernetes, tmp_path, 6)
    batch = created(clients[1], wanted(instances))
    shown = ended(clients[0], batch)
    assert (shown["state"], set(states(shown))) == ("COMPLETED", {"COMPLETED"})
    assert begun(clients[0]) == {path.rpartition("/")[2]: 1 for path in instances.paths}


def begun(client: Client) -> dict[str, int]:
    """Return how many updates of each instance were begun."""
    operations = client.call("GET", f"/vnflcm/{client.api}/vnf_lcm_op_occs")
    return dict(Counter(
        each["vnfInstanceId"] for each in operations if each["operation"] == "MODIFY_INFO"
    ))  # fmt: skip
