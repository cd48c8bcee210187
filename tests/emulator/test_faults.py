# SPDX-License-Identifier: Apache-2.0
"""The script of faults: each fault happens to the request that it is for, and to no other."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

import pytest

from container_update.emulator.faults import (
    Effect,
    Fault,
    Faults,
    answer,
    answer_after,
    call_after,
    call_before,
    cut_watches,
    delay,
    drop_after,
    drop_before,
    outage,
)
from container_update.emulator.kubernetes import EmbeddedCluster, Registry
from tests.emulator.client import Api, eventually

PATH = "/api/v1/namespaces/rec/configmaps"
BODY = {"metadata": {"name": "cm"}, "data": {"k": "v"}}
BROKEN = (http.client.RemoteDisconnected, ConnectionError)


def play(cluster: EmbeddedCluster, *faults: Fault, path: str = "*") -> Faults:
    script = Faults(*faults, path=path)
    cluster.middlewares.append(script)
    return script


def is_there(cluster: EmbeddedCluster, name: str = "cm") -> bool:
    return cluster.call(lambda registry: registry.get("configmaps", "rec", name)) is not None


@pytest.mark.parametrize(
    ("effect", "took_effect"),
    [
        pytest.param(drop_before, False, id="drop before"),
        pytest.param(drop_after, True, id="drop after"),
        pytest.param(call_before(list), False, id="call before"),
        pytest.param(call_after(list), True, id="call after"),
        pytest.param(outage(0.01), False, id="away"),
    ],
)
def test_a_dropped_request_gets_no_answer(
    cluster: EmbeddedCluster, api: Api, effect: Effect, took_effect: bool
) -> None:
    script = play(cluster, Fault(effect, method="POST"))
    with pytest.raises(BROKEN):
        api.post(PATH, BODY)
    assert is_there(cluster) is took_effect
    assert [fault.effect for fault in script.happened] == [effect]


@pytest.mark.parametrize("status", [409, 410, 429, 500, 503])
def test_a_refused_request_has_no_effect(cluster: EmbeddedCluster, api: Api, status: int) -> None:
    play(cluster, Fault(answer(status, "injected so", retry_after=7)))
    refused = api.post(PATH, BODY)
    assert (refused.status, refused.body["code"]) == (status, status)
    assert refused.body["message"] == "injected so"
    assert refused.headers["Retry-After"] == "7"
    assert not is_there(cluster)


def test_an_error_can_come_after_the_effect(cluster: EmbeddedCluster, api: Api) -> None:
    play(cluster, Fault(answer_after(504)))
    assert api.post(PATH, BODY).status == 504
    assert is_there(cluster)


def test_a_delayed_request_takes_effect_later(cluster: EmbeddedCluster, api: Api) -> None:
    play(cluster, Fault(delay(0.05)))
    began = time.monotonic()
    assert api.post(PATH, BODY).status == 201
    assert time.monotonic() - began >= 0.05


def test_only_the_nth_fitting_request_and_as_often_as_asked(
    cluster: EmbeddedCluster, api: Api
) -> None:
    play(cluster, Fault(answer(503), method="GET", path="*/configmaps", nth=2, times=2))
    statuses = [api.get(PATH).status for _ in range(4)]
    others = [api.get("/api/v1/namespaces/rec/secrets").status, api.post(PATH, BODY).status]
    assert statuses == [200, 503, 503, 200]
    assert others == [200, 201]


def test_requests_outside_the_scripts_path_are_let_through(
    cluster: EmbeddedCluster, api: Api
) -> None:
    script = play(cluster, Fault(answer(500)), path="*/namespaces/other/*")
    assert api.get(PATH).status == 200
    assert not script.happened


def test_the_first_of_two_faults_happens_and_both_count(cluster: EmbeddedCluster, api: Api) -> None:
    play(cluster, Fault(answer(409)), Fault(answer(500), nth=2))
    assert [api.get(PATH).status for _ in range(3)] == [409, 500, 200]


def test_the_callback_comes_before_or_after_the_effect(cluster: EmbeddedCluster, api: Api) -> None:
    registry = cluster.call(lambda registry: registry)
    calls: list[bool] = []

    def record() -> None:  # called on the cluster's own thread, so that it may read
        calls.append(registry.get("configmaps", "rec", "cm") is not None)

    play(cluster, Fault(call_before(record)), Fault(call_after(record), nth=2))
    for _ in range(2):
        with pytest.raises(BROKEN):
            api.post(PATH, BODY)
    assert calls == [False, True]


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda: Fault(cut_watches, method="POST"), id="cut watches"),
        pytest.param(lambda: Fault(outage(0.01), method="POST"), id="away"),
    ],
)
def test_an_open_watch_breaks(cluster: EmbeddedCluster, api: Api, cut: Callable[[], Fault]) -> None:
    fault = cut()
    play(cluster, fault)
    events = api.watch(f"{PATH}?resourceVersion=0")
    next(events)
    try:
        api.post(PATH, BODY)
    except BROKEN:
        assert fault.effect is not cut_watches
    assert list(events) == []


def test_a_watch_is_dropped_after_it_has_begun(cluster: EmbeddedCluster, api: Api) -> None:
    play(cluster, Fault(drop_after, watch=True))
    api.post(PATH, BODY)
    events = api.watch(f"{PATH}?resourceVersion=0")
    assert next(events)["type"] == "ADDED"
    assert {event["type"] for event in events} <= {"ADDED"}  # comes to an end


def test_a_server_that_was_away_comes_back(cluster: EmbeddedCluster, api: Api) -> None:
    play(cluster, Fault(outage(0.1)))

    def status() -> int:
        try:
            return api.get(PATH).status
        except (http.client.HTTPException, ConnectionError):
            api.close()
            return 0

    assert status() == 0
    eventually(status, lambda status_code: status_code == 200, "the server comes back")


def test_a_watch_that_is_ended_tells_no_version_beyond_what_it_has_sent(
    cluster: EmbeddedCluster, api: Api
) -> None:
    """Otherwise its client would miss what happened at that moment."""
    events = api.watch(f"{PATH}?resourceVersion=0&allowWatchBookmarks=true")
    next(events)

    def end_and_write(registry: Registry) -> int:
        cluster._watches.close_all()
        created = registry.create("configmaps", "rec", dict(BODY))
        return int(created["metadata"]["resourceVersion"])

    written = cluster.call(end_and_write)
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert max(versions, default=0) < written
