# SPDX-License-Identifier: Apache-2.0
"""The cache of live objects: what lists and watches make of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.cluster.waiting import Waiter
from container_update.model.cluster import Keep, Listing, WatchEvent
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.planning.comparison.live_objects import NAME_ANNOTATION
from container_update.workloads.readiness import Readiness, RolloutState
from tests.unit.fakes import Everything, FakeCluster, config_map, pod

PODS = Collection("", "Pod", "ns")


def key_of(name: str) -> ObjectKey:
    return ObjectKey("", "Pod", "ns", name)


def at(version: int, body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}


def started(cluster: FakeCluster) -> Informer:
    informer = Informer(cluster, Everything())
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


# --- a watch that is silent ---------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def silent() -> Iterator[tuple[FakeCluster, Informer, Clock]]:
    """A watch that has said nothing for 30 seconds."""
    cluster, clock = FakeCluster(pod("p"), pod("q")), Clock()
    with Informer(cluster, Everything(), clock=clock) as informer:
        informer.list([PODS])
        informer.watch([PODS])
        until(lambda: PODS in cluster.watches)
        clock.now = 30
        yield cluster, informer, clock


def lists(cluster: FakeCluster) -> int:
    return cluster.calls.count("list Pod ns/")


def test_a_silent_watch_whose_collection_has_changed_is_begun_again(
    silent: tuple[FakeCluster, Informer, Clock],
) -> None:
    cluster, informer, _ = silent
    del cluster.objects[key_of("p")]
    cluster.put(pod("q", image="app:2"))
    informer.ask_silent([PODS])
    assert informer.get(key_of("p")) is None
    live = informer.get(key_of("q"))
    assert live is not None
    assert live["spec"]["containers"][0]["image"] == "app:2"
    until(lambda: len(cluster.watched_from) == 2)
    assert cluster.watched_from[1] == (PODS, "103")
    send(cluster, "ADDED", at(104, pod("r")))
    send(cluster, "ADDED", at(105, pod("s")))  # the old watch, if it lives, ends with the first
    until(lambda: any(informer.get(key_of(name)) is not None for name in "rs"))


@pytest.mark.parametrize("change", ["modified", "added", "deleted"])
def test_each_change_that_a_watch_did_not_tell_is_noticed(
    silent: tuple[FakeCluster, Informer, Clock], change: str
) -> None:
    cluster, informer, _ = silent
    if change == "deleted":
        del cluster.objects[key_of("p")]
        cluster.version += 1
    else:
        cluster.put(pod("p" if change == "modified" else "new"))
    informer.ask_silent([PODS])
    until(lambda: len(cluster.watched_from) == 2)


def test_a_watch_with_nothing_to_say_goes_on_and_is_asked_for_at_most_twice_a_minute(
    silent: tuple[FakeCluster, Informer, Clock],
) -> None:
    cluster, informer, clock = silent
    before = lists(cluster)
    for second in range(30, 630):
        clock.now = second
        informer.ask_silent([PODS])
    assert lists(cluster) - before == 20
    assert len(cluster.watched_from) == 1


@pytest.mark.parametrize("sign", ["an event", "a bookmark", "its end"])
def test_a_watch_that_shows_a_sign_of_life_is_not_silent(
    silent: tuple[FakeCluster, Informer, Clock], sign: str
) -> None:
    cluster, informer, clock = silent
    if sign == "its end":
        cluster.watches[PODS].put(ClusterError("the connection broke"))
        until(lambda: len(cluster.watched_from) == 2)
    else:
        kind = "MODIFIED" if sign == "an event" else "BOOKMARK"
        send(cluster, kind, at(200, pod("p")))
        cluster.watches[PODS].put(None)  # as a server ends a watch that has gone on for long
        until(lambda: cluster.watched_from[1:] == [(PODS, "200")])
    before, clock.now = lists(cluster), 59
    informer.ask_silent([PODS])
    assert lists(cluster) == before


def test_what_a_write_returned_since_the_list_stays(
    silent: tuple[FakeCluster, Informer, Clock],
) -> None:
    _, informer, _ = silent
    informer.observe(at(900, pod("new")))
    informer.ask_silent([PODS])
    assert informer.get(key_of("new")) is not None


def test_a_list_that_is_refused_does_not_end_the_wait(
    silent: tuple[FakeCluster, Informer, Clock],
) -> None:
    cluster, informer, _ = silent

    def refuse(verb: str, _key: ObjectKey) -> None:
        if verb == "list":
            raise ClusterError("overloaded", status=503)

    cluster.hooks.append(refuse)
    informer.ask_silent([PODS])
    assert len(cluster.watched_from) == 1


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


@pytest.mark.parametrize(
    "end", [None, ClusterError("no event"), ClusterError("too old", status=410)], ids=repr
)
def test_watches_that_do_not_last_are_not_begun_again_without_a_pause(end: Any) -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster):
        for _ in range(100):
            cluster.watches[PODS].put(end)
        until(lambda: len(cluster.watched_from) >= 2)
        assert len(cluster.watched_from) < 50


def test_a_watch_that_is_forbidden_is_told_to_who_waits() -> None:
    cluster = FakeCluster(pod("p"))
    with started(cluster) as informer:
        cluster.watches[PODS].put(ClusterError("watch Pods: forbidden", status=403))

        def told() -> bool:
            try:
                with informer.lock:
                    informer.wait(0.01)
            except ClusterError as error:
                return "forbidden" in str(error)
            return False

        until(told)


def test_who_waits_for_a_workload_is_woken_by_it_and_its_pods_alone() -> None:
    own, other = ObjectKey("", "Pod", "ns", "own"), ObjectKey("", "Pod", "ns", "other")
    cluster = FakeCluster(pod("own"), pod("other"))
    with started(cluster) as informer:
        looks: list[int] = []

        def judge() -> Readiness:
            looks.append(1)
            live = informer.get(own)
            is_done = bool(live and "seen" in live["metadata"])
            return Readiness(RolloutState.DONE if is_done else RolloutState.PROGRESSING)

        waiter = Waiter(informer, grace_period=600.0)
        waiting = threading.Thread(
            target=lambda: waiter.until_done(judge, time.monotonic() + 600, [], key=own)
        )
        waiting.start()
        until(lambda: bool(looks))
        for number in range(50):
            event = cluster.put({**pod("other"), "number": number})
            send(cluster, "MODIFIED", event)
        until(lambda: (informer.get(other) or {}).get("number") == 49)
        assert len(looks) <= 2  # again after its first report
        done = cluster.put({**pod("own"), "metadata": {**pod("own")["metadata"], "seen": True}})
        send(cluster, "MODIFIED", done)
        waiting.join(30)
        assert not waiting.is_alive()


def controlled(name: str, uid: str, controller: str) -> Json:
    """A pod of a StatefulSet, which may have released it."""
    reference = {"kind": "StatefulSet", "name": "store", "uid": controller, "controller": True}
    metadata = {"name": name, "namespace": "ns", "uid": uid}
    metadata |= {"ownerReferences": [reference] if controller else []}
    return {**pod(name), "metadata": metadata}


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_a_pod_that_its_controller_has_released_is_forgotten(event: str) -> None:
    """A label of it was changed: the event is DELETED where a selector no longer selects it."""
    store = ObjectKey("apps", "StatefulSet", "ns", "store")
    live = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "store", "namespace": "ns", "uid": "s"},
    }
    cluster = FakeCluster(live, controlled("store-0", "p", "s"))
    with Informer(cluster, Scope([store])) as informer:
        informer.list([PODS, Collection.of(store)])
        assert [body["metadata"]["name"] for body in informer.pods_of(live)] == ["store-0"]
        informer.watch([PODS])
        until(lambda: PODS in cluster.watches)
        released = controlled("store-0", "p", "")
        send(cluster, event, at(200, released))
        until(lambda: informer.pods_of(live) == ())


DEPLOYMENTS = Collection("apps", "Deployment", "ns")
REPLICA_SETS = Collection("apps", "ReplicaSet", "ns")


class LateDeployments(FakeCluster):
    """Answers for the Deployments after all that was asked for at the same time."""

    others = 0

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        if collection.kind == "Deployment":
            until(lambda: self.others == 2)
        listing = super().list(collection, keep)
        self.others += 1
        return listing


@pytest.mark.parametrize(
    ("name", "app", "lists"),
    [
        pytest.param("web", "web", 3, id="as its manifest says"),
        pytest.param("web", "other", 5, id="with another selector"),
        pytest.param("web-b", "web", 3, id="another one of almost its name stands in for it"),
        pytest.param("other", "web", 5, id="another object stands in for it"),
    ],
)
def test_pods_are_read_at_once_with_what_controls_them_and_again_where_that_was_too_early(
    name: str, app: str, lists: int
) -> None:
    key = ObjectKey("apps", "Deployment", "ns", "web")
    live = deployment(name, app)
    replica_set = owned(ObjectKey("apps", "ReplicaSet", "ns", f"{name}-1"), "rs", live, app)
    its_pod = owned(key_of(f"{name}-1-x"), "p", replica_set, app)
    cluster, scope = LateDeployments(live, replica_set, its_pod), Scope([key])
    scope.include((), [(key, deployment("web", "web"))])
    with Informer(cluster, scope) as informer:
        informer.list([PODS, REPLICA_SETS, DEPLOYMENTS])
        assert [body["metadata"]["name"] for body in informer.pods_of(live)] == [f"{name}-1-x"]
    assert len(cluster.calls) == lists


def deployment(name: str, app: str) -> Json:
    metadata = {"name": name, "namespace": "ns", "uid": "d", "resourceVersion": "1"}
    annotations = {"annotations": {NAME_ANNOTATION: "web"}} if name != "web" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata, **annotations},
        "spec": {"selector": {"matchLabels": {"app": app}}},
    }


def owned(key: ObjectKey, uid: str, owner: Json, app: str) -> Json:
    reference = {name: owner["metadata"][name] for name in ("name", "uid")}
    return {
        "apiVersion": "apps/v1" if key.group else "v1",
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": "ns",
            "uid": uid,
            "resourceVersion": "1",
            "labels": {"app": app},
            "ownerReferences": [{"kind": owner["kind"], "controller": True, **reference}],
        },
        "spec": {"containers": []},
    }


@pytest.mark.parametrize(("others", "lists"), [(500, 1), (501, 2)])
def test_many_pods_of_others_are_not_read_to_the_end_where_one_is_named(
    others: int, lists: int
) -> None:
    """They are read in parts then, and watched as a whole from the first of these lists."""
    cluster = FakeCluster(*(pod(f"other-{number}") for number in range(others)), pod("p"))
    with Informer(cluster, Scope([key_of("p")])) as informer:
        informer.list([PODS])
        assert list(informer.live) == [key_of("p")]
        assert len(cluster.calls) == lists
        informer.watch([PODS])
        until(lambda: cluster.watched_from == [(PODS, str(cluster.version))])
        send(cluster, "MODIFIED", at(9999, pod("p", image="app:2")))
        until(lambda: informer.live[key_of("p")]["metadata"]["resourceVersion"] == "9999")


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
    informer = Informer(FakeCluster(), Everything())
    for body in (owned(replica_set, "d"), owned(pod("x-1-a"), "rs"), owned(pod("x-1-b"), "other")):
        informer.observe(body)
    informer.observe(pod("x-1-c"))
    assert [p["metadata"]["name"] for p in informer.pods_of(deployment)] == ["x-1-a"]


# --- what changed since it was listed -----------------------------------------------------------

DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "ns", "uid": "uid-d"},
    "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "a:1"}]}}},
    "status": {"readyReplicas": 1},
}
CONFIG = config_map("cm", {"a": "1"})
KEYS = tuple(ObjectKey.of(body) for body in (DEPLOYMENT, CONFIG, config_map("new", {})))


def listed(cluster: FakeCluster) -> Informer:
    informer = Informer(cluster, Everything())
    informer.list({Collection.of(key) for key in KEYS})
    return informer


def with_spec(**changes: Any) -> Json:
    return {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], **changes}}


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        (with_spec(template={}), ["d"]),
        (with_spec(paused=True), ["d"]),
        (with_spec(replicas=5), []),
        ({**DEPLOYMENT, "status": {}}, []),
        ({**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "labels": {"a": "b"}}}, []),
        ({**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "uid": "uid-other"}}, ["d"]),
        ({**CONFIG, "data": {"a": "2"}}, ["cm"]),
        ({**CONFIG, "immutable": True}, ["cm"]),
        (config_map("new", {}), ["new"]),
        (config_map("of-nobody", {}), []),
    ],
)
def test_what_somebody_else_decided_about_an_object_is_a_change(
    written: Json, changed: list[str]
) -> None:
    cluster = FakeCluster(DEPLOYMENT, CONFIG)
    known = cluster.get(ObjectKey.of(written))
    informer = listed(cluster)
    uid = {"uid": known["metadata"]["uid"]} if known and "uid" not in written["metadata"] else {}
    cluster.put({**written, "metadata": {**written["metadata"], **uid}})
    assert [key.name for key in informer.changed_since_listed(KEYS)] == changed


def test_what_was_deleted_has_changed() -> None:
    cluster = FakeCluster(DEPLOYMENT, CONFIG)
    informer = listed(cluster)
    del cluster.objects[KEYS[0]]
    assert informer.changed_since_listed(KEYS) == KEYS[:1]


def test_what_was_never_listed_is_not_asked_for() -> None:
    cluster = FakeCluster(DEPLOYMENT, CONFIG)
    assert Informer(cluster, Everything()).changed_since_listed(KEYS) == ()
    assert cluster.calls == []
