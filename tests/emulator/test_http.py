# SPDX-License-Identifier: Apache-2.0
"""The HTTP API: authentication, formats, pagination and watches."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import ApiError, EmbeddedCluster, Registry
from container_update.emulator.kubernetes.watches import Watches
from tests.emulator.client import Api, eventually

MAPS = "/api/v1/namespaces/rec/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def make_maps(api: Api, *names: str, **labels: str) -> None:
    for name in names:
        assert api.post(MAPS, {"metadata": {"name": name, "labels": labels}}).status == 201


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


# --- authentication ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz?verbose", "/version"])
def test_health_and_version_need_no_token(api: Api, path: str) -> None:
    assert api.request("GET", path, token="").status == 200
    assert api.request("GET", path, token="wrong").status == 401


def test_only_the_owner_can_read_the_kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig")
    assert path.stat().st_mode & 0o077 == 0


# --- what is there ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/apis/apps/v1/namespaces/rec/nothing", 404),
        ("GET", "/apis/nothing", 404),
        ("GET", "/api/v1/namespaces/rec/nodes", 404),
        ("GET", "/api/v1/configmaps/c", 404),
        ("GET", "/api/v1/namespaces/rec/configmaps/c/status", 404),
        ("GET", "/api/v1/namespaces/rec/configmaps/c/a/b", 404),
        ("POST", f"{MAPS}/c", 405),
        ("PUT", MAPS, 405),
        ("PATCH", MAPS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("HEAD", MAPS, 405),
    ],
)
def test_a_path_or_verb_that_is_not_served(api: Api, method: str, path: str, status: int) -> None:
    body = {} if method in ("POST", "PUT", "PATCH") else None
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = api.request(method, path, body, headers)
    assert answer.status == status
    if status == 404:
        said = answer.body if isinstance(answer.body, str) else answer.body["message"]
        own = path.startswith(("/api/", "/apis/apps"))
        assert said == (
            "the server could not find the requested resource" if own else "404 page not found\n"
        )


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (b"{no json", {}, 400, "BadRequest"),
        (b"[]", {}, 400, "BadRequest"),
        (b"{}", {"Content-Type": "application/cbor"}, 415, "UnsupportedMediaType"),
        (b'{"kind": "Secret"}', {}, 400, "BadRequest"),
        (b"{}", {}, 422, "Invalid"),
        (b'{"metadata": {"name": "a", "resourceVersion": "5"}}', {}, 500, None),
        (b'{"metadata": {"name": "a", "namespace": "other"}}', {}, 400, "BadRequest"),
    ],
)
def test_a_body_that_is_no_object_of_the_kind_is_refused(
    api: Api, body: bytes, headers: dict[str, str], status: int, reason: str | None
) -> None:
    answer = api.request("POST", MAPS, body, headers)
    assert (answer.status, answer.body.get("reason")) == (status, reason)


def test_only_json_is_offered(api: Api) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    assert api.get(MAPS, Accept=protobuf).status == 406
    assert api.get(MAPS, Accept=f"{protobuf},application/json").status == 200


# --- lists ------------------------------------------------------------------------------------


def test_a_list_in_pages_is_the_whole_list(api: Api) -> None:
    make_maps(api, "a", "b", "c", "d")
    everything = names(api.get(MAPS))
    listed: list[str] = []
    token, rest = "", []
    while True:
        response = api.get(f"{MAPS}?limit=2&continue={token}")
        listed += names(response)
        rest.append(response.body["metadata"].get("remainingItemCount"))
        token = response.body["metadata"].get("continue", "")
        if not token:
            break
        assert len(response.body["items"]) == 2
    assert listed == everything == ["a", "b", "c", "d", "kube-root-ca.crt"]
    assert rest == [3, 1, None]


def test_a_page_after_the_history_was_forgotten_is_expired(api: Api) -> None:
    make_maps(api, "a", "b")
    token = api.get(f"{MAPS}?limit=1").body["metadata"]["continue"]
    make_maps(api, "c")
    api.cluster.forget_history()
    answer = api.get(f"{MAPS}?limit=1&continue={token}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


def test_a_continue_token_of_somebody_elses_is_a_bad_request(api: Api) -> None:
    assert api.get(f"{MAPS}?continue=abc").status == 400


def test_a_selected_list_does_not_tell_how_much_remains(api: Api) -> None:
    make_maps(api, "a", "b", app="x")
    response = api.get(f"{MAPS}?limit=1&labelSelector=app%3Dx")
    assert names(response) == ["a"]
    assert "remainingItemCount" not in response.body["metadata"]


def test_a_list_of_all_namespaces_and_one_as_a_table(api: Api) -> None:
    make_maps(api, "a")
    everywhere = api.get("/api/v1/configmaps").body["items"]
    assert {item["metadata"]["namespace"] for item in everywhere} == {
        "default", "kube-system", "rec",
    }  # fmt: skip
    table = api.get(f"{MAPS}/a", Accept=TABLE).body
    assert (table["kind"], table["rows"][0]["cells"][:2]) == ("Table", ["a", 0])


def test_a_collection_is_deleted_as_far_as_selected(api: Api) -> None:
    make_maps(api, "a", "b", app="x")
    make_maps(api, "c")
    deleted = api.delete(f"{MAPS}?labelSelector=app%3Dx")
    assert names(deleted) == ["a", "b"]
    assert names(api.get(MAPS)) == ["c", "kube-root-ca.crt"]


# --- writes -----------------------------------------------------------------------------------


def test_a_dry_run_of_a_kind_that_there_is_not_is_refused(api: Api) -> None:
    answer = api.post(f"{MAPS}?dryRun=Some", {"metadata": {"name": "a"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert api.get(f"{MAPS}/a").status == 404


def test_a_generated_name_is_the_base_and_five_characters(api: Api) -> None:
    metadata = api.post(MAPS, {"metadata": {"generateName": "x-"}}).body["metadata"]
    assert metadata["name"][:2] == "x-"
    assert len(metadata["name"]) == 7
    long = api.post(MAPS, {"metadata": {"generateName": "y" * 80}}).body["metadata"]
    assert len(long["name"]) == 63


def test_nothing_new_gets_into_a_namespace_that_goes(api: Api) -> None:
    held_object = {"metadata": {"name": "held", "finalizers": ["example.org/hold"]}}
    api.post(MAPS, held_object)
    api.delete("/api/v1/namespaces/rec")
    answer = api.post(MAPS, {"metadata": {"name": "late"}})
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert "because it is being terminated" in answer.body["message"]
    api.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
    eventually(
        lambda: api.get("/api/v1/namespaces/rec").status,
        lambda status: status == 404,
        "the namespace goes when its last object has gone",
    )


# --- watches ----------------------------------------------------------------------------------


def take(events: Iterator[Any], count: int) -> list[tuple[str, str]]:
    """Return type and name of the next events, without bookmarks."""
    real = (event for event in events if event["type"] != "BOOKMARK")
    return [(event["type"], event["object"]["metadata"]["name"]) for event in islice(real, count)]


@pytest.mark.parametrize("flag", ["true", "True", "1", ""])
def test_a_flag_says_yes_unless_it_says_no(api: Api, flag: str) -> None:
    assert take(api.watch(MAPS, flag), 1) == [("ADDED", "kube-root-ca.crt")]


@pytest.mark.parametrize("flag", ["false", "False", "0"])
def test_a_flag_that_says_no_is_as_good_as_none(api: Api, flag: str) -> None:
    assert api.get(f"{MAPS}?watch={flag}").body["kind"] == "ConfigMapList"


def test_a_watch_goes_on_from_a_version(api: Api) -> None:
    make_maps(api, "a")
    version = api.get(MAPS).body["metadata"]["resourceVersion"]
    api.patch(f"{MAPS}/a", {"data": {"k": "v"}})
    api.delete(f"{MAPS}/a")
    events = api.watch(f"{MAPS}?resourceVersion={version}")
    assert take(events, 2) == [("MODIFIED", "a"), ("DELETED", "a")]


def test_an_object_that_stops_matching_is_deleted_for_the_watch(api: Api) -> None:
    version = api.get(MAPS).body["metadata"]["resourceVersion"]
    events = api.watch(f"{MAPS}?resourceVersion={version}&labelSelector=app%3Dx")
    make_maps(api, "a", app="x")
    make_maps(api, "other", app="y")
    api.patch(f"{MAPS}/a", {"metadata": {"labels": {"app": "y"}}})
    api.patch(f"{MAPS}/other", {"metadata": {"labels": {"app": "x"}}})
    assert take(events, 3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "other")]


def test_bookmarks_come_when_nothing_happens_and_move_on(api: Api) -> None:
    version = api.get(MAPS).body["metadata"]["resourceVersion"]
    events = api.watch(f"{MAPS}?resourceVersion={version}&allowWatchBookmarks=true")
    first = next(events)
    make_maps(api, "a")
    added = next(events)
    second = next(events)
    assert [event["type"] for event in (first, added, second)] == ["BOOKMARK", "ADDED", "BOOKMARK"]
    versions = [
        int(event["object"]["metadata"]["resourceVersion"]) for event in (first, added, second)
    ]
    assert versions[0] < versions[1] <= versions[2]
    assert set(first["object"]["metadata"]) == {"resourceVersion"}


def test_a_watch_list_ends_its_start_with_a_bookmark(api: Api) -> None:
    query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    events = list(islice(api.watch(f"{MAPS}?{query}"), 2))
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    annotations = events[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_a_version_that_is_no_longer_known_is_expired() -> None:
    with EmbeddedCluster(history=3) as cluster:
        api = Api(cluster)
        path = "/api/v1/namespaces/default/configmaps"
        version = api.get(path).body["metadata"]["resourceVersion"]
        for number in range(4):
            api.post(path, {"metadata": {"name": f"m{number}"}})
        (event,) = api.watch(f"{path}?resourceVersion={version}")
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert event["object"]["reason"] == "Expired"
        later = api.get(path).body["metadata"]["resourceVersion"]
        assert list(api.watch(f"{path}?resourceVersion={later}&timeoutSeconds=1")) == []


def test_a_watch_can_go_back_exactly_as_far_as_the_history_does() -> None:
    registry = Registry()
    watches = Watches(registry, history=2)
    for name in ("a", "b", "c", "d"):
        registry.create("namespaces", "", {"metadata": {"name": name}})
    last = int(registry.resource_version)
    events = watches.open("namespaces", None, None, last - 2).take()
    assert [item["metadata"]["name"] for _, item in events] == ["c", "d"]
    with pytest.raises(ApiError, match="too old resource version") as caught:
        watches.open("namespaces", None, None, last - 3)
    assert caught.value.code == 410


def test_a_watch_shows_tables_and_heads_only_the_first(api: Api) -> None:
    make_maps(api, "a")
    first, second = islice(api.watch(MAPS, Accept=TABLE), 2)
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] == []
    assert [entry["object"]["rows"][0]["cells"][0] for entry in (first, second)] == [
        "a",
        "kube-root-ca.crt",
    ]


def test_watches_end_when_the_cluster_ends_them(api: Api) -> None:
    events = api.watch(MAPS)
    assert take(events, 1) == [("ADDED", "kube-root-ca.crt")]
    api.cluster.end_watches()
    assert list(events) == []


# --- looking on -------------------------------------------------------------------------------


def test_every_request_is_noted_in_order_and_watches_at_once(api: Api) -> None:
    api.cluster.clear_requests()
    api.get(f"{MAPS}?limit=1")
    api.get(f"{MAPS}/none")
    events = api.watch(MAPS)
    next(events)
    noted = [
        (record.method, record.path, record.query, record.status) for record in api.cluster.requests
    ]
    assert noted == [
        ("GET", MAPS, "limit=1", 200),
        ("GET", f"{MAPS}/none", "", 404),
        ("GET", MAPS, "watch=true", 200),
    ]


@pytest.mark.parametrize(
    ("query", "body", "is_deleted"),
    [
        ("?dryRun=All", None, False),
        ("?dryRun=All", {"apiVersion": "v1", "kind": "DeleteOptions"}, True),
        ("", {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}, False),
    ],
    ids=["in the query", "in the query beside a body", "in the body"],
)
def test_the_query_of_a_deletion_counts_only_without_a_body(
    api: Api, query: str, body: Any, is_deleted: bool
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    api.post(path, {"metadata": {"name": "c"}})
    assert api.delete(f"{path}/c{query}", body).status == 200
    assert (api.get(f"{path}/c").status == 404) is is_deleted
