# SPDX-License-Identifier: Apache-2.0
"""Connections that send nothing, or too slowly, to a server with a single page."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient

from container_update import Options
from tests.internals.service import Service, Settings, connections, serve
from tests.vnfm.consumer import Consumer
from tests.vnfm.waiting import until

PATIENCE = 30.0
_LARGE = bytes(64 * 1024 * 1024)
"""More than the buffers between two sockets take."""


class Server:
    """A server whose answers wait as long as they are held."""

    running: uvicorn.Server
    thread: threading.Thread

    def __init__(self) -> None:
        self.address = ("127.0.0.1", 0)
        self.held = threading.Event()
        self.asked = threading.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        if scope["path"] == "/hold":
            self.asked.release()
            while self.held.is_set():
                await asyncio.sleep(0.02)
        goes_on = scope["method"] == "POST"
        while goes_on:
            message = await receive()
            goes_on = message.get("more_body", False)
        large = _LARGE if scope["path"] == "/large" else b""
        length = str(len(large) + 2).encode()
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-length", length)]})  # fmt: skip
        if large:
            await send({"type": "http.response.body", "body": large, "more_body": True})
            self.asked.release()
        await send({"type": "http.response.body", "body": b"ok"})

    def get(self, path: str = "/") -> int:
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        connection.request("GET", path)
        return connection.getresponse().status


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(connections, "STOP_SECONDS", 1)
    serving = Server()
    config = connections.server_config(serving, Settings())
    config.lifespan = "off"
    serving.running = uvicorn.Server(config)
    with socket.create_server(serving.address) as sock:
        serving.address = sock.getsockname()
        thread = threading.Thread(target=serving.running.run, args=([sock],), daemon=True)
        serving.thread = thread
        thread.start()
        yield serving
        serving.held.clear()
        serving.running.should_exit = serving.running.force_exit = True
        thread.join(PATIENCE)


def test_answers_are_sent_at_once() -> None:
    with serve._listening(Settings(port=0)) as sock:
        assert asyncio.run(_accepted_option(sock, socket.TCP_NODELAY)) == 1


async def _accepted_option(sock: socket.socket, option: int) -> int:
    """Return an option of TCP of a connection that asyncio's server accepts, as uvicorn's does."""
    found = asyncio.get_running_loop().create_future()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, option))
            transport.close()

    async with await asyncio.get_running_loop().create_server(Accepted, sock=sock):
        _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
        value = int(await asyncio.wait_for(found, PATIENCE))
        writer.close()
    return value


@contextmanager
def clients(server: Server, number: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Open connections that send this and nothing more."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(socket.create_connection(server.address, PATIENCE))
            client.sendall(sent)
            opened.append(client)
        yield opened


def is_closed(client: socket.socket, drop: bytes = b"") -> bool:
    """Return whether the server has closed the connection, after sending it one more drop."""
    with suppress(ConnectionError):
        client.sendall(drop)
        with suppress(TimeoutError, BlockingIOError):
            return client.recv(65536) == b""
        return False
    return True


NO_CHUNKS = {
    "a negative size": b"-1\r\n",
    "no size": b"zz\r\n",
    "no end of a chunk": b"1\r\naXX",
    "a second chunk": b"5\r\nhello\r\n-1\r\n",
    "no text": b"\xff" * 99 + b"\r\n",
}
CHUNKED = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("path", ["/", "/hold"])
def test_a_body_that_is_no_http_is_answered_with_400_and_costs_one_line_of_the_log(
    server: Server, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The application waits for the body, or answers later."""
    assert server.get() == 200
    for name, body in NO_CHUNKS.items():
        caplog.clear()
        if path == "/hold":
            server.held.set()
        with clients(server, 1, CHUNKED % path.encode()) as (client,):
            if path == "/hold":
                assert server.asked.acquire(timeout=PATIENCE)
            client.sendall(body)
            with client.makefile("rb") as answer:
                assert answer.readline().split()[1] == b"400", name
        server.held.clear()
        assert server.get() == 200
        assert [record.getMessage() for record in caplog.records] == [
            "Invalid HTTP request received."
        ], name


def test_a_body_that_is_no_http_after_the_answer_ends_the_connection(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert server.get() == 200
    caplog.clear()
    with clients(server, 1, CHUNKED.replace(b"POST", b"GET") % b"/") as (client,):
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.sendall(b"-1\r\n")
        until(lambda: is_closed(client), "the connection is closed", PATIENCE)
    assert [record.exc_info for record in caplog.records if record.exc_info] == []


def test_the_headers_of_a_request_have_to_arrive_in_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    for start in (b"", b"GET / HTTP/1.1\r\nX-A: ", request + b"GET / HTTP/1.1\r\nX-A: "):
        with clients(server, 1, start) as (client,):
            client.settimeout(0.05)
            until(
                lambda drop=start[:1], client=client: is_closed(client, drop),
                "the connection is closed",
                PATIENCE,
            )


def test_an_answer_may_take_longer_than_the_headers_of_a_request(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    server.held.set()
    with clients(server, 1, b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n") as (slow,):
        assert server.asked.acquire(timeout=PATIENCE)
        with clients(server, 1, b"") as (silent,):
            while not is_closed(silent):
                pass
        with clients(server, 1, b"") as (silent,):
            while not is_closed(silent):
                pass
        server.held.clear()
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")


def test_requests_that_wait_for_their_answer_are_not_given_up(server: Server) -> None:
    server.held.set()
    sent = b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"
    with clients(server, connections.MAX_CONNECTIONS - 1, sent) as waiting:
        for _ in waiting:
            assert server.asked.acquire(timeout=PATIENCE)
        assert server.get() == 503
        server.held.clear()
        for client in waiting:
            assert client.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", id="a body"),
        pytest.param(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", id="a response that nobody reads"),
    ],
)
def test_a_request_that_does_not_end_does_not_keep_the_service_from_stopping(
    sent: bytes, server: Server
) -> None:
    with clients(server, 1, sent):
        assert server.asked.acquire(timeout=PATIENCE)
        server.running.should_exit = True
        server.thread.join(PATIENCE)
        assert not server.thread.is_alive()


# --- the service ----------------------------------------------------------------------------------


def test_slow_tests_of_callbacks_hold_up_no_other_request(tmp_path: Path) -> None:
    settings = Settings(
        state_dir=str(tmp_path / "state"), auth="none", callback_hosts=("127.0.0.1",),
        callback_seconds=20.0,
    )  # fmt: skip
    service = Service(settings, Options())
    with (
        TestClient(service.app, base_url="http://127.0.0.1:9890") as client,
        ThreadPoolExecutor(60) as pool,
        Consumer() as consumer,
    ):
        consumer.unresponsive.set()
        body = {"callbackUri": consumer.url}
        path = "/vnflcm/v1/subscriptions"
        posts = [pool.submit(client.post, path, json=body) for _ in range(60)]
        until(lambda: len(consumer.requests) >= 4, "the callbacks are tested")
        assert client.get("/healthz").status_code == 200
        assert client.get(path).json() == []
        until(lambda: sum(map(Future.done, posts)) >= 56, "the others are refused")
        assert {post.result().status_code for post in posts if post.done()} == {429}
        consumer.closing.set()
        assert [post.result(PATIENCE).status_code for post in posts].count(422) == 4
        consumer.unresponsive.clear()
        assert client.post(path, json=body).status_code == 201
