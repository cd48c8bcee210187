# SPDX-License-Identifier: Apache-2.0
"""Mgmt Drivers other than the project's own: loaded and run as by Tacker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests import plugins
from tests.internals.service import Service, Settings, v1, v2
from tests.tacker.conftest import Kubectl
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.waiting import until

POINTS = ("start", "end")
OPERATIONS = ("instantiate", "modify_information", "terminate")
EVENTS = [f"{operation}_{point}" for operation in OPERATIONS for point in POINTS]

SCRIPT = """
import json, pickle, sys

script = pickle.load(sys.stdin.buffer)
with open({log_path!r}, "a") as file:
    names = ("operation", "request", "user_script_err_handling_data")
    entry = {{name: script[name] for name in names}}
    entry |= {{"new_csar_dir": "new_csar_dir" in script}}
    file.write(json.dumps(entry) + "\\n")
instance = script["vnf_instance"]
answer = {{"user_script_err_handling_data": {{"last": script["operation"]}}}}
if script["operation"] == "modify_information_end":
    if not script["user_script_err_handling_data"].get("rolled"):
        instance["metadata"]["touched"] = "by the script"
if script["operation"] in {fails!r}:
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.exit("cannot do it")
sys.stdout.buffer.write(pickle.dumps({{**answer, "vnf_instance": instance}}))
"""

DRIVER = """
from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import VnflcmMgmtAbstractDriver


class Recorder(VnflcmMgmtAbstractDriver):
    calls = []

    def get_type(self):
        return "mgmt-recorder"

    def __getattr__(self, name):
        if not name.endswith(("_start", "_end")):
            raise AttributeError(name)

        def record(context, vnf_instance, **kwargs):
            self.calls.append((name, sorted(kwargs)))
            if name == "modify_information_end":
                vnf_instance.vnf_metadata["touched"] = "by the driver"
                vnf_instance.save()

        return record
"""


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none")
    service = Service(settings, Options(lease_seconds=3))
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield http


def instantiate(client: Client, cluster: EmbeddedCluster, folder: Path, driver: vnfs.Driver) -> str:
    """Onboard a package with the driver, instantiate it and return the instance's path."""
    package, vnfd_id = vnfs.package(folder, "1.0", driver)
    client.onboard(package)
    path = client.create(vnfd_id)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    return path


def script(log_path: Path, fails: tuple[str, ...] = ()) -> vnfs.Driver:
    text = SCRIPT.format(log_path=str(log_path), fails=fails)
    events = (*EVENTS, "modify_information_rollback_start", "modify_information_rollback_end")
    return vnfs.Driver("mgmt-other", "../Scripts/other.py", text.encode(), events)


def test_a_foreign_script_runs_at_every_operation(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, log_path = Client(http, "v2"), tmp_path / "log"
    path = instantiate(client, cluster, tmp_path, script(log_path))
    new, vnfd_id = vnfs.package(tmp_path, "2.0", script(log_path))
    client.onboard(new)
    client.do("PATCH", path, {"vnfdId": vnfd_id, "metadata": {"a": "b"}})
    instance = client.call("GET", path)
    assert instance["vnfdId"] == vnfd_id
    assert instance["metadata"] == {"a": "b", "touched": "by the script"}
    request = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}
    client.do("POST", f"{path}/terminate", request)
    runs = [json.loads(line) for line in log_path.read_text().splitlines()]
    assert [run["operation"] for run in runs] == EVENTS
    assert [run["new_csar_dir"] for run in runs] == [e == "modify_information_end" for e in EVENTS]


def test_the_data_of_a_failed_script_are_passed_to_the_rollback(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, log_path = Client(http, "v2"), tmp_path / "log"
    path = instantiate(
        client, cluster, tmp_path, script(log_path, fails=("modify_information_end",))
    )
    before = client.call("GET", path)
    request = {"metadata": {"a": "b"}, "vnfdId": before["vnfdId"]}
    operation = client.do("PATCH", path, request, "FAILED_TEMP")
    assert "cannot do it" in operation["error"]["detail"]
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    runs = [json.loads(line) for line in log_path.read_text().splitlines()]
    start = next(r for r in runs if r["operation"] == "modify_information_rollback_start")
    assert start["user_script_err_handling_data"] == {"last": "modify_information_end"}
    assert not start["new_csar_dir"]
    assert client.call("GET", path)["vnfdId"] == before["vnfdId"]


MARKS = """
import pickle, sys

script = pickle.load(sys.stdin.buffer)
instance = script["vnf_instance"]
instance["metadata"] = {**(instance.get("metadata") or {}), script["operation"]: "seen"}
sys.stdout.buffer.write(pickle.dumps({"vnf_instance": instance}))
"""


@pytest.mark.parametrize("event", ["terminate", "change_current_package"])
def test_what_the_script_of_a_start_changes_outlives_a_wait(
    event: str, http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, events = Client(http, "v2"), (f"{event}_start", f"{event}_end")
    driver = vnfs.Driver("mgmt-other", "../Scripts/other.py", MARKS.encode(), events)
    path = instantiate(client, cluster, tmp_path, driver)
    if event == "terminate":
        request = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}
        client.do("POST", f"{path}/terminate", request)
    else:
        new = client.onboard(vnfs.package(tmp_path, "2.0", driver)[0])
        params = {"upgrade_type": "Blue-Green", "hold": True}
        body = {"vnfdId": new, "additionalParams": params}
        operation = client.begin("POST", f"{path}/change_vnfpkg", body)
        until(lambda: "promote" in client.call("GET", operation)["_links"], "it waits", lasts=True)
        client.do("POST", f"{operation}/promote")

    assert client.call("GET", path)["metadata"] == dict.fromkeys(events, "seen")


WRONG = """
import pickle, sys

script = pickle.load(sys.stdin.buffer)
script["vnf_instance"]["instantiatedVnfInfo"] = [["flavourId", "simple"]]
sys.stdout.buffer.write(pickle.dumps({"vnf_instance": script["vnf_instance"]}))
"""


def test_an_instance_that_a_script_spoils_is_not_stored(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, events = Client(http, "v2"), ("modify_information_end",)
    driver = vnfs.Driver("mgmt-other", "../Scripts/other.py", WRONG.encode(), events)
    path = instantiate(client, cluster, tmp_path, driver)
    before = client.call("GET", path)
    operation = client.do("PATCH", path, {"metadata": {"a": "b"}}, "FAILED_TEMP")
    assert "the answer of ../Scripts/other.py: " in operation["error"]["detail"]
    assert "instantiatedVnfInfo: expected" in operation["error"]["detail"]
    assert client.call("GET", "/vnflcm/v2/vnf_instances")[0]["id"] == before["id"]
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert client.call("GET", path) == before


VERBS = {
    "instantiate": "instantiate",
    "heal": "heal",
    "change_current_package": "change_vnfpkg",
}


@pytest.mark.parametrize("event", VERBS)
def test_scripts_run_around_a_rollback(
    event: str, http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, log_path = Client(http, "v2"), tmp_path / "log"
    events = [f"{event}_{point}" for point in ("start", "end", "rollback_start", "rollback_end")]
    driver = replace(script(log_path, fails=(f"{event}_end",)), operations=tuple(events))
    old, new = (
        client.onboard(vnfs.package(tmp_path, version, driver)[0]) for version in ("1.0", "2.0")
    )
    path = client.create(old)
    change = {"vnfdId": new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
    requests = {
        "instantiate": vnfs.instantiation(client.vims(cluster)),
        "heal": {},
        "change_vnfpkg": change,
    }
    verb = VERBS[event]
    if verb != "instantiate":
        client.do("POST", f"{path}/instantiate", requests["instantiate"])

    failed = client.do("POST", f"{path}/{verb}", requests[verb], "FAILED_TEMP")
    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")

    runs = [json.loads(line) for line in log_path.read_text().splitlines()]
    assert [run["operation"] for run in runs] == events


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[type]:
    """An installed distribution with a v1 Mgmt Driver."""
    entry = "[tacker.tacker.mgmt.drivers]\nmgmt-recorder = recorder:Recorder\n"
    with plugins.installed(plugins.distribution(tmp_path / "site", entry, recorder=DRIVER)):
        yield type(v1.load("mgmt-recorder"))


def test_a_foreign_driver_is_called_at_every_operation(
    http: TestClient, cluster: EmbeddedCluster, recorder: type, tmp_path: Path
) -> None:
    client = Client(http, "v1")
    driver = vnfs.Driver("mgmt-recorder", "Scripts/recorder.py", DRIVER.encode(), tuple(EVENTS))
    path = instantiate(client, cluster, tmp_path, driver)
    client.do("PATCH", path, {"metadata": {"a": "b"}})
    assert client.call("GET", path)["metadata"]["touched"] == "by the driver"
    client.do("POST", f"{path}/terminate", {"terminationType": "GRACEFUL"})
    calls = dict(recorder.calls)  # type: ignore[attr-defined]
    assert list(calls) == EVENTS
    assert calls["modify_information_end"] == [
        "configmap_secret_paths", "modify_vnf_request", "old_vnf_package_path",
    ]  # fmt: skip


@pytest.mark.parametrize("grace", [None, 3600])
def test_a_cancel_while_a_driver_starts_a_termination_counts_once_that_has_ended(
    grace: int | None, http: TestClient, cluster: EmbeddedCluster, kubectl: Kubectl,
    recorder: type, tmp_path: Path,
) -> None:  # fmt: skip
    client, begun, may_end = Client(http, "v1"), threading.Event(), threading.Event()

    def start(*_: object, **__: object) -> None:
        begun.set()
        assert may_end.wait(20)

    recorder.terminate_start = start  # type: ignore[attr-defined]
    driver = vnfs.Driver("mgmt-recorder", "Scripts/recorder.py", DRIVER.encode(), tuple(EVENTS))
    path = instantiate(client, cluster, tmp_path, driver)
    request = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": grace}
    operation = client.begin("POST", f"{path}/terminate", request)
    assert begun.wait(20)
    client.call("POST", f"{operation}/cancel", {"cancelMode": "GRACEFUL"}, 202)
    may_end.set()

    ended = client.settled(operation)

    assert ended["operationState"] == "FAILED_TEMP"
    assert "by a request to cancel" in ended["error"]["detail"]
    assert len(kubectl.pods()) == 2


@pytest.mark.usefixtures("recorder")
def test_a_driver_whose_file_is_not_the_packages_copy_is_refused(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v1")
    other = vnfs.Driver(
        "mgmt-recorder", "Scripts/recorder.py", b"# another", ("modify_information_end",)
    )
    path = instantiate(client, cluster, tmp_path, other)
    operation = client.do("PATCH", path, {"metadata": {"a": "b"}}, "FAILED_TEMP")
    assert "is not the file of the driver mgmt-recorder" in operation["error"]["detail"]


def test_the_error_names_a_driver_that_is_not_installed(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v1")
    absent = vnfs.Driver("mgmt-absent", "Scripts/absent.py", b"", ("modify_information_start",))
    path = instantiate(client, cluster, tmp_path, absent)
    operation = client.do("PATCH", path, {"metadata": {"a": "b"}}, "FAILED_TEMP")
    assert "mgmt-absent: nothing of this name is installed" in operation["error"]["detail"]


@pytest.mark.parametrize(
    ("name", "more", "is_run"),
    [
        (vnfs.OURS, b"", False),
        ("of-another-name", b"", False),
        (vnfs.OURS, b"\n", True),
    ],
)
def test_a_script_is_run_unless_it_is_our_own_one_byte_for_byte(
    http: TestClient,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    more: bytes,
    is_run: bool,
) -> None:
    processes = Mock(wraps=v2.Process)
    monkeypatch.setattr(v2, "Process", processes)
    client, ours = Client(http, "v2"), vnfs.ours("v2")
    driver = replace(ours, name=name, content=ours.content + more)
    path = instantiate(client, cluster, tmp_path, driver)
    new, vnfd_id = vnfs.package(tmp_path, "2.0", driver)
    client.onboard(new)

    client.do("PATCH", path, vnfs.modification(vnfd_id))

    assert processes.called is is_run
    assert kubectl.data("ConfigMap", "settings") == {"level": "2.0"}
    assert client.call("GET", path)["vnfdId"] == vnfd_id
