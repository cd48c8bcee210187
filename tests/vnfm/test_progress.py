# SPDX-License-Identifier: Apache-2.0
"""The progress of an operation: what each step changes, what runs now, how much is done."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp.web import StreamResponse
from fastapi.testclient import TestClient

from container_update import Options, Plan, ScriptStep, StepResult
from container_update.emulator.faults import Fault, FaultedRequest, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import Action, ObjectKey, RestartStep, StepState, VduChange, build
from tests.internals.service import Service, Settings, Steps
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.clouds import ROLLING, Cloud, Sample, instantiated
from tests.vnfm.conftest import SAMPLES
from tests.vnfm.test_api import broken
from tests.vnfm.waiting import until

Json = dict[str, Any]
WAITS = """
import os, time
for _ in range(3000):
    if os.path.exists({release!r}):
        break
    time.sleep(0.01)
print("ready")
"""
IMAGES = "registry.example/web:1.0", "registry.example/web:2.0"


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=30, undo_timeout=30, grace_period=1, drain_seconds=0)


def progress_of(client: Client, operation: Json) -> Json:
    progress: Json = client.call("GET", f"{operation['_links']['self']['href']}/progress")
    return progress


# --- what it says -------------------------------------------------------------------------------


def test_each_step_has_what_it_changes(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    progress = progress_of(client, client.do("PATCH", path, vnfs.modification(new)))
    steps = {step["object"]: step for step in progress["steps"]}
    assert steps["ConfigMap default/settings"]["diff"] == [
        "@@ -1 +1 @@ level",
        "-1.0",
        "+2.0",
    ]
    assert steps["Deployment default/front"]["diff"] == [
        "@@ container web @@",
        f"-image: {IMAGES[0]}",
        f"+image: {IMAGES[1]}",
    ]
    assert (progress["done"], progress["total"]) == (2, 2)


def test_a_step_tells_what_the_server_said_in_whatever_characters(
    database: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none", database_url=database)
    refused = answer(422, "no\0 way")

    async def refused_in_earnest(faulted: FaultedRequest) -> StreamResponse:
        is_asked = "dryRun" in faulted.request.query
        return await (faulted.handler(faulted.request) if is_asked else refused(faulted))

    with TestClient(Service(settings, Options()).app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        path, new = vnfs.launched(client, cluster, tmp_path)
        cluster.middlewares.append(
            Faults(Fault(refused_in_earnest, path="*/deployments/*", times=9))
        )
        change = {"vnfdId": new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
        failed = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")
        (step,) = (s for s in progress_of(client, failed)["steps"] if s["action"] == "roll")
    assert step["state"] == "failed"
    assert step["message"].endswith("no\\x00 way")


def test_of_a_failed_operation_no_undone_step_is_done_and_the_one_that_failed_is_known(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, new = vnfs.launched(client, cluster, tmp_path)
    broken(cluster, IMAGES[1])
    failed = client.do("PATCH", path, vnfs.modification(new), "FAILED_TEMP")
    progress = progress_of(client, failed)
    assert {step["state"] for step in progress["steps"]} == {"undone"}
    assert (progress["done"], progress["total"]) == (0, 2)
    (failing,) = (step for step in progress["steps"] if step["problem"])
    assert failing["object"].startswith("Deployment ")
    assert IMAGES[1] in failing["problem"]


# --- coordination scripts while they run --------------------------------------------------------

SERVER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Held:
    """A script that waits until it is released."""

    release: Path

    @property
    def text(self) -> str:
        return WAITS.format(release=str(self.release))

    def seen(self, client: Client, operation: str, title: str) -> None:
        """Check that the progress shows it while it runs, and when it has ended.

        :param title: what it is called, with the word SERVER in the place of a server's id.
        """

        def step() -> Json | None:
            steps = client.call("GET", f"{operation}/progress")["steps"]
            named = ({**step, "object": SERVER_ID.sub("SERVER", step["object"])} for step in steps)
            runs = (step for step in named if step["action"] == "run")
            return next((step for step in runs if step["state"] != "planned"), None)

        running = until(step, "the script runs")
        assert running is not None
        assert (running["object"], running["state"]) == (title, "running")
        self.release.touch()
        assert client.settled(operation)["operationState"] == "COMPLETED"
        ended = step()
        assert ended is not None
        assert (ended["object"], ended["state"], ended["message"]) == (title, "done", "ready")
        assert ended["seconds"] > 0


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    script = Held(tmp_path / "release")
    yield script
    script.release.touch()


def with_script(package: Path, name: str, text: str) -> None:
    """Put a script in the place of a package's own one."""
    (package / "Scripts" / name).write_text(text)
    shutil.rmtree(package / "TOSCA-Metadata")
    build.write_metadata(package)


def blue_green(client: Client, cluster: EmbeddedCluster, folder: Path, held: Held) -> str:
    """Instantiate the sample whose script of the new VNF waits; its path."""
    name = "04-blue-green"
    shutil.copytree(SAMPLES / name, folder / name)
    with_script(folder / name / "after", "update_service.py", held.text)
    old, _ = (
        client.onboard(Path(shutil.make_archive(str(folder / side), "zip", folder / name / side)))
        for side in ("before", "after")
    )
    path = client.create(old)
    body = {**vnfs.instantiation(client.vims(cluster)), "flavourId": "default"}
    del body["additionalParams"]["lcm-kubernetes-def-files"]
    client.do("POST", f"{path}/instantiate", body)
    return path


def change_request() -> Json:
    """Return the sample's request, without the classes of its scripts."""
    request: Json = json.loads((SAMPLES / "04-blue-green" / "request.json").read_text())
    params = request["additionalParams"]
    kept = {name: value for name, value in params.items() if "-class" not in name}
    return {**request, "additionalParams": kept}


def test_a_script_is_seen_while_it_runs_for_pods(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path, held: Held
) -> None:
    client = Client(http, "v2")
    path = blue_green(client, cluster, tmp_path, held)
    operation = client.begin("POST", f"{path}/change_vnfpkg", change_request())
    held.seen(client, operation, "Script Scripts/update_service.py (new VNF, VDU1)")


def test_a_script_is_seen_while_it_runs_for_servers(
    http: TestClient, cloud: Cloud, tmp_path: Path, held: Held
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    sample.zipped("after")
    with_script(tmp_path / ROLLING / "after", "check_vnfc.py", held.text)
    vnf = instantiated(client, sample, cloud.vims())
    held.seen(client, vnf.begin_change(), "Script Scripts/check_vnfc.py (new VNF, VDU1, SERVER)")


def test_a_script_is_seen_while_a_modification_runs_it(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path, held: Held
) -> None:
    """In v1 the driver runs in this process, in v2 in another one."""
    path, _ = vnfs.launched(client, cluster, tmp_path)
    script = "Scripts/held.py"
    manifests = dict(
        zip(
            vnfs.DEF_FILES,
            (vnfs.CONFIG.format(version="2.0"), vnfs.DEPLOYMENT.format(version="2.0")),
            strict=True,
        )
    )
    package, new = vnfs.package(
        tmp_path, "2.0", vnfs.ours(client.api), {**manifests, script: held.text}
    )
    client.onboard(package)
    metadata = {
        "upgrade_type": "Blue-Green",
        "lcm-operation-coordinate-new-vnf": script,
        "vdu_params": json.dumps([{"vdu_id": "VDU1"}]),
    }
    operation = client.begin("PATCH", path, {"vnfdId": new, "metadata": metadata})
    held.seen(client, operation, f"Script {script} (new VNF, VDU1)")


# --- how it is stored ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """An operation's steps in the database."""

    steps: Steps
    """Of a try."""
    rollback: Steps
    client: Client
    path: str

    def states(self) -> list[tuple[str, str]]:
        """Return each step with its state."""
        steps = self.client.call("GET", f"{self.path}/progress")["steps"]
        return [(step["object"], step["state"]) for step in steps]


@pytest.fixture
def stored(tmp_path: Path, options: Options) -> Iterator[Stored]:
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), options)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        path = client.create(client.onboard(vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]))
        operation = client.do("PATCH", path, {"vnfInstanceName": "one"})
        steps = [
            Steps(service.context.database, operation["id"], remember=is_try)
            for is_try in (True, False)
        ]
        yield Stored(*steps, client, operation["_links"]["self"]["href"])


def step(name: str) -> RestartStep:
    return RestartStep(ObjectKey("", "Pod", "cnf", name), Action.ROLL, None)


def planned(*names: str) -> Plan:
    return Plan("cnf", None, tuple(map(step, names)))


def ended(name: str, state: StepState) -> StepResult:
    return StepResult(step(name), state)


def test_a_plan_with_nothing_left_to_do_keeps_what_is_done(stored: Stored) -> None:
    stored.steps(planned("Pod cnf/a", "b", "c"))
    for name, state in (("a", StepState.DONE), ("b", StepState.UNDONE)):
        stored.steps(ended(name, state))
    stored.steps(planned())
    assert stored.states() == [("Pod cnf/a", "done")]
    stored.steps(planned("d"))
    assert stored.states() == [("Pod cnf/d", "planned")], "a plan with steps is a new try"


def test_a_rollback_with_nothing_left_to_undo_keeps_what_was_undone(stored: Stored) -> None:
    stored.steps(planned("Pod cnf/a", "b"))
    stored.steps(ended("a", StepState.UNDONE))
    stored.rollback(planned())
    assert stored.states() == [("Pod cnf/a", "undone")]


def test_a_script_that_ran_when_its_service_died_runs_no_more(stored: Stored) -> None:
    script = ScriptStep.of("new", "Scripts/new.py", VduChange("VDU1", "old", "new"))
    stored.steps(planned("a"))
    stored.steps(step("a"))
    stored.steps(script)
    stored.steps.stop_scripts()
    assert stored.states() == [("Pod cnf/a", "running"), (str(script.key), "stopped")]
