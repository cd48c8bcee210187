# SPDX-License-Identifier: Apache-2.0
"""Operations that are interrupted at the worst moments, and services that are terminated."""

from __future__ import annotations

import itertools
import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import TextClause, select, text
from sqlalchemy.orm import Session

from container_update import (
    CancelToken,
    LeaseLostError,
    Options,
    Outcome,
    Plan,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import Collection, KubernetesCluster, ObjectKey
from tests.internals.service import (
    RUNNING,
    Instance,
    OperationRow,
    Package,
    ProblemError,
    Request,
    ScriptError,
    Service,
    ServiceContext,
    ServiceEndsError,
    Settings,
    State,
    Steps,
    content,
    liveness,
    now,
    operations,
    perform,
)
from tests.tacker.conftest import Kubectl
from tests.vnfm import fleet, vnfs
from tests.vnfm.client import Client, assert_finish_or_go_back
from tests.vnfm.conftest import SAMPLES, unrecorded
from tests.vnfm.served import served
from tests.vnfm.test_load import modify
from tests.vnfm.waiting import until

OPTIONS = Options(lease_seconds=3, timeout=30, grace_period=1, drain_seconds=0)

EARLIER = now() - timedelta(days=1)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), OPTIONS)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield http


@pytest.mark.parametrize("way", ["retry", "rollback"])
@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_finished_update_that_was_not_recorded_can_be_settled_either_way(
    api: str,
    way: str,
    http: TestClient,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    client = Client(http, api)
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
    (path,) = instances.paths
    operation = _updated_without_record(client, instances, monkeypatch)
    assert operation["operationState"] == "FAILED_TEMP"
    assert "no database" not in json.dumps(operation), "only expected errors are quoted"
    with pytest.raises(AssertionError):
        fleet.check(client, instances, kubernetes)

    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    client.do("POST", f"{operation['_links']['self']['href']}/{way}", state=state)

    version = {"retry": "2.0", "rollback": "1.0"}[way]
    assert fleet.check(client, instances, kubernetes) == {path: version}


def test_a_rollback_that_failed_leaves_the_next_one_what_it_needs(
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
    (path,) = instances.paths
    operation = _updated_without_record(client, instances, monkeypatch)
    rollback = f"{operation['_links']['self']['href']}/rollback"
    cluster.behaviour.bad_images = ["*/web:1.0"]
    client.do("POST", rollback, state="FAILED_TEMP")
    cluster.behaviour.bad_images = []

    client.do("POST", rollback, state="ROLLED_BACK")

    assert fleet.check(client, instances, kubernetes) == {path: "1.0"}


@pytest.mark.parametrize("way", ["rollback", "retry"])
def test_a_rollback_that_was_not_recorded_can_be_settled_either_way(
    way: str,
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    instances = fleet.launch(client, cluster, kubernetes, tmp_path, 1)
    (path,) = instances.paths
    operation = _updated_without_record(client, instances, monkeypatch)
    self = operation["_links"]["self"]["href"]
    with unrecorded(monkeypatch):
        client.do("POST", f"{self}/rollback", state="FAILED_TEMP")

    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    client.do("POST", f"{self}/{way}", state=state)

    version = {"retry": "2.0", "rollback": "1.0"}[way]
    assert fleet.check(client, instances, kubernetes) == {path: version}


@pytest.mark.parametrize("is_retried", [False, True])
def test_without_a_history_it_is_known_that_a_rollback_which_was_not_recorded_was_done(
    is_retried: bool,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    options = replace(OPTIONS, history=0)
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), options)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        path, new = vnfs.launched(client, cluster, tmp_path)
        change = {"vnfdId": new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
        cluster.behaviour.bad_images = ["*/web:2.0"]
        operation = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")
        cluster.behaviour.bad_images = []
        self = operation["_links"]["self"]["href"]
        with unrecorded(monkeypatch):
            client.do("POST", f"{self}/rollback", state="FAILED_TEMP")
            assert images(kubernetes) == {vnfs.IMAGES[0]}
            if is_retried:
                client.do("POST", f"{self}/retry", state="FAILED_TEMP")

        state = "FAILED_TEMP" if is_retried else "ROLLED_BACK"
        ended = client.do("POST", f"{self}/rollback", state=state)

        if is_retried:
            assert "only its record is missing" in ended["error"]["detail"]
        else:
            assert recorded(client.call("GET", path)) == living(kubernetes)


def test_what_was_done_and_not_recorded_and_has_no_way_back_can_only_be_retried(
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    live = kubernetes.get(ObjectKey("", "ConfigMap", "default", "settings"))
    assert live is not None
    kubernetes.replace({**live, "data": {"level": "by hand"}})
    request = {"metadata": {"configmap_secret_paths": [vnfs.DEF_FILES[0]]}}
    with unrecorded(monkeypatch):
        operation = client.do("PATCH", path, request, "FAILED_TEMP")
    self = operation["_links"]["self"]["href"]

    refused = client.do("POST", f"{self}/rollback", state="FAILED_TEMP")

    assert "only its record is missing" in refused["error"]["detail"]
    client.do("POST", f"{self}/retry")
    record = client.call("GET", path)
    assert record["vnfdId"] != new
    assert recorded(record) == living(kubernetes)


@pytest.mark.parametrize("kind", ["Blue-Green", "RollingUpdate", "Canary"])
def test_a_change_of_the_package_that_was_done_and_not_recorded_is_rolled_back(
    kind: str,
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    before = client.call("GET", path)
    request: dict[str, Any] = {"vnfdId": new}
    with unrecorded(monkeypatch):
        if client.api == "v1":  # which has no other request for it
            metadata = {"upgrade_type": kind}
            operation = client.do("PATCH", path, {**request, "metadata": metadata}, "FAILED_TEMP")
        else:
            request |= {"additionalParams": {"upgrade_type": kind}}
            operation = client.do("POST", f"{path}/change_vnfpkg", request, "FAILED_TEMP")
    assert images(kubernetes) == {vnfs.IMAGES[1]}

    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")

    record = client.call("GET", path)
    assert record["vnfdId"] == before["vnfdId"]
    assert images(kubernetes) == {vnfs.IMAGES[0]}
    assert recorded(record) == living(kubernetes)


def test_a_change_that_was_never_planned_is_rolled_back_where_its_namespace_is_gone(
    http: TestClient, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    packages = (vnfs.package(tmp_path, version, vnfs.ours("v2"))[0] for version in ("1.0", "2.0"))
    old, new = map(client.onboard, packages)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cnf"}}
    kubernetes.create(namespace)
    path = client.create(old)
    request = vnfs.instantiation(client.vims(cluster), namespace="cnf")
    client.do("POST", f"{path}/instantiate", request)
    kubernetes.delete(ObjectKey.of(namespace))
    until(lambda: kubernetes.get(ObjectKey.of(namespace)) is None, "the namespace is gone")
    change = {"vnfdId": new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
    failed = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")

    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")

    assert client.call("GET", path)["vnfdId"] == old


def living(kubernetes: KubernetesCluster) -> set[str]:
    """Return the names of the pods that are not being deleted."""
    pods = kubernetes.list(Collection("", "Pod", "default")).items
    return {
        each["metadata"]["name"] for each in pods if not each["metadata"].get("deletionTimestamp")
    }


def images(kubernetes: KubernetesCluster) -> set[str]:
    """Return the images of all Deployments."""
    deployments = kubernetes.list(Collection("apps", "Deployment", "default")).items
    specs = (each["spec"]["template"]["spec"] for each in deployments)
    return {container["image"] for spec in specs for container in spec["containers"]}


def _updated_without_record(
    client: Client, instances: fleet.Fleet, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Update the one instance and fail to record it; return the operation."""
    with unrecorded(monkeypatch):
        return client.settled(modify(client, instances, instances.paths[0]))


CHANGES = {
    "04-blue-green": ("page.yaml", "deployment.yaml", "service.yaml"),
    "05-rolling-update": ("settings.yaml", "worker.yaml", "store.yaml", "legacy.yaml"),
}


@pytest.fixture(params=CHANGES)
def sample(
    request: pytest.FixtureRequest,
    http: TestClient,
    cluster: EmbeddedCluster,
    zipped: Callable[[str], Mapping[str, Path]],
) -> tuple[str, str, dict[str, Any]]:
    """A running VNF of a sample: its name, its path, and the request to change it."""
    client, name = Client(http, "v2"), str(request.param)
    old, _ = (client.onboard(path) for path in zipped(name).values())
    path = client.create(old)
    instantiation = {**vnfs.instantiation(client.vims(cluster)), "flavourId": "default"}
    instantiation["additionalParams"]["lcm-kubernetes-def-files"] = [
        f"Files/kubernetes/{file}" for file in CHANGES[name]
    ]
    client.do("POST", f"{path}/instantiate", instantiation)
    change = json.loads((SAMPLES / name / "request.json").read_text())
    return name, path, change


def test_a_change_of_the_package_that_fails_is_rolled_back(
    sample: tuple[str, str, dict[str, Any]],
    http: TestClient,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
) -> None:
    _, path, change = sample
    client = Client(http, "v2")
    record = client.call("GET", path)
    cluster.behaviour.bad_images = ["*"]
    operation = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")
    cluster.behaviour.bad_images = []
    self = operation["_links"]["self"]["href"]
    assert_finish_or_go_back(operation)
    client.do("POST", f"{self}/rollback", state="ROLLED_BACK")
    after = client.call("GET", path)
    assert after["vnfdId"] == record["vnfdId"]
    assert recorded(after) == set(kubectl.pods())
    assert len(recorded(after)) == len(recorded(record))

    client.do("POST", f"{path}/change_vnfpkg", change)
    assert client.call("GET", path)["vnfdId"] == change["vnfdId"]


def test_an_incomplete_rollback_names_the_request_that_continues_it(
    sample: tuple[str, str, dict[str, Any]], http: TestClient, cluster: EmbeddedCluster
) -> None:
    _, path, change = sample
    client = Client(http, "v2")
    cluster.behaviour.bad_images = ["*"]
    operation = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")
    cluster.behaviour.bad_images = []
    refused = [Fault(answer(403), method, "*/deployments/*", times=100) for method in WRITES]
    cluster.middlewares.append(Faults(*refused))
    rollback = f"{operation['_links']['self']['href']}/rollback"
    detail = client.do("POST", rollback, state="FAILED_TEMP")["error"]["detail"]
    told = r"operation \S+ was being undone\. Not everything .*: Deployment .* answered 403: "
    assert re.match(told, detail)
    assert detail.endswith(
        f". Fix the cause named here, then go back: POST {urlsplit(rollback).path}."
    )
    assert "container-update" not in detail
    cluster.middlewares.clear()
    client.do("POST", rollback, state="ROLLED_BACK")


WRITES = ("PUT", "DELETE")


def recorded(record: dict[str, Any]) -> set[str]:
    """Return the pods in an instance's record."""
    return {
        each["computeResource"]["resourceId"]
        for each in record["instantiatedVnfInfo"]["vnfcResourceInfo"]
    }


def test_a_service_whose_terminal_is_closed_ends_as_at_sigterm(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        assert service.stop(signal.SIGHUP) == 0


@pytest.mark.parametrize(
    ("whose", "is_moved"), [("ours", True), ("another service's", False), ("nobody's", False)]
)
def test_a_service_ends_no_operation_that_another_has_taken_over(
    whose: str, is_moved: bool, tmp_path: Path
) -> None:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), OPTIONS).context
    owners = {"ours": service.process_lock.id, "another service's": "another", "nobody's": None}
    store(service, "one", State.PROCESSING, owners[whose])
    with service.database.writing() as session:
        moved = operations.enter(
            service, session, "one", State.PROCESSING, State.COMPLETED, vnfd_id="v-2"
        )
    assert moved is is_moved
    with service.database.reading() as session:
        found = session.get_one(OperationRow, "one")
    assert (found.state, found.vnfd_id) == (
        ("COMPLETED", "v-2") if is_moved else ("PROCESSING", None)
    )


def store(
    service: ServiceContext,
    name: str,
    state: State,
    owner: str | None,
    entered: datetime = EARLIER,
    operation: str = "MODIFY_INFO",
) -> None:
    """Store an operation of an instance of its own."""
    with service.database.writing() as session:
        session.add(
            OperationRow(
                id=name, api="v1", instance_id=name, operation=operation, params={}, sealed="",
                started=EARLIER, entered=entered, state=state.value, owner=owner,
            )
        )  # fmt: skip


Life = tuple[ServiceContext, Mapping[str, str]]
"""A service, and the ids of services: it, another one that lives, and one that has died."""


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), OPTIONS).context
    others = [liveness.join(service.database, tmp_path / "state/members", 0) for _ in range(2)]
    others[1].leave()
    yield (
        service,
        {"ours": service.process_lock.id, "another's": others[0].id, "a dead one's": others[1].id},
    )
    others[0].leave()
    service.process_lock.leave()
    service.database.close()


def becomes(service: ServiceContext, name: str) -> tuple[str, str | None, bool, str]:
    """Its state and owner, whether it entered that just now, and the title of its error."""
    with service.database.reading() as session:
        found = session.get_one(OperationRow, name)
        title = found.error["title"] if found.error else ""
        return found.state, found.owner, found.entered > EARLIER + timedelta(hours=1), title


def counted(service: ServiceContext) -> float:
    """How often an operation that failed was told to the metrics, and so to the subscribers."""
    failed = {"operation": "MODIFY_INFO", "state": "FAILED_TEMP"}
    samples = (s for m in service.metrics._states.collect() for s in m.samples)
    return sum(s.value for s in samples if s.name.endswith("_total") and s.labels == failed)


STOPPED = "The service was stopped"


def test_what_a_service_was_doing_is_settled_once_it_is_dead(life: Life) -> None:
    """What it had not begun is taken over; what others do, and what has ended, is let alone."""
    service, ids = life
    for whose, state in itertools.product(ids, State):
        store(service, f"{whose} {state.name}", state, ids[whose])
    assert operations.take_over(service) == ["a dead one's STARTING"]
    assert operations.take_over(service) == []
    expected = {
        f"{whose} {state.name}": (state.value, ids[whose], False, "")
        for whose, state in itertools.product(ids, State)
    }
    expected["a dead one's STARTING"] = ("STARTING", ids["ours"], False, "")
    for state in ("PROCESSING", "ROLLING_BACK"):
        expected[f"a dead one's {state}"] = ("FAILED_TEMP", None, True, STOPPED)
    assert {name: becomes(service, name) for name in expected} == expected
    assert counted(service) == 2


def test_packages_of_a_dead_service_are_onboarded_and_its_uploads_given_up(life: Life) -> None:
    service, ids = life
    states = ("CREATED", "UPLOADING", "PROCESSING", "ONBOARDED", "ERROR")
    names = {f"{whose} {state}": (state, ids[whose]) for whose in ids for state in states}
    with service.database.writing() as session:
        for name, (state, owner) in names.items():
            session.add(
                Package(
                    id=name, created=EARLIER, onboarding_state=state, operational_state="DISABLED",
                    owner=owner, user_data={}, body={},
                )
            )  # fmt: skip
    assert content.take_over(service) == ["a dead one's PROCESSING"]
    assert content.take_over(service) == []
    names["a dead one's UPLOADING"] = ("CREATED", None)
    names["a dead one's PROCESSING"] = ("PROCESSING", ids["ours"])
    with service.database.reading() as session:
        rows = session.scalars(select(Package)).all()
    assert {row.id: (row.onboarding_state, row.owner) for row in rows} == names


def test_what_no_thread_of_a_service_carries_out_is_settled_after_a_while(life: Life) -> None:
    service, ids = life
    before = EARLIER + timedelta(minutes=1)
    store(service, "waits", State.STARTING, ids["ours"])
    store(service, "stopped", State.ROLLING_BACK, ids["ours"])
    store(service, "at work", State.PROCESSING, ids["ours"])
    store(service, "just begun", State.PROCESSING, ids["ours"], before)
    store(service, "ended", State.COMPLETED, ids["ours"])
    store(service, "a dead one's", State.PROCESSING, ids["a dead one's"])
    assert operations.settle_forgotten(service, ["at work"], before) == ["waits"]
    assert becomes(service, "waits") == ("STARTING", ids["ours"], False, "")
    assert becomes(service, "stopped") == ("FAILED_TEMP", None, True, STOPPED)
    for name in ("at work", "just begun"):
        assert becomes(service, name) == ("PROCESSING", ids["ours"], False, "")
    assert becomes(service, "ended") == ("COMPLETED", ids["ours"], False, "")
    assert becomes(service, "a dead one's") == ("PROCESSING", ids["a dead one's"], False, "")


@pytest.mark.parametrize(
    ("was", "request_", "state", "said"),
    [
        (State.FAILED_TEMP, Request.RETRY, State.PROCESSING, ""),
        (State.FAILED_TEMP, Request.ROLLBACK, State.ROLLING_BACK, ""),
        (State.STARTING, Request.CANCEL, State.ROLLED_BACK, "The operation was cancelled"),
    ],
)
def test_who_is_asked_to_go_on_with_an_operation_owns_it(
    life: Life, was: State, request_: Request, state: State, said: str
) -> None:
    service, ids = life
    store(service, "one", was, ids["another's"])
    with service.database.writing() as session:
        operation = session.get_one(OperationRow, "one")
        operations.apply_request(service, session, operation, request_)
    owner = None if request_ is Request.CANCEL else ids["ours"]
    assert becomes(service, "one") == (state.value, owner, True, said)


@pytest.mark.parametrize(
    ("was", "kind", "request_", "said"),
    [
        (
            State.ROLLING_BACK,
            "MODIFY_INFO",
            Request.CANCEL,
            "cancel is possible only in STARTING and PROCESSING, found ROLLING_BACK",
        ),
        (
            State.COMPLETED,
            "MODIFY_INFO",
            Request.RETRY,
            "retry is possible only in FAILED_TEMP, found COMPLETED",
        ),
        (
            State.FAILED_TEMP,
            "TERMINATE",
            Request.ROLLBACK,
            "TERMINATE cannot be rolled back: send a request to retry or fail",
        ),
    ],
)
def test_a_request_that_comes_at_the_wrong_time_changes_nothing(
    life: Life, was: State, kind: str, request_: Request, said: str
) -> None:
    service, ids = life
    store(service, "one", was, ids["another's"], operation=kind)
    with service.database.writing() as session:
        operation = session.get_one(OperationRow, "one")
        with pytest.raises(ProblemError, match=f"operation one: {re.escape(said)}$") as raised:
            operations.apply_request(service, session, operation, request_)
    assert raised.value.status == 409
    assert becomes(service, "one") == (was.value, ids["another's"], False, "")


def test_of_two_requests_at_the_same_time_one_is_refused(life: Life) -> None:
    service, ids = life
    store(service, "one", State.FAILED_TEMP, None)
    with service.database.reading() as session:
        seen_before = session.get_one(OperationRow, "one")
    for first in (True, False):
        with service.database.writing() as session:
            if first:
                operations.apply_request(service, session, seen_before, Request.RETRY)
            else:
                session.add(seen_before)
                with pytest.raises(ProblemError, match="only in FAILED_TEMP, found PROCESSING"):
                    operations.apply_request(service, session, seen_before, Request.RETRY)
    assert becomes(service, "one") == ("PROCESSING", ids["ours"], True, "")


@dataclass
class InTransaction:
    """A database whose one transaction is under way."""

    session: Session

    def lasting(self, write: Callable[[], None]) -> None:
        write()

    def writing(self) -> AbstractContextManager[Session]:
        return nullcontext(self.session)


@pytest.mark.parametrize("is_cancelled_first", [True, False])
def test_a_cancel_and_what_the_worker_keeps_at_the_same_moment_are_both_stored(
    is_cancelled_first: bool, postgresql: str, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none", database_url=postgresql)
    service = Service(settings, OPTIONS).context
    database = service.database
    store(service, "one", State.PROCESSING, service.process_lock.id)

    def cancel(session: Session) -> None:
        operation = session.get_one(OperationRow, "one")
        operations.apply_request(service, session, operation, Request.CANCEL)

    def keep(session: Session) -> None:
        Steps(cast(Any, InTransaction(session)), "one", remember=True)(Plan("cnf", None, ()))
        session.flush()

    def read(query: TextClause) -> Any:
        with database.engine.connect() as connection:
            return connection.scalar(query)

    first, second = (cancel, keep) if is_cancelled_first else (keep, cancel)

    def then() -> None:
        with database.writing() as session:
            second(session)

    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with ThreadPoolExecutor(1) as pool:
        with database.writing() as session:
            first(session)
            ended = pool.submit(then)
            until(lambda: read(waiting), "the other transaction waits")
        ended.result()

    with database.reading() as session:
        kept = session.get_one(OperationRow, "one").kept
    assert kept == {"cancelled": "FORCEFUL", "container_update": {"state": "unknown"}}
    database.close()


def test_an_operation_is_its_services_before_it_is_begun_and_the_only_one_of_its_vnf(
    life: Life,
) -> None:
    service, ids = life
    instance = Instance(id="vnf", api="v2", body={})
    request = {"vnfdId": "v-2", "kept": "in confidence"}
    with service.database.writing() as session:
        begun = operations.begin(
            service, session, instance, "SCALE", request, requested_by="ann", hidden={"kept"}
        )
    with service.database.reading() as session:
        stored = session.get_one(OperationRow, begun.id)
        assert (stored.state, stored.owner) == ("STARTING", ids["ours"])
        assert (stored.api, stored.instance_id) == ("v2", "vnf")
        assert (stored.operation, stored.vnfd_id) == ("SCALE", "v-2")
        assert stored.params == {"vnfdId": "v-2", "kept": "***"}
        assert service.vault.open(stored.sealed) == request
    with (
        service.database.writing() as session,
        pytest.raises(ProblemError, match="VNF instance vnf: another operation has") as raised,
    ):
        operations.begin(
            service, session, instance, "SCALE", request, requested_by="ann", hidden=()
        )
    assert raised.value.status == 409
    assert service.metrics._states.labels("SCALE", "STARTING")._value.get() == 1


@pytest.mark.parametrize(("kind", "is_undoable"), [("TERMINATE", False), ("MODIFY_INFO", True)])
def test_what_was_interrupted_names_the_requests_that_go_on_with_it(
    life: Life, kind: str, is_undoable: bool
) -> None:
    service, ids = life
    store(service, "one", State.PROCESSING, ids["a dead one's"], operation=kind)
    operations.take_over(service)
    with service.database.reading() as session:
        error = session.get_one(OperationRow, "one").error
    assert error is not None
    assert "/vnf_lcm_op_occs/one/retry" in error["detail"]
    assert ("/vnf_lcm_op_occs/one/rollback" in error["detail"]) is is_undoable


def test_what_a_service_hands_over_is_taken_by_the_first_that_looks(life: Life) -> None:
    service, ids = life
    for state in State:
        store(service, f"free {state.name}", state, None)
        store(service, f"another's {state.name}", state, ids["another's"])
    at_work = ["free PROCESSING", "free ROLLING_BACK", "free STARTING"]
    assert sorted(operations.take_over(service)) == at_work
    assert operations.take_over(service) == []
    for state in State:
        whose = ids["ours"] if f"free {state.name}" in at_work else None
        assert becomes(service, f"free {state.name}") == (state.value, whose, False, "")
        others = (state.value, ids["another's"], False, "")
        assert becomes(service, f"another's {state.name}") == others
    assert counted(service) == 0


def test_of_two_services_that_look_at_the_same_time_one_takes_it(
    database: str, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), database_url=database, auth="none")
    services = [Service(settings, OPTIONS).context for _ in range(4)]
    names = [f"operation {number}" for number in range(20)]
    for name in names:
        store(services[0], name, State.PROCESSING, None)
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(operations.take_over, services))
    assert sorted(name for each in taken for name in each) == sorted(names)
    for service, mine in zip(services, taken, strict=True):
        for name in mine:
            assert becomes(service, name)[1] == service.process_lock.id
        service.process_lock.leave()
        service.database.close()


@pytest.mark.parametrize(
    ("whose", "state", "is_free"),
    [
        ("ours", State.PROCESSING, True),
        ("ours", State.ROLLING_BACK, False),
        ("another's", State.PROCESSING, False),
    ],
    ids=["ours", "in another state", "taken over meanwhile"],
)
def test_a_service_hands_over_only_what_it_has(
    whose: str, state: State, is_free: bool, life: Life
) -> None:
    service, ids = life
    store(service, "one", state, ids[whose])
    with service.database.writing() as session:
        kept = {"kept": {"a": 1}}
        done = operations.hand_over(service, session, "one", State.PROCESSING, **kept)
    assert done is is_free
    owner = None if is_free else ids[whose]
    assert becomes(service, "one") == (state.value, owner, False, "")


def test_what_no_thread_has_begun_is_handed_over_at_the_end(life: Life) -> None:
    service, ids = life
    for whose, state in itertools.product(ids, State):
        store(service, f"{whose} {state.name}", state, ids[whose])
    store(service, "at work", State.PROCESSING, ids["ours"])
    operations.hand_over_all(service, ["at work"])
    for whose, state in itertools.product(ids, State):
        handed = whose == "ours" and state in RUNNING
        expected = (state.value, None if handed else ids[whose], False, "")
        assert becomes(service, f"{whose} {state.name}") == expected
    assert becomes(service, "at work") == ("PROCESSING", ids["ours"], False, "")


def test_a_service_that_ends_takes_nothing_back(life: Life) -> None:
    service, _ = life
    store(service, "one", State.PROCESSING, None)
    service.ending.set()
    assert operations.take_over(service) == []
    assert becomes(service, "one") == ("PROCESSING", None, False, "")


CAUSES = {
    "interrupted by the end": (UpdateInterruptedError(Outcome(None), ""), True, True),
    "a script stopped by the end": (ScriptError(""), True, True),
    "before anything began": (ServiceEndsError(""), False, True),
    "it failed, and the service ends": (UpdateFailedError(Outcome(None), ""), True, False),
    "it could not be undone": (UndoIncompleteError(Outcome(None), ""), True, False),
    "another host goes on with it": (LeaseLostError(""), True, False),
    "a script failed": (ScriptError(""), False, False),
    "a fault": (KeyError(""), True, False),
}


@pytest.mark.parametrize("case", CAUSES)
def test_only_what_the_end_of_the_service_interrupts_is_handed_over(case: str) -> None:
    error, is_cancelled, is_handed_over = CAUSES[case]
    cancel = CancelToken()
    if is_cancelled:
        cancel.request("because the service ends", keep_journal=True)
    assert perform._is_interrupted(SimpleNamespace(cancel=cancel), error) is is_handed_over  # type: ignore[arg-type]
