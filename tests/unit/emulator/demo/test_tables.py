# SPDX-License-Identifier: Apache-2.0
"""Live objects as tables: columns, counts, ages, and Secrets as sizes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from container_update.emulator.demo import tables
from container_update.model.objects import Json
from tests.unit import build
from tests.unit.build import config_map, container, live, pod, secret

NOW = datetime(2026, 1, 10, tzinfo=timezone.utc)
TWO = "{initContainers: [{name: i, image: init:1}], containers: [{name: c, image: app:1}]}"


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_columns_are_as_wide_as_their_widest_cell_without_spaces_at_the_end() -> None:
    text = tables.table(("A", "B", "C"), [("wide cell", "x", "1"), ("y", "longer", "")])
    assert text == "A           B        C\nwide cell   x        1\ny           longer"


def test_configmaps_show_their_text_and_secrets_only_sizes() -> None:
    text = tables.config(
        [
            live(config_map("cm", {"b": "two\nlines\n", "a": "1"})),
            live(secret("s", {"p": "canary-word", "é": "é"})),
        ]
    )
    assert text.splitlines() == [
        "NAME   KIND        CONTENT",
        "cm     ConfigMap   a: 1, b: two / lines",
        "s      Secret      p: 11 bytes, é: 2 bytes",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("x" * 60, "x" * 60, id="sixty letters"),
        pytest.param("x" * 61, "x" * 57 + "...", id="more than sixty"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_long_text_is_cut(value: str, shown: str) -> None:
    line = tables.config([live(config_map("cm", {"k": value}))]).splitlines()[1]
    assert line == f"cm     ConfigMap   k: {shown}".rstrip()


def test_binary_data_are_shown_without_failing() -> None:
    body = live(config_map("cm", {}, binaryData={"k": "/w=="}))
    assert r"k: \xff" in tables.config([body])


def running_pod() -> Json:
    statuses = [container("c", restarts=2, ready=True), container("d", restarts=1, ready=False)]
    body = pod("p", containers=statuses)
    spec = "containers: [{name: c, image: app:1}, {name: d, image: b:2}]"
    body["spec"] = build.workload("Pod", spec)["spec"]
    body["metadata"]["creationTimestamp"] = "2026-01-09T23:58:00Z"
    return body


def test_pods_have_the_columns_that_people_know() -> None:
    assert rows(tables.pods([running_pod()], NOW)) == [
        ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IMAGES"],
        ["p", "1/2", "Running", "3", "2m", "app:1,b:2"],
    ]


def test_a_pod_on_its_way_out_says_so() -> None:
    body = running_pod()
    body["metadata"]["deletionTimestamp"] = "2026-01-09T00:00:00Z"
    assert rows(tables.pods([body], NOW))[1][2] == "Terminating"


def test_a_pod_without_a_status_is_pending() -> None:
    body = live(build.workload("Pod", TWO, "p"))
    assert rows(tables.pods([body], NOW))[1] == [
        "p",
        "0/1",
        "Pending",
        "0",
        "<unknown>",
        "init:1,app:1",
    ]


WORKLOADS = {
    "a Deployment": ("Deployment", {"replicas": 3}, {"readyReplicas": 2}, "2/3"),
    "a StatefulSet of none": ("StatefulSet", {"replicas": 0}, {}, "0/0"),
    "a DaemonSet": ("DaemonSet", {}, {"numberReady": 1, "desiredNumberScheduled": 2}, "1/2"),
    "a ReplicaSet without a status": ("ReplicaSet", {"replicas": 4}, None, "0/4"),
}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "ready"), WORKLOADS.values(), ids=WORKLOADS.keys()
)
def test_workloads_have_the_columns_that_people_know(
    kind: str, spec: Json, status: Json | None, ready: str
) -> None:
    body = live(build.workload(kind, TWO, "name", **spec), creationTimestamp="2026-01-08T00:00:00Z")
    body["status"] = status
    header, row = tables.workloads([body], NOW).splitlines()
    assert header.split() == ["KIND", "NAME", "READY", "AGE", "IMAGES"]
    assert row.split() == [kind, "name", ready, "2d", "init:1,app:1"]


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(minutes=119, seconds=59), "119m"),
        (timedelta(hours=2), "2h"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=400), "400d"),
    ],
)
def test_ages_are_in_the_unit_that_says_most(age: timedelta, shown: str) -> None:
    body = running_pod()
    body["metadata"]["creationTimestamp"] = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert rows(tables.pods([body], NOW))[1][4] == shown
