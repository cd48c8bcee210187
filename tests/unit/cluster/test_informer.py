"""The cache of live objects: what lists and watches make of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from container_update.cluster.informer import Informer
from container_update.model.cluster import WatchEvent
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey
from tests.unit.fakes import FakeCluster, pod

PODS = Collection("", "Pod", "ns")


def key_of(name: str) -> ObjectKey:
    return ObjectKey("", "Pod", "ns", name)


def at(version: int, body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}


def started(cluster: FakeCluster) -> Informer:
    informer = Informer(cluster)
    informer.list([PODS])
    informer.watch([PODS])
    until(lambda: PODS in cluster.watches)
    return informer


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.001)


def send(cluster: FakeCluster, kind: str, body: Json) -> None:
    cluster.watches[PODS].put(WatchEvent(kind, body))


def test_a_watch_goes_on_from_the_list_and_its_events_change_what_is_live() -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster) as informer:
        assert cluster.watched_from == [(PODS, "101")]
        send(cluster, "MODIFIED", at(102, pod("p", image="app:2")))
        send(cluster, "ADDED", at(103, pod("q")))
        until(lambda: informer.get(key_of("q")) is not None)
        live = informer.get(key_of("p"))
        assert live is not None
        assert live["spec"]["containers"][0]["image"] == "app:2"
        send(cluster, "DELETED", at(104, pod("q")))
        until(lambda: informer.get(key_of("q")) is None)


def test_an_older_event_does_not_overwrite_what_a_write_returned() -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster) as informer:
        informer.observe(at(200, pod("p", image="app:3")))
        send(cluster, "MODIFIED", at(150, pod("p", image="app:2")))
        send(cluster, "ADDED", at(201, pod("mark")))
        until(lambda: informer.get(key_of("mark")) is not None)
        live = informer.get(key_of("p"))
        assert live is not None
        assert live["spec"]["containers"][0]["image"] == "app:3"


def test_the_deletion_of_a_predecessor_does_not_remove_its_successor() -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster) as informer:
        successor = pod("p")
        successor["metadata"]["uid"] = "uid-successor"
        informer.observe(at(200, successor))
        send(cluster, "DELETED", at(150, pod("p")))
        send(cluster, "ADDED", at(201, pod("mark")))
        until(lambda: informer.get(key_of("mark")) is not None)
        assert informer.get(key_of("p")) is not None


@pytest.mark.parametrize("broken", [True, False], ids=["it breaks", "it ends"])
def test_a_watch_goes_on_where_it_was(broken: bool) -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster):
        send(cluster, "BOOKMARK", {"metadata": {"resourceVersion": "170"}})
        cluster.watches[PODS].put(ClusterError("the connection broke") if broken else None)
        until(lambda: len(cluster.watched_from) == 2)
        assert cluster.watched_from[1] == (PODS, "170")


def test_a_watch_that_is_too_old_lists_again_and_forgets_what_is_gone() -> None:
    cluster = FakeCluster(pod("p"), pod("q"))
    with started(cluster) as informer:
        del cluster.objects[key_of("p")]
        cluster.put(pod("r"))
        cluster.watches[PODS].put(ClusterError("too old", status=410))
        until(lambda: informer.get(key_of("r")) is not None)
        assert informer.get(key_of("p")) is None
        assert informer.get(key_of("q")) is not None
        until(lambda: len(cluster.watched_from) == 2)
        assert cluster.watched_from[1] == (PODS, "103")


def test_a_watch_that_is_forbidden_is_told_to_who_waits() -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster) as informer:
        cluster.watches[PODS].put(ClusterError("watch Pods: forbidden", status=403))

        def told() -> bool:
            try:
                with informer.changed:
                    informer.wait(0.01)
            except ClusterError as error:
                return "forbidden" in str(error)
            return False

        until(told)


def test_pods_belong_to_a_deployment_by_owner_references_alone() -> None:
    def owned(body: Json, uid: str) -> Json:
        owner = {"uid": uid, "controller": True}
        return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}

    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": "d"}}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "x-1", "namespace": "ns", "uid": "rs"},
    }
    informer = Informer(FakeCluster())
    for body in (owned(replica_set, "d"), owned(pod("x-1-a"), "rs"), owned(pod("x-1-b"), "other")):
        informer.observe(body)
    informer.observe(pod("x-1-c"))
    assert [p["metadata"]["name"] for p in informer.pods_of(deployment)] == ["x-1-a"]
