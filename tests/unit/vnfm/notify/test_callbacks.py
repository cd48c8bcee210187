# SPDX-License-Identifier: Apache-2.0
"""Which callbacks are tested and how, and which are refused."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from container_update.vnfm.notify import callbacks
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings
from tests import packed
from tests.vnfm.consumer import Consumer

HERE = Settings(callback_hosts=("127.0.0.1",), callback_seconds=5.0)
SECRET = "hunter2-\u00fc:"


def check_callback(settings: Settings, uri: str, authentication: Any) -> None:
    asyncio.run(callbacks.check_callback(settings, uri, authentication))


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    with Consumer() as listening:
        yield listening


def basic(user: str = "nfvo", password: str = SECRET) -> dict[str, Any]:
    return {"authType": ["BASIC"], "paramsBasic": {"userName": user, "password": password}}


def oauth(endpoint: str) -> dict[str, Any]:
    params = {"clientId": "a b", "clientPassword": SECRET, "tokenEndpoint": endpoint}
    return {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": params}


def sent_user(header: str) -> str:
    return base64.b64decode(header.removeprefix("Basic ")).decode()


def test_a_callback_is_tested_with_a_get(consumer: Consumer) -> None:
    check_callback(HERE, f"{consumer.url}/path?query=1", None)
    assert [(each.method, each.path) for each in consumer.requests] == [("GET", "/path?query=1")]
    assert "Authorization" not in consumer.requests[0].headers


def test_basic_credentials_are_sent(consumer: Consumer) -> None:
    check_callback(HERE, consumer.url, basic())
    assert sent_user(consumer.requests[0].headers["Authorization"]) == f"nfvo:{SECRET}"


def test_a_token_is_fetched_and_sent(consumer: Consumer) -> None:
    consumer.tokens.append("a-token")
    check_callback(HERE, consumer.url, oauth(f"{consumer.url}/token"))
    fetched, requests = consumer.requests
    assert (fetched.method, fetched.path) == ("POST", "/token")
    assert fetched.text == "grant_type=client_credentials"
    assert sent_user(fetched.headers["Authorization"]) == "a%20b:hunter2-%C3%BC%3A"
    assert requests.headers["Authorization"] == "Bearer a-token"


@pytest.mark.parametrize("status", [200, 202, 302, 400, 401, 404, 500, 503])
def test_anything_but_204_is_refused_and_no_redirect_followed(
    consumer: Consumer, status: int
) -> None:
    consumer.statuses.append(status)
    with pytest.raises(ProblemError, match=f"found {status}") as caught:
        check_callback(HERE, consumer.url, basic())
    assert caught.value.status == 422
    assert len(consumer.requests) == 1
    assert "hunter2" not in str(caught.value)


def test_a_callback_that_does_not_answer_is_refused(consumer: Consumer) -> None:
    consumer.unresponsive.set()
    settings = Settings(callback_hosts=("127.0.0.1",), callback_seconds=0.2)
    with pytest.raises(ProblemError, match=r"no answer within 0\.2 seconds"):
        check_callback(settings, consumer.url, None)


def test_a_callback_where_nobody_listens_is_refused() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        with pytest.raises(ProblemError, match="not reached") as caught:
            check_callback(HERE, f"http://127.0.0.1:{unheard.getsockname()[1]}/", None)
    assert caught.value.status == 422


@pytest.mark.parametrize("host", ["nfvo..example", f"{'n' * 64}.example"])
def test_a_host_that_no_name_server_may_know_is_refused(host: str) -> None:
    with pytest.raises(ProblemError, match="not reached") as caught:
        check_callback(Settings(), f"http://{host}/", None)
    assert caught.value.status == 422


@pytest.mark.parametrize(
    "token",
    [
        '{"access_token": 1, "expires_in": "x"}',
        '{"access_token": "t", "expires_in": 1e999}',
        '{"access_token": "t", "expires_in": NaN}',
        f'{{"access_token": "t", "expires_in": {10**400}}}',
        "[]",
        "[" * 100_000,
        "{}",
        "<html>",
        '"text"',
    ],
    ids=lambda text: text[:40],
)
def test_a_token_endpoint_that_gives_no_token_is_refused(
    consumer: Consumer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.tokens.append("x")
    monkeypatch.setattr("tests.vnfm.consumer.json.dumps", lambda _: token)
    with pytest.raises(ProblemError, match="gave out no token"):
        check_callback(HERE, consumer.url, oauth(f"{consumer.url}/token"))


class Torrent:
    """Listens, and answers the first request with the same chunk again and again.

    :param most: bytes after which it ends; what is sent is less where nobody reads it.
    """

    def __init__(self, head: bytes, chunk: bytes, most: int = 256 * 1024 * 1024) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._head, self._chunk, self._most = head, chunk, most
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Torrent:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(20)
        self._listening.close()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + self._head + b"\r\n")
            while self.sent < self._most:
                connection.sendall(self._chunk)
                self.sent += len(self._chunk)


ZIPPED = packed.without_end(b"", b" " * (1 << 20), 256)
"""256 MiB in 260 kB."""
TORRENTS = {
    "plain": (b"", b" " * 65536, 256 * 1024 * 1024),
    "compressed": (b"Content-Encoding: gzip\r\n", ZIPPED, len(ZIPPED)),
    "a header without an end": (b"X-A: ", b"x" * 65536, 256 * 1024 * 1024),
}


@pytest.mark.parametrize("path", ["a token", "a callback"])
@pytest.mark.parametrize("name", TORRENTS)
def test_of_an_answer_no_more_is_read_than_can_be_used(name: str, path: str) -> None:
    with Torrent(*TORRENTS[name]) as torrent:
        authentication = oauth(torrent.url) if path == "a token" else None
        tracemalloc.start()
        try:
            with pytest.raises(ProblemError):
                check_callback(HERE, torrent.url, authentication)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 16 * 1024 * 1024
    assert torrent.sent < 32 * 1024 * 1024, "the buffers of both ends hold less"


@pytest.mark.parametrize("path", ["a token", "a callback"])
def test_what_answers_without_http_is_not_quoted(path: str) -> None:
    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"220 internal.example ready, version 7\r\n")
            connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ProblemError, match="not one of HTTP") as refused:
            check_callback(HERE, url, oauth(url) if path == "a token" else None)
    assert "internal" not in str(refused.value)


# --- addresses that never get a request --------------------------------------------------------

OFF_LIMITS = [
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[ff02::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "100.64.0.1",
    "192.0.2.1",
    "[64:ff9b::6440:1]",
]
NO_CALLBACKS = [
    "",
    "callback",
    "/path",
    "ftp://nfvo/",
    "file:///etc/passwd",
    "http://",
    "http:///path",
    "http://user:password@nfvo/",
    "http://nfvo/#fragment",
    "http://nfvo:port/",
    "http://[nfvo/",
    "http://nfvo/ path",
    "http://nfvo/\r\nHost: x",
    "http://nfv\u00f6/",
    "http://nfvo/" + "x" * 3000,
]


@pytest.mark.parametrize("host", OFF_LIMITS)
def test_loopback_and_link_local_addresses_are_refused(host: str) -> None:
    for scheme in ("http", "https"):
        with pytest.raises(ProblemError, match="off limits") as caught:
            check_callback(Settings(), f"{scheme}://{host}/", None)
        assert caught.value.status == 422


@pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f.1", "LOCALHOST"])
def test_a_host_name_of_a_forbidden_address_is_refused(name: str) -> None:
    with pytest.raises(ProblemError, match=r"off limits|not a canonical"):
        check_callback(Settings(), f"http://{name}:9/", None)


def test_a_host_name_with_one_forbidden_address_gets_no_request(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(consumer.url.rpartition(":")[2])
    entries = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
        for address in ("10.0.0.1", "127.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)
    with pytest.raises(ProblemError, match="off limits"):
        check_callback(Settings(), f"http://nfvo:{port}/", None)
    assert consumer.requests == []


def test_only_configured_hosts_get_requests() -> None:
    settings = Settings(callback_hosts=("nfvo", "127.0.0.1"))
    assert callbacks.uri_problem("http://nfvo:8000/x", settings.callback_hosts) == ""
    assert callbacks.uri_problem("http://127.0.0.1/x", settings.callback_hosts) == ""
    with pytest.raises(ProblemError, match="other is none of the hosts"):
        check_callback(settings, "http://other/", None)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.1", "192.0.32.8", "2606:2800::1", "64:ff9b::a00:1"]
)
def test_private_and_public_addresses_are_allowed(address: str) -> None:
    assert callbacks.address_problem(address) == ""


@pytest.mark.parametrize("uri", NO_CALLBACKS, ids=lambda uri: ascii(uri)[:40])
def test_an_invalid_callback_uri_is_refused(uri: str) -> None:
    with pytest.raises(ProblemError, match="expected") as caught:
        check_callback(Settings(), uri, None)
    assert caught.value.status == 422
    assert "password" not in str(caught.value)


def test_a_token_endpoint_is_checked_like_a_callback(consumer: Consumer) -> None:
    with pytest.raises(ProblemError, match="is none of the hosts"):
        check_callback(HERE, consumer.url, oauth("http://169.254.169.254/token"))
    assert consumer.requests == []


@pytest.mark.parametrize(
    ("authentication", "status"),
    [
        ("x", 400),
        ({}, 400),
        ({"authType": []}, 400),
        ({"authType": "BASIC"}, 400),
        ({"authType": [1]}, 400),
        ({"authType": ["BASIC"]}, 400),
        ({"authType": ["BASIC"], "paramsBasic": {"userName": "a", "password": 7}}, 400),
        ({"authType": ["BASIC"], "paramsBasic": []}, 400),
        ({"authType": ["OAUTH2_CLIENT_CREDENTIALS"], **basic()["paramsBasic"]}, 400),
        ({"authType": ["TLS_CERT"]}, 422),
        ({"authType": ["BASIC", "OAUTH2_CLIENT_CERT"], **{"paramsBasic": {}}}, 400),
        ({**basic(), "authType": ["BASIC", "OAUTH2_CLIENT_CERT"]}, 422),
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(
    consumer: Consumer, authentication: Any, status: int
) -> None:
    with pytest.raises(ProblemError, match="authentication: ") as caught:
        check_callback(HERE, consumer.url, authentication)
    assert caught.value.status == status
    assert "hunter2" not in str(caught.value)
    assert consumer.requests == []
