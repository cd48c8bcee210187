# SPDX-License-Identifier: Apache-2.0
"""What a failing pod reports: which pod, which log, which Events; nothing depends on it."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.engine.diagnosis import Diagnostician
from container_update.model.cluster import Keep, Listing
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.outcome import Diagnosis
from container_update.workloads.readiness import Baseline
from tests.unit.fakes import Everything, FakeCluster, pod

KEY = ObjectKey("apps", "Deployment", "ns", "web")
CRASHED = {"terminated": {"exitCode": 1}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}
NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff"}}
RUNNING: Json = {"running": {}}


class Cluster(FakeCluster):
    """A Deployment with pods, their Events and their logs."""

    def __init__(self, *pods: Json) -> None:
        owner = {"controller": True, "kind": "ReplicaSet", "name": "web-1", "uid": "uid-rs"}
        for body in pods:
            body["metadata"]["ownerReferences"] = [owner]
        super().__init__(owned("Deployment", "web"), owned("ReplicaSet", "web-1"), *pods)
        self.events: list[Json] = []
        self.logs = {
            (body["metadata"]["name"], is_previous): [f"line {n}" for n in range(1, 8)]
            for body in pods
            for is_previous in (True, False)
        }

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        if collection.kind != "Event":
            return super().list(collection, keep)
        self._called("list", ObjectKey("", "Event", "ns", collection.fields))
        return Listing(tuple(self.events), "1")

    def diagnose(
        self,
        known: str = "",
        before: Baseline | None = None,
        scope: Scope | None = None,
        **more: Any,
    ) -> Diagnosis | None:
        informer = Informer(self, scope or Everything())
        informer.list(
            {Collection("apps", "Deployment", "ns"), Collection("apps", "ReplicaSet", "ns")}
            | {Collection("", kind, "ns") for kind in ("Pod", "Secret")}
        )
        self.calls.clear()
        asked = Diagnostician(self, informer, **more)
        return asked.diagnose(KEY, before or Baseline(), known)


def owned(kind: str, name: str) -> Json:
    metadata: Json = {"name": name, "namespace": "ns"}
    if kind == "ReplicaSet":
        owner = {"controller": True, "kind": "Deployment", "name": "web", "uid": "uid-web"}
        metadata |= {"uid": "uid-rs", "ownerReferences": [owner]}
    else:
        metadata["uid"] = "uid-web"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {}}


def failing(
    state: Json, last: Json | None = None, name: str = "web-1-a", restarts: int = 0
) -> Json:
    body = pod(name, ready=False, restarts=restarts)
    body["status"]["containerStatuses"][0] |= {"state": state, "lastState": last or {}}
    return body


def event(reason: str, message: str, time: str, count: int | None = 1) -> Json:
    return {"reason": reason, "message": message, "lastTimestamp": time, "count": count}


@pytest.mark.parametrize(
    ("body", "reason", "calls"),
    [
        pytest.param(
            failing(BACK_OFF, CRASHED, restarts=2),
            "CrashLoopBackOff",
            ["log True"],
            id="it crashed: the run before",
        ),
        pytest.param(
            failing(RUNNING, CRASHED, restarts=2),
            "CrashLoopBackOff",
            ["log True"],
            id="it crashed and was just started again: the run before",
        ),
        pytest.param(
            failing(CRASHED, CRASHED, restarts=2),
            "CrashLoopBackOff",
            ["log False"],
            id="it has just crashed: the present run",
        ),
        pytest.param(failing(RUNNING), "NotReady", ["log False"], id="it is not ready"),
        pytest.param(failing(NO_IMAGE), "ImagePullBackOff", [], id="it never ran: no log"),
        pytest.param(
            failing(NO_IMAGE, CRASHED, restarts=1),
            "ImagePullBackOff",
            [],
            id="another image of it ran: no log",
        ),
    ],
)
def test_the_log_is_of_the_run_that_failed(body: Json, reason: str, calls: list[str]) -> None:
    cluster = Cluster(body)
    asked: list[str] = []

    def log(pod: ObjectKey, container: str, *, previous: bool, **_: int) -> str:
        asked.append(f"log {previous}")
        return "text\n"

    cluster.log = log  # type: ignore[method-assign, assignment]
    found = cluster.diagnose()
    assert found is not None
    assert (found.pod.name, found.container, found.reason) == ("web-1-a", "a", reason)
    assert asked == calls
    assert found.log == (("text",) if calls else ())


def test_of_a_log_the_last_lines_are_kept_and_none_too_long() -> None:
    cluster = Cluster(failing(RUNNING))
    cluster.logs["web-1-a", False][-1] = "x" * 1000
    found = cluster.diagnose()
    assert found is not None
    assert found.log == ("line 3", "line 4", "line 5", "line 6", "x" * 400 + "…")


def test_the_newest_events_come_first_and_what_is_known_is_left_out() -> None:
    cluster = Cluster(failing(NO_IMAGE))
    cluster.events = [
        event("Failed", "no such\n image", "2026-01-01T00:00:02Z", 3),
        event("BackOff", "Back-off pulling", "2026-01-01T00:00:09Z"),
        event("Failed", "Error: ErrImagePull", "2026-01-01T00:00:04Z"),
        event("FailedMount", "not yet", "2026-01-01T00:00:01Z", None),
        event("Old", "long ago", "2026-01-01T00:00:00Z"),
    ]
    found = cluster.diagnose(known="pod web-1-a, container a: ImagePullBackOff: Back-off pulling")
    assert found is not None
    assert found.events == (
        "Failed: Error: ErrImagePull",
        "Failed: no such image (3 times)",
        "FailedMount: not yet",
    )
    *_, listed = cluster.calls
    assert listed == "list Event ns/involvedObject.uid=uid-web-1-a,type=Warning"


def test_a_new_pod_in_trouble_is_looked_at_before_all_others() -> None:
    ready, not_ready = pod("web-1-a"), failing(RUNNING, name="web-1-b")
    old, new = failing(NO_IMAGE, name="web-1-c"), failing(NO_IMAGE, name="web-1-d")
    found = Cluster(ready, not_ready, old, new).diagnose(
        before=Baseline(frozenset({"uid-web-1-c"}))
    )
    assert found is not None
    assert found.pod.name == "web-1-d"


def test_without_a_failing_pod_there_is_no_diagnosis_and_no_request() -> None:
    cluster = Cluster(pod("web-1-a"))
    assert cluster.diagnose() is None
    assert cluster.calls == []


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    cluster, released = Cluster(failing(RUNNING)), threading.Event()
    cluster.events = [event("Failed", "no such image", "2026-01-01T00:00:02Z")]

    def stall(verb: str, _: ObjectKey) -> None:
        if verb == "log":
            released.wait()

    cluster.hooks.append(stall)
    found = cluster.diagnose(seconds=0.5)
    released.set()
    assert found is not None
    assert (found.events, found.log) == (("Failed: no such image",), ())


@pytest.mark.parametrize("scope", [None, Scope([KEY])], ids=["all is kept", "of others nothing"])
def test_values_of_secrets_are_not_shown(scope: Scope | None) -> None:
    live, new = "hunter22", "correct horse\nbattery"

    def secret(name: str, value: str) -> Json:
        data = {"password": base64.b64encode(value.encode()).decode(), "port": "ODA="}
        metadata = {"name": name, "namespace": "ns", "uid": name}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}

    cluster = Cluster(failing(RUNNING))
    cluster.put(secret("live", live))
    cluster.logs["web-1-a", False] = [
        f"login with {live} refused at port 80",
        "then with correct horse, battery",
        f"as base64: {base64.b64encode(live.encode()).decode()}",
    ]
    cluster.events = [event("Unhealthy", f"probe: {live}", "2026-01-01T00:00:02Z")]
    found = cluster.diagnose(scope=scope, secrets=[secret("new", new)])
    assert found is not None
    assert found.log == (
        "login with *** refused at port 80",
        "then with ***, ***",
        "as base64: ***",
    )
    assert found.events == ("Unhealthy: probe: ***",)


def test_a_log_is_not_in_the_representation_of_a_result() -> None:
    found = Diagnosis(ObjectKey("", "Pod", "ns", "p"), "a", "Error", log=("confidential",))
    assert "confidential" not in repr(found)
