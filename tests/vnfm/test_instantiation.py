# SPDX-License-Identifier: Apache-2.0
"""What an instantiation and a termination may ask for, over REST."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from container_update import CancelToken, Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import Collection, KubernetesCluster, LeaseLock, ObjectKey
from tests.internals.service import OperationRow, Service, Settings, now
from tests.tacker.conftest import Kubectl
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.conftest import unrecorded
from tests.vnfm.scalable import recorded
from tests.vnfm.test_api import broken
from tests.vnfm.waiting import until

OPTIONS = Options(lease_seconds=3, timeout=20, undo_timeout=20, grace_period=0.5)
Json = dict[str, Any]


@pytest.fixture
def options() -> Options:
    return OPTIONS


# --- what an instantiation may ask for ----------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"flavourId": "nonexistent"}, "flavourId: expected .* simple.*, found nonexistent"),
        (
            {"instantiationLevelId": "huge"},
            "instantiationLevelId: .* instantiation_level_1, instantiation_level_2.* found huge",
        ),
    ],
)
def test_what_the_vnfd_does_not_have_is_refused_with_what_it_has(
    asked: Json, message: str, client: Client, created: str, cluster: EmbeddedCluster
) -> None:
    request = scalable.instantiation(client.vims(cluster), **asked)
    refused = client.call("POST", f"{created}/instantiate", request, 422)
    assert re.search(message, refused["detail"]), refused


def test_a_def_file_that_the_package_lacks_is_refused_before_it_is_accepted(
    client: Client, created: str, cluster: EmbeddedCluster
) -> None:
    request = scalable.instantiation(client.vims(cluster))
    request["additionalParams"]["lcm-kubernetes-def-files"] = ["Files/kubernetes/none.yaml"]
    refused = client.call("POST", f"{created}/instantiate", request, 422)
    assert re.search("lcm-kubernetes-def-files: Files/kubernetes/none.yaml", refused["detail"])
    client.do("POST", f"{created}/instantiate", scalable.instantiation(client.vims(cluster)))


@pytest.mark.parametrize("wrong", ["namespace", "manifest", "token"])
def test_a_rollback_ends_an_instantiation_that_wrote_nothing(
    wrong: str, client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    manifest = vnfs.CONFIG.format(version="1.0") + "metadata: {name: [wrong]}\n"
    manifests = dict.fromkeys(vnfs.DEF_FILES, manifest) if wrong == "manifest" else None
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api), manifests)
    path = client.create(client.onboard(package))
    vims = client.vims(cluster)
    if wrong == "token":
        (entry,) = vims if client.api == "v1" else vims.values()
        entry["accessInfo"] = {"bearer_token": "wrong"}
    request = vnfs.instantiation(vims, "missing" if wrong == "namespace" else "default")
    failed = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    client.call("DELETE", path, status=204)


@pytest.mark.parametrize("is_complete", [False, True], ids=["fails", "is not recorded"])
def test_a_rollback_deletes_what_an_instantiation_has_created(
    is_complete: bool,
    client: Client,
    created: str,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kubernetes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cnf"}})
    request = scalable.instantiation(client.vims(cluster))
    request["additionalParams"]["namespace"] = "cnf"
    cluster.behaviour.bad_images = [] if is_complete else ["*worker*"]
    cluster.behaviour.backoff_seconds = 0.1
    with unrecorded(monkeypatch) if is_complete else nullcontext():
        failed = client.do("POST", f"{created}/instantiate", request, "FAILED_TEMP")
    kinds = (("apps", "Deployment"), ("apps", "StatefulSet"), ("", "Service"), ("", "Secret"))
    collections = [Collection(*kind, "cnf") for kind in kinds]
    assert [len(kubernetes.list(each).items) for each in collections[:2]] == [1, 1]
    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert [item for each in collections for item in kubernetes.list(each).items] == []
    client.call("DELETE", created, status=204)


Failed = tuple[str, Callable[[KubernetesCluster, int], object]]


@pytest.fixture
def failed(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> Failed:
    """An instantiation that has failed, and what gives its lease to somebody else for seconds."""
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api))
    path = client.create(client.onboard(package))
    broken(cluster, "*")
    cluster.behaviour.backoff_seconds = cluster.behaviour.backoff_limit_seconds = 0.1
    request = vnfs.instantiation(client.vims(cluster))
    operation = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    cluster.behaviour.bad_images = []

    def lease(kubernetes: KubernetesCluster, seconds: int) -> None:
        lock = LeaseLock(kubernetes, "default", path.rpartition("/")[2], "", "", 2, CancelToken())
        kubernetes.create(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": lock.key.name, "namespace": lock.key.namespace},
                "spec": {
                    "holderIdentity": "other/1",
                    "renewTime": f"{now().isoformat(timespec='microseconds')}Z",
                    "leaseDurationSeconds": seconds,
                },
            }
        )

    return str(operation["_links"]["self"]["href"]), lease


@pytest.mark.parametrize("way", ["retry", pytest.param("rollback", marks=pytest.mark.thorough)])
def test_an_instantiation_goes_on_once_the_lease_of_a_killed_service_has_expired(
    way: str, failed: Failed, client: Client, kubernetes: KubernetesCluster
) -> None:
    operation, lease = failed
    lease(kubernetes, 2)
    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    client.do("POST", f"{operation}/{way}", state=state)


def test_who_waits_for_the_lease_of_another_run_may_stop_waiting(
    failed: Failed, client: Client, kubernetes: KubernetesCluster
) -> None:
    operation, lease = failed
    lease(kubernetes, 3000)
    client.begin("POST", f"{operation}/retry")
    client.call("POST", f"{operation}/cancel", {"cancelMode": "GRACEFUL"}, 202)
    until(lambda: client.call("GET", operation)["operationState"] == "FAILED_TEMP", "its end", 10)
    assert "operation 1 on other holds" in client.call("GET", operation)["error"]["detail"]


@pytest.mark.parametrize("way", ["retry", pytest.param("rollback", marks=pytest.mark.thorough)])
def test_an_instantiation_stays_in_its_vim_when_another_one_becomes_the_default(
    way: str,
    client: Client,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    tmp_path: Path,
) -> None:
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api))
    path = client.create(client.onboard(package))
    vim_id = register_default(client, cluster, "first")
    request = vnfs.instantiation(None)
    del request["vimConnectionInfo"]
    cluster.behaviour.bad_images = ["*"]
    cluster.behaviour.backoff_seconds = cluster.behaviour.backoff_limit_seconds = 0.1
    failed = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    cluster.behaviour.bad_images = []
    state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
    with EmbeddedCluster() as other:
        register_default(client, other, "second")
        client.do("POST", f"{failed['_links']['self']['href']}/{way}", state=state)
    deployments = kubernetes.list(Collection("apps", "Deployment", "default")).items
    assert len(deployments) == (way == "retry")
    if way == "retry":
        recorded_vims = client.call("GET", path)["vimConnectionInfo"]
        (entry,) = recorded_vims if client.api == "v1" else recorded_vims.values()
        assert entry["vimId"] == vim_id


def register_default(client: Client, cluster: EmbeddedCluster, name: str) -> str:
    """Register a cluster as the default VIM and return its id."""
    body = {
        "type": "kubernetes",
        "name": name,
        "is_default": True,
        "auth_url": cluster.url,
        "auth_cred": {"bearer_token": cluster.token, "ssl_ca_cert": cluster.ca_text},
    }
    return str(client.call("POST", "/v1.0/vims", {"vim": body}, 201)["vim"]["id"])


def test_a_vnf_whose_namespace_is_gone_is_terminated(
    client: Client, created: str, cluster: EmbeddedCluster, kubernetes: KubernetesCluster
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cnf"}}
    kubernetes.create(namespace)
    request = scalable.instantiation(client.vims(cluster))
    request["additionalParams"]["namespace"] = "cnf"
    client.do("POST", f"{created}/instantiate", request)
    kubernetes.delete(ObjectKey.of(namespace))
    until(lambda: kubernetes.get(ObjectKey.of(namespace)) is None, "the namespace is gone")
    client.do("POST", f"{created}/terminate", {"terminationType": "FORCEFUL"})
    assert client.call("GET", created)["instantiationState"] == "NOT_INSTANTIATED"


@pytest.mark.parametrize(
    ("level", "numbers", "scale_level"),
    [
        (None, {"VDU1": 1, "VDU2": 1}, 0),
        ("instantiation_level_1", {"VDU1": 1, "VDU2": 1}, 0),
        ("instantiation_level_2", {"VDU1": 3, "VDU2": 1}, 2),
    ],
)
def test_the_instantiation_level_decides_how_many_vnfcs_there_are(
    level: str | None,
    numbers: dict[str, int],
    scale_level: int,
    client: Client,
    created: str,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
) -> None:
    more = {"instantiationLevelId": level} if level else {}
    request = scalable.instantiation(client.vims(cluster), **more)
    client.do("POST", f"{created}/instantiate", request)
    info = client.call("GET", created)["instantiatedVnfInfo"]
    pods = recorded({"instantiatedVnfInfo": info})
    assert {vdu: len(names) for vdu, names in pods.items()} == numbers
    assert len(kubectl.pods()) == sum(numbers.values())
    assert info["scaleStatus"] == [{"aspectId": scalable.ASPECT, "scaleLevel": scale_level}]
    if client.api == "v2":
        assert info["maxScaleLevels"] == [{"aspectId": scalable.ASPECT, "scaleLevel": 2}]


def test_the_other_attributes_of_an_instantiation_are_shown(
    client: Client, created: str, cluster: EmbeddedCluster
) -> None:
    more = {
        "localizationLanguage": "ja",
        "extensions": {"a": 1},
        "vnfConfigurableProperties": {"b": 2},
    }
    request = scalable.instantiation(client.vims(cluster), **more)
    client.do("POST", f"{created}/instantiate", request)
    shown = client.call("GET", created)
    assert shown["instantiatedVnfInfo"]["localizationLanguage"] == "ja"
    assert shown["extensions"] == {"a": 1}
    assert shown["vnfConfigurableProperties"] == {"b": 2}


# --- termination --------------------------------------------------------------------------------


def graceful(seconds: int) -> Json:
    return {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": seconds}


def steps_of(client: Client, operation: str) -> list[Json]:
    return list(client.call("GET", f"{operation}/progress")["steps"])


def waiting(service: Service, operation: str) -> None:
    """Wait until an operation waits for its time, without a worker."""
    waits = (OperationRow.id == operation.rpartition("/")[2], OperationRow.due.is_not(None))

    def read() -> OperationRow | None:
        with service.context.database.reading() as session:
            return session.scalar(select(OperationRow).where(*waits, OperationRow.owner.is_(None)))

    until(read, "the operation waits")


def let_time_pass(service: Service, operation: str, hours: int = 1) -> None:
    """Have an operation wait as if it had begun that much earlier."""
    is_it, delta = OperationRow.id == operation.rpartition("/")[2], timedelta(hours=hours)
    with service.context.database.writing() as session:
        row = session.scalars(select(OperationRow).where(is_it)).one()
        row.started -= delta
        assert row.due is not None
        row.due -= delta


def test_a_graceful_termination_waits_for_as_long_as_asked_before_it_deletes(
    client: Client, vnf: str, kubectl: Kubectl
) -> None:
    operation = client.begin("POST", f"{vnf}/terminate", graceful(1))
    assert client.settled(operation)["operationState"] == "COMPLETED"
    (waited, *_) = steps_of(client, operation)
    assert (waited["action"], waited["state"]) == ("wait", "done")
    assert waited["seconds"] >= 1
    assert kubectl.pods() == {}


def test_a_graceful_termination_has_a_longest_time(client: Client, vnf: str) -> None:
    for seconds in (86_401, 10**9, 10**29):
        refused = client.call("POST", f"{vnf}/terminate", graceful(seconds), 422)["detail"]
        assert "gracefulTerminationTimeout: Input should be less than or equal to 86400" in refused


@pytest.fixture
def few_workers(tmp_path: Path) -> Settings:
    """The settings of a service with two workers."""
    return Settings(state_dir=str(tmp_path / "state"), auth="none", workers=2)


def test_terminations_that_wait_keep_no_worker_and_can_be_cancelled(
    few_workers: Settings, tmp_path: Path, cluster: EmbeddedCluster, kubernetes: KubernetesCluster
) -> None:
    service = Service(few_workers, OPTIONS)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        vnfd_id = client.onboard(scalable.package(tmp_path))
        paths = [client.create(vnfd_id) for _ in range(4)]
        for number, path in enumerate(paths):
            namespace = {"apiVersion": "v1", "kind": "Namespace"}
            kubernetes.create({**namespace, "metadata": {"name": f"n{number}"}})
            request = scalable.instantiation(client.vims(cluster))
            request["additionalParams"]["namespace"] = f"n{number}"
            client.do("POST", f"{path}/instantiate", request)
        *waiters, other = paths
        operations = [client.begin("POST", f"{each}/terminate", graceful(3600)) for each in waiters]
        for operation in operations:
            waiting(service, operation)
        client.do("POST", f"{other}/terminate", {"terminationType": "FORCEFUL"})

        for operation in operations:
            client.call("POST", f"{operation}/cancel", {"cancelMode": "GRACEFUL"}, 202)
            cancelled = client.settled(operation)
            assert cancelled["operationState"] == "FAILED_TEMP"
            assert "cancelled while it waited" in cancelled["error"]["detail"]
            assert set(cancelled["_links"]) == {"self", "vnfInstance", "retry", "fail"}
            (step,) = steps_of(client, operation)
            assert (step["action"], step["state"]) == ("wait", "stopped")
            client.call("POST", f"{operation}/cancel", {"cancelMode": "FORCEFUL"}, 409)
        given_up, retried, again = operations
        assert client.call("POST", f"{given_up}/fail")["operationState"] == "FAILED"
        client.do("PATCH", waiters[0], {"vnfInstanceName": "kept"})

        for operation in (retried, again):  # what a retry waits is the rest
            assert client.send("POST", f"{operation}/retry").status_code == 202
            waiting(service, operation)
        let_time_pass(service, retried)
        service.workers.look()
        assert client.settled(retried)["operationState"] == "COMPLETED"
        assert client.call("GET", again)["operationState"] == "PROCESSING"


def test_the_next_service_waits_for_the_rest_of_a_graceful_termination(
    tmp_path: Path, cluster: EmbeddedCluster, kubectl: Kubectl
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none")
    service = Service(settings, OPTIONS)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        path = client.create(client.onboard(scalable.package(tmp_path)))
        client.do("POST", f"{path}/instantiate", scalable.instantiation(client.vims(cluster)))
        operation = client.begin("POST", f"{path}/terminate", graceful(3600))
        waiting(service, operation)
        (step,) = steps_of(client, operation)
        assert (step["action"], step["state"]) == ("wait", "running")
    service = Service(settings, OPTIONS)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        waiting(service, operation)
    assert len(kubectl.pods()) == 2
    service = Service(settings, OPTIONS)
    let_time_pass(service, operation)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        assert Client(http, "v2").settled(operation)["operationState"] == "COMPLETED"
    assert kubectl.pods() == {}


STAYING = """---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shared}
rules: []
"""


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ({}, {"data", "shared"}),
        pytest.param({"delete_data": True}, {"shared"}, marks=pytest.mark.thorough),
        pytest.param({"delete_shared": True}, {"data"}, marks=pytest.mark.thorough),
        ({"delete_data": True, "delete_shared": True, "for the driver": [1]}, set()),
    ],
    ids=["neither", "data", "shared", "both"],
)
def test_data_and_what_others_may_use_stay_unless_a_termination_asks_for_them(
    params: Json, left: set[str], client: Client, cluster: EmbeddedCluster, kubectl: Kubectl,
    tmp_path: Path,
) -> None:  # fmt: skip
    manifests = vnfs.DEPLOYMENT + STAYING.replace("{", "{{").replace("}", "}}")
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api), deployment=manifests)
    path = client.create(client.onboard(package))
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))

    def found() -> set[str]:
        kinds = (("PersistentVolumeClaim", ""), ("ClusterRole", "rbac.authorization.k8s.io"))
        return {name for kind in kinds for name in kubectl.names(*kind)} & {"data", "shared"}

    assert found() == {"data", "shared"}
    for wrong in ("yes", 1, None):
        body = {"terminationType": "FORCEFUL", "additionalParams": {"delete_data": wrong}}
        client.call("POST", f"{path}/terminate", body, 422)
    body = {"terminationType": "FORCEFUL", "additionalParams": params}
    client.do("POST", f"{path}/terminate", body)
    assert found() == left


def test_the_rollback_of_an_instantiation_that_was_complete_leaves_data_and_what_others_may_use(
    client: Client, cluster: EmbeddedCluster, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    manifests = vnfs.DEPLOYMENT + STAYING.replace("{", "{{").replace("}", "}}")
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api), deployment=manifests)
    path = client.create(client.onboard(package))
    request = vnfs.instantiation(client.vims(cluster))
    with unrecorded(monkeypatch):
        failed = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert kubectl.pods() == {}
    assert kubectl.names("PersistentVolumeClaim", "") == {"data"}
    assert "shared" in kubectl.names("ClusterRole", "rbac.authorization.k8s.io")


def test_a_timeout_of_a_forceful_termination_is_refused(client: Client, vnf: str) -> None:
    body = {"terminationType": "FORCEFUL", "gracefulTerminationTimeout": 3}
    refused = client.call("POST", f"{vnf}/terminate", body, 422)
    assert "gracefulTerminationTimeout" in refused["detail"]
