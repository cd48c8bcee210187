"""A new version for every object, and no trace of that afterwards."""

from __future__ import annotations

import pytest

from container_update.cluster.execution.fence import TAKEN_OVER, Fence
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from tests.unit.fakes import FakeCluster, config_map

OWNER = {"apiVersion": "v1", "kind": "Secret", "name": "journal", "uid": "u-1"}
OTHERS = {"apiVersion": "v1", "kind": "Deployment", "name": "d", "uid": "u-2"}
A, B = (ObjectKey("", "ConfigMap", "ns", name) for name in "ab")
GONE = ObjectKey("", "ConfigMap", "ns", "gone")


def owned(name: str, *owners: Json) -> Json:
    body = config_map(name, {"k": "v"})
    body["metadata"]["ownerReferences"] = list(owners)
    return body


def test_every_object_that_is_there_gets_another_version_and_is_as_before_at_the_end() -> None:
    cluster = FakeCluster(config_map("a", {"k": "v"}), config_map("b", {"k": "v"}))
    before = {key: dict(body["metadata"]) for key, body in cluster.objects.items()}
    fence = Fence(cluster, 2)
    fence.raise_([A, B, GONE], "run-2")
    for key in (A, B):
        metadata = cluster.objects[key]["metadata"]
        assert metadata["labels"] == {TAKEN_OVER: "run-2"}
        assert metadata["resourceVersion"] != before[key]["resourceVersion"]
    fence.lower([A, B, GONE], OWNER, [])
    for key in (A, B):
        assert {**cluster.objects[key]["metadata"], "resourceVersion": ""} == {
            **before[key],
            "resourceVersion": "",
        }


def test_what_is_to_stay_belongs_to_the_journal_no_more_and_to_others_as_before() -> None:
    cluster = FakeCluster(owned("a", OWNER, OTHERS), owned("b", OWNER))
    Fence(cluster, 2).lower([A, B], OWNER, [A, B])
    assert cluster.objects[A]["metadata"]["ownerReferences"] == [OTHERS]
    assert "ownerReferences" not in cluster.objects[B]["metadata"]


def test_what_a_late_request_created_goes_with_the_journal() -> None:
    cluster = FakeCluster(owned("a", OWNER))
    Fence(cluster, 2).lower([A], OWNER, [])
    assert cluster.objects[A]["metadata"]["ownerReferences"] == [OWNER]


def test_an_object_that_others_write_at_the_same_time_is_read_again() -> None:
    cluster = FakeCluster(config_map("a", {"k": "v"}))
    conflicts = [ClusterError("conflict", status=409)] * 3

    def conflict(verb: str, _: ObjectKey) -> None:
        if verb == "replace" and conflicts:
            raise conflicts.pop()

    cluster.hooks.append(conflict)
    Fence(cluster, 2).raise_([A], "run-2")
    assert TAKEN_OVER in cluster.objects[A]["metadata"]["labels"]


def test_what_this_account_may_not_update_is_named_and_does_not_stop_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeCluster(config_map("a", {"k": "v"}), config_map("b", {"k": "v"}))

    def forbid(verb: str, key: ObjectKey) -> None:
        if (verb, key) == ("replace", A):
            raise ClusterError("forbidden", status=403)

    cluster.hooks.append(forbid)
    Fence(cluster, 2).raise_([A, B], "run-2")
    assert TAKEN_OVER in cluster.objects[B]["metadata"]["labels"]
    assert "late requests for ConfigMap ns/a are not kept out" in caplog.text


def test_a_server_that_refuses_stops_the_run() -> None:
    cluster = FakeCluster(config_map("a", {"k": "v"}))

    def break_down(verb: str, _: ObjectKey) -> None:
        if verb == "replace":
            raise ClusterError("broken", status=500)

    cluster.hooks.append(break_down)
    with pytest.raises(ClusterError, match="broken"):
        Fence(cluster, 2).raise_([A], "run-2")
