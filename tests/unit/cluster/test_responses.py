# SPDX-License-Identifier: Apache-2.0
"""An API server that sends too much, too slowly, or what no API server sends."""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import pytest

from container_update.cluster import client
from container_update.cluster.client import KubernetesCluster, connect_vim
from container_update.cluster.responses import MAX_BYTES, MAX_VALUES
from container_update.model.cluster import Right
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options

POD = ObjectKey("", "Pod", "ns", "p")
PODS = Collection("", "Pod", "ns")

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(behaviour: Behaviour, seconds: float = 10.0) -> Iterator[KubernetesCluster]:
    """Yield the client of a server that behaves so."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            try:
                behaviour(self)
            except OSError:  # the client has gone
                self.close_connection = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, args=[0.01], daemon=True).start()
    url, options = f"http://127.0.0.1:{listening.server_port}", Options(request_timeout=seconds)
    try:
        with connect_vim(url, bearer_token="t", options=options) as cluster:
            yield cluster
    finally:
        listening.shutdown()
        listening.server_close()


def answer(body: Any, status: int = 200) -> Behaviour:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return behaviour


def flood(status: int = 200, part: bytes = b" ") -> Behaviour:
    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while True:
            handler.wfile.write(part * 65536)

    return behaviour


REQUESTS: dict[str, Callable[[KubernetesCluster], object]] = {
    "list": lambda cluster: cluster.list(PODS),
    "get": lambda cluster: cluster.get(POD),
    "watch": lambda cluster: list(cluster.watch(PODS, "7", 60)),
    "log": lambda cluster: cluster.log(POD, "main", previous=False, lines=1, limit=9),
    "version": lambda cluster: cluster.version(),
}


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_an_answer_without_an_end_is_not_kept(
    request_: Callable[[KubernetesCluster], object], status: int
) -> None:
    with server(flood(status)) as cluster:
        tracemalloc.start()
        try:
            with pytest.raises(ClusterError, match=f"at most {MAX_BYTES} bytes, found more"):
                request_(cluster)
            assert tracemalloc.get_traced_memory()[1] < 4 * MAX_BYTES
        finally:
            tracemalloc.stop()


def test_an_answer_of_too_many_values_is_not_kept() -> None:
    """Each takes more memory than its bytes."""
    told = f"at most {MAX_VALUES} values, found more"
    with server(flood(200, b"[],")) as cluster, pytest.raises(ClusterError, match=told):
        cluster.list(PODS)


def test_an_answer_that_never_comes_to_its_end_is_not_waited_for() -> None:
    done = threading.Event()

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while not done.wait(0.05):
            handler.wfile.write(b" ")

    with server(behaviour, seconds=1.0) as cluster:
        with pytest.raises(ClusterError, match=r"within 1 seconds|timed out") as raised:
            cluster.get(POD)
        assert raised.value.transient
        done.set()


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X: x\r\n"),
    ],
    ids=["headers", "answers before the answer", "trailers"],
)
def test_what_is_around_an_answer_is_not_waited_for_either(begin: bytes, again: bytes) -> None:
    done = threading.Event()

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(begin)
        while not done.wait(0.05):
            handler.wfile.write(again)

    with server(behaviour, seconds=1.0) as cluster:
        with pytest.raises(ClusterError, match="cannot reach") as raised:
            cluster.get(POD)
        assert raised.value.transient
        done.set()


def bookmark(version: str) -> Any:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}


@pytest.mark.parametrize(
    "line", [b" ", json.dumps(bookmark("7")).encode() + b"\n"], ids=["spaces", "events"]
)
def test_a_watch_that_the_server_does_not_end_is_ended_in_time(line: bytes) -> None:
    done = threading.Event()

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while not done.wait(0.05):
            handler.wfile.write(line)

    with server(behaviour) as cluster:
        list(cluster.watch(PODS, "7", 0.5))
    done.set()


def test_a_list_whose_pages_have_no_end_is_ended_in_time() -> None:
    page = {"metadata": {"resourceVersion": "7", "continue": "x"}, "items": []}
    with (
        mock.patch.object(client, "_PAGES", 0.1),
        server(answer(page)) as cluster,
        pytest.raises(ClusterError, match="expected its last page within 1 seconds"),
    ):
        cluster.list(PODS)


def test_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"{}")
        handler.close_connection = True

    with server(behaviour) as cluster:
        with pytest.raises(ClusterError, match="cannot reach") as raised:
            cluster.get(POD)
        assert raised.value.transient


STRANGE = [[], 5, None, {}, {"items": []}, {"kind": "List", "items": []}, b"[" * 100_000, b"<html>"]
STORED = {"uid": "u", "resourceVersion": "1"}
STRANGE += [{"metadata": []}, b"\xff\xfe"]
STRANGE += [
    {"metadata": {"resourceVersion": "7"}, "items": items}
    for items in ("x", {"a": 1}, [5], [{}], [{"metadata": 5}])
]


@pytest.mark.parametrize("body", STRANGE, ids=lambda body: repr(body)[:60])
def test_a_list_that_is_none_is_an_error_of_the_cluster(body: Any) -> None:
    with server(answer(body)) as cluster, pytest.raises(ClusterError, match="expected "):
        cluster.list(PODS)


GROUP = {"preferredVersion": {"groupVersion": "v1"}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"preferredVersion": 5},
        {**GROUP, "versions": [5]},
        GROUP,
        {**GROUP, "resources": [5]},
        {**GROUP, "resources": [{"kind": "Thing"}]},
    ],
    ids=repr,
)
def test_a_discovery_that_is_none_is_an_error_of_the_cluster(body: Any) -> None:
    with (
        server(answer(body)) as cluster,
        pytest.raises(ClusterError, match=r"group example\.com: expected"),
    ):
        cluster.list(Collection("example.com", "Thing", "ns"))


@pytest.mark.parametrize(
    "status",
    [5, {"resourceRules": 5}, {"resourceRules": [5]}, {"resourceRules": [{"verbs": [[]]}]}],
    ids=repr,
)
def test_rights_that_the_server_does_not_name_are_not_known_to_be_refused(status: Any) -> None:
    with server(answer({"status": status})) as cluster:
        assert cluster.missing_rights([Right("ns", "", "Pod", "get")]) == ()


@pytest.mark.parametrize(
    "body",
    [[], 5, None, b"[" * 100_000, {"details": []}, {"details": {"causes": [5]}}],
    ids=lambda body: repr(body)[:60],
)
def test_a_strange_refusal_is_an_error_of_the_cluster(body: Any) -> None:
    with server(answer(body, 422)) as cluster, pytest.raises(ClusterError, match="answered 422"):
        cluster.list(PODS)


@pytest.mark.parametrize(
    "line",
    [
        b"5",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"type": "ADDED", "object": 5}',
        b'{"type": "ADDED", "object": {"metadata": 5}}',
        b'{"type": "ERROR", "object": []}',
    ],
    ids=lambda line: repr(line)[:60],
)
def test_a_strange_event_ends_a_watch_that_can_begin_again(line: bytes) -> None:
    with server(answer(line + b"\n")) as cluster:
        with pytest.raises(ClusterError, match="the connection broke within an event") as raised:
            list(cluster.watch(PODS, "7", 60))
        assert raised.value.transient


def test_a_page_that_is_too_large_is_read_as_several() -> None:
    objects = [{"metadata": {"name": str(n), **STORED}, "data": "x" * 1_000_000} for n in range(40)]
    limits = []

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        limit, start = int(query["limit"][0]), int(query.get("continue", ["0"])[0])
        limits.append(limit)
        end = start + limit
        rest = {"continue": str(end)} if end < len(objects) else {}
        page = {"metadata": {"resourceVersion": "7", **rest}, "items": objects[start:end]}
        answer(page)(handler)

    with server(behaviour) as cluster:
        names = [body["metadata"]["name"] for body in cluster.list(PODS).items]
    assert names == [body["metadata"]["name"] for body in objects]
    assert limits == [250, 31, *[3] * 14]


def test_requests_one_after_another_go_through_one_connection() -> None:
    clients = set()

    def behaviour(handler: BaseHTTPRequestHandler) -> None:
        clients.add(handler.client_address)
        answer({"metadata": {"name": "p", **STORED}})(handler)

    with server(behaviour) as cluster:
        for _ in range(5):
            cluster.get(POD)
    assert len(clients) == 1
