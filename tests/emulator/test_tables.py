# SPDX-License-Identifier: Apache-2.0
"""What ``kubectl get`` shows."""

from typing import Any

import pytest

from container_update.emulator.kubernetes import tables
from container_update.emulator.kubernetes.tables import columns, pods, texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (200000, "2d7h"),
        (691200, "8d"),
        (31536000, "365d"),
        (63072000, "2y"),
        (70000000, "2y80d"),
        (252288000, "8y"),
    ],
)
def test_an_age_has_fewer_digits_the_older_it_is(seconds: int, text: str) -> None:
    assert texts.duration(seconds) == text


def pod(phase: str, *states: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a pod whose containers are in the given states."""
    statuses = [
        {"name": f"c{number}", "ready": "running" in state, "restartCount": 0, "state": state}
        for number, state in enumerate(states)
    ]
    containers = [{"name": entry["name"]} for entry in statuses] or [{"name": "c0"}]
    metadata = {"name": "p", "creationTimestamp": "2020-01-01T00:00:00Z"}
    if more.pop("deleted", False):
        metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return {
        "metadata": metadata,
        "spec": {"containers": containers},
        "status": {"phase": phase, "containerStatuses": statuses} | more,
    }


RUNNING = {"running": {"startedAt": "2020-01-01T00:00:00Z"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (pod("Pending"), "Pending"),
        (pod("Pending", {"waiting": {"reason": "ContainerCreating"}}), "ContainerCreating"),
        (pod("Pending", {"waiting": {"reason": "ImagePullBackOff"}}), "ImagePullBackOff"),
        (pod("Running", RUNNING, {"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (pod("Running", RUNNING), "Running"),
        (pod("Running", RUNNING, DONE), "NotReady"),
        (pod("Succeeded", DONE), "Completed"),
        (pod("Failed", {"terminated": {"exitCode": 3}}), "ExitCode:3"),
        (pod("Failed", {"terminated": {"exitCode": 0, "signal": 9}}), "Signal:9"),
        (pod("Failed", {"terminated": {"exitCode": 1, "reason": "Error"}}), "Error"),
        (pod("Failed", reason="Evicted"), "Evicted"),
        (pod("Running", RUNNING, deleted=True), "Terminating"),
    ],
)
def test_a_pods_status_is_one_telling_word(body: dict[str, Any], word: str) -> None:
    assert pods.status_text(body) == word


@pytest.mark.parametrize(
    ("states", "word"),
    [
        ([{"waiting": {"reason": "PodInitializing"}}], "Init:0/2"),
        ([{"running": {}}], "Init:0/2"),
        ([DONE, {"running": {}}], "Init:1/2"),
        ([DONE, {"terminated": {"exitCode": 2}}], "Init:ExitCode:2"),
        ([{"waiting": {"reason": "ImagePullBackOff"}}], "Init:ImagePullBackOff"),
        ([DONE, DONE], "Running"),
    ],
)
def test_init_containers_are_counted_while_they_run(states: list[Any], word: str) -> None:
    body = pod("Running", RUNNING)
    body["spec"]["initContainers"] = [{"name": "i0"}, {"name": "i1"}]
    body["status"]["initContainerStatuses"] = [
        {"name": f"i{number}", "state": state} for number, state in enumerate(states)
    ]
    assert pods.status_text(body) == word


def test_a_restarted_pod_says_how_often_and_when() -> None:
    body = pod("Running", RUNNING)
    body["status"]["containerStatuses"][0] |= {
        "restartCount": 2,
        "lastState": {"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:00Z"}},
    }
    ready, word, restarts, *_ = pods.cells(body)
    assert (ready, word) == ("1/1", "Running")
    assert restarts.startswith("2 (")
    assert restarts.endswith(" ago)")


OLD = "2000-01-01T00:00:00Z"
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}}


def named(**body: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", "creationTimestamp": OLD}, **body}


@pytest.mark.parametrize(
    ("resource", "body", "cells"),
    [
        ("configmaps", named(data={"a": ""}, binaryData={"b": ""}), {"Name": "n", "Data": 2}),
        ("secrets", named(type="t", data={"a": ""}), {"Type": "t", "Data": 1}),
        (
            "services",
            named(
                spec={
                    "type": "NodePort",
                    "clusterIP": "10.96.0.1",
                    "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53}],
                    "selector": {"app": "x"},
                }
            ),
            {"Port(s)": "80:30001/TCP,53/TCP", "External-IP": "<none>", "Selector": "app=x"},
        ),
        (
            "services",
            named(spec={"type": "LoadBalancer", "ports": []}),
            {"External-IP": "<pending>", "Cluster-IP": "<none>"},
        ),
        (
            "jobs",
            named(
                spec={"completions": 2, "template": TEMPLATE},
                status={
                    "succeeded": 2,
                    "startTime": OLD,
                    "completionTime": "2000-01-01T00:00:05Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            ),
            {"Status": "Complete", "Completions": "2/2", "Duration": "5s", "Images": "x:1,y:2"},
        ),
        (
            "cronjobs",
            named(spec={"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}),
            {"Schedule": "@daily", "Suspend": "False", "Active": 0, "Last Schedule": "<none>"},
        ),
        (
            "nodes",
            named(
                spec={"unschedulable": True},
                status={"conditions": [{"type": "Ready", "status": "True"}]},
            ),
            {"Status": "Ready,SchedulingDisabled", "Roles": "<none>"},
        ),
        (
            "poddisruptionbudgets",
            named(spec={"minAvailable": 2}, status={"disruptionsAllowed": 1}),
            {"Min Available": "2", "Max Unavailable": "N/A", "Allowed Disruptions": 1},
        ),
        (
            "endpointslices",
            named(
                addressType="IPv4",
                ports=[{"port": 80}],
                endpoints=[{"addresses": [f"10.0.0.{number}"]} for number in range(5)],
            ),
            {"Ports": "80", "Endpoints": "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more..."},
        ),
        (
            "events",
            named(
                type="Warning",
                reason="BackOff",
                message="again\n",
                lastTimestamp=OLD,
                involvedObject={"kind": "Pod", "name": "p"},
            ),
            {"Type": "Warning", "Object": "pod/p", "Message": "again", "Count": 1, "Name": "n"},
        ),
        ("leases", named(spec={"holderIdentity": "me"}), {"Holder": "me"}),
        ("roles", named(), {"Name": "n"}),
    ],
)
def test_a_kind_has_its_own_columns(
    resource: str, body: dict[str, Any], cells: dict[str, Any]
) -> None:
    shown = row(resource, body)
    assert {key: shown[key] for key in cells} == cells


def row(resource: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of an object by column."""
    table = tables.table(resource, [body], {})
    heads = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(heads, table["rows"][0]["cells"], strict=True))


def test_only_the_count_and_other_details_of_events_are_for_the_wide_output() -> None:
    definitions = columns.of("events").definitions()
    assert [entry["name"] for entry in definitions if entry["priority"] == 0] == [
        "Last Seen", "Type", "Reason", "Object", "Message",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("include", "carried"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")],
)
def test_a_row_carries_as_much_of_its_object_as_asked_for(
    include: str, carried: str | None
) -> None:
    body = named(kind="ConfigMap")
    (first,) = tables.table("configmaps", [body], {}, include=include)["rows"]
    assert first.get("object", {}).get("kind") == carried
