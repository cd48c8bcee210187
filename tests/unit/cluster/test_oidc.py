# SPDX-License-Identifier: Apache-2.0
"""Tokens of an OpenID Connect provider on loopback that is slow, silent, wasteful or wrong."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

import pytest
import trustme

from container_update.cluster.client import KubernetesCluster, connect_vim
from container_update.cluster.oidc import OidcToken
from container_update.model.errors import ClusterError, NextStep
from container_update.model.options import Options

PATIENCE = 20.0
"""Far longer than the deadline of a request here, which is one second."""
PASSWORD = "pl4nted"


class Provider:
    """A token endpoint; each connection is answered by the next behaviour, the last one for ever.

    :param behaviours: each is called with the connection once the request has arrived.
    """

    def __init__(
        self,
        *behaviours: Callable[[Provider, socket.socket], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._behaviours = list(behaviours)
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}/token"
        self.ended = threading.Event()
        self.asked = threading.Semaphore(0)
        self.forms: list[bytes] = []
        self.sent = 0

    def __enter__(self) -> Provider:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self.forms.append(_form(connection))
            behaviour = self._behaviours[0]
            if len(self._behaviours) > 1:
                self._behaviours.pop(0)
            self.asked.release()
            behaviour(self, connection)


def _form(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as request:
        length = 0
        while line := request.readline().strip():
            name, _, value = line.lower().partition(b":")
            length = int(value) if name == b"content-length" else length
        return request.read(length)


def silence(provider: Provider, _: socket.socket) -> None:
    provider.ended.wait()


def drip(start: bytes) -> Callable[[Provider, socket.socket], None]:
    """After *start*, one byte at a time without an end."""

    def behaviour(provider: Provider, connection: socket.socket) -> None:
        connection.sendall(start)
        while not provider.ended.wait(0.05):
            connection.sendall(b"x")

    return behaviour


def flood(provider: Provider, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not provider.ended.is_set():
        provider.sent += connection.send(b" " * 65536)


def answer(body: Any, status: int = 200) -> Callable[[Provider, socket.socket], None]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behaviour(_: Provider, connection: socket.socket) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)

    return behaviour


def token(text: str, seconds: float = 3600) -> Callable[[Provider, socket.socket], None]:
    return answer({"access_token": text, "expires_in": seconds})


@contextmanager
def vim(provider: Provider, ca_text: str | None = None, **oidc: str) -> Iterator[Callable[[], str]]:
    """Yield what returns the Authorization header of a request, or raises."""
    fields = {"client_id": "c", "username": "u", "password": PASSWORD, **oidc}
    cluster: KubernetesCluster = connect_vim(
        "https://127.0.0.1:1",
        oidc={"token_url": provider.url, **fields},
        ca_text=ca_text,
        options=Options(request_timeout=1),
    )
    with cluster, ThreadPoolExecutor() as pool, provider:

        def header() -> str:
            return cluster._logins.current.headers(has_body=False)["authorization"]

        yield lambda: pool.submit(header).result(PATIENCE)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """The provider's side, with a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(silence, id="it says nothing"),
        pytest.param(drip(b"HTTP/1.1 200 OK\r\nX-A: "), id="a header without an end"),
        pytest.param(drip(b"HTTP/1.1 200 OK\r\n\r\n"), id="a body without an end"),
        pytest.param(drip(b""), id="a status line without an end"),
    ],
)
def test_a_token_request_has_a_deadline_whatever_the_provider_does(behaviour: Any) -> None:
    with vim(Provider(behaviour)) as header:
        with pytest.raises(ClusterError, match="within 1 seconds") as raised:
            header()
        assert raised.value.transient
        assert raised.value.next_step is NextStep.RETRY


def test_the_deadline_holds_within_tls(authority: trustme.CA, tls: ssl.SSLContext) -> None:
    provider = Provider(drip(b"HTTP/1.1 200 OK\r\nX-A: "), tls=tls)
    with vim(provider, ca_text=authority.cert_pem.bytes().decode()) as header:
        with pytest.raises(ClusterError, match="within 1 seconds"):
            header()
        assert provider.forms, "the handshake was over"


def test_the_tls_handshake_is_part_of_the_deadline() -> None:
    provider = Provider(drip(b"\x16\x03\x03\x40\x00"))
    provider.url = provider.url.replace("http://", "https://")
    with vim(provider) as header, pytest.raises(ClusterError, match="within 1 seconds"):
        header()


def test_an_answer_without_an_end_is_not_read_to_its_end() -> None:
    with vim(provider := Provider(flood)) as header:
        with pytest.raises(ClusterError, match="expected at most 262144 bytes"):
            header()
        # what fills the buffers of both ends, beside what is read
        assert provider.sent < 16 * 1024 * 1024


def test_a_token_is_got_by_password_and_renewed_before_it_expires() -> None:
    provider = Provider(
        answer({"id_token": "first", "access_token": "other", "expires_in": 10}),
        answer({"access_token": "second"}),
    )
    with vim(provider, client_secret="s3cret") as header:
        assert [header() for _ in range(3)] == ["Bearer first", "Bearer second", "Bearer second"]
    assert [dict(parse_qsl(form.decode())) for form in provider.forms] == [
        {
            "grant_type": "password",
            "scope": "openid",
            "client_id": "c",
            "client_secret": "s3cret",
            "username": "u",
            "password": PASSWORD,
        }
    ] * 2


def test_the_certificate_of_the_provider_is_verified(
    authority: trustme.CA, tls: ssl.SSLContext
) -> None:
    for ca, expected in ((authority, None), (trustme.CA(), "certificate verify failed")):
        provider = Provider(token("t"), tls=tls)
        with vim(provider, ca_text=ca.cert_pem.bytes().decode()) as header:
            if expected is None:
                assert header() == "Bearer t"
                continue
            with pytest.raises(ClusterError, match=expected) as raised:
                header()
            assert not raised.value.transient


def test_while_one_request_renews_the_token_the_others_use_the_old_one() -> None:
    # 20 s are within the time before its end at which a token is renewed
    with vim(provider := Provider(token("old", 20), silence)) as header:
        assert header() == "Bearer old"
        assert provider.asked.acquire(timeout=PATIENCE)
        with ThreadPoolExecutor() as pool:
            renewing = pool.submit(header)
            assert provider.asked.acquire(timeout=PATIENCE)
            assert header() == "Bearer old"
            assert not renewing.done()
            # its own request did not fail either: the token has not expired yet
            assert renewing.result(PATIENCE) == "Bearer old"


def test_a_request_without_a_token_does_not_wait_for_another_one_without_an_end() -> None:
    provider = OidcToken({"token_url": "https://127.0.0.1:1"}, "", seconds=0.01, verified=False)
    with provider._renewing, pytest.raises(ClusterError, match="another request") as raised:
        provider.authorization()
    assert raised.value.transient


def test_requests_that_have_no_token_wait_for_one_renewal() -> None:
    all_ask = threading.Barrier(9)

    def ask() -> str:
        all_ask.wait(PATIENCE)
        return header()

    def behaviour(provider: Provider, connection: socket.socket) -> None:
        provider.ended.wait(0.2)  # more of them come to wait meanwhile
        token("new")(provider, connection)

    with vim(provider := Provider(behaviour)) as header, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask) for _ in range(8)]
        all_ask.wait(PATIENCE)
        assert {future.result(PATIENCE) for future in asked} == {"Bearer new"}
        assert len(provider.forms) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([1], id="a list"),
        pytest.param({}, id="no token"),
        pytest.param({"access_token": "t", "expires_in": "soon"}, id="no time"),
        pytest.param({"access_token": "t", "expires_in": [60]}, id="a list of times"),
        pytest.param({"access_token": "t", "expires_in": -1}, id="a time in the past"),
        pytest.param({"access_token": "t", "expires_in": float("nan")}, id="not a number"),
        pytest.param({"access_token": "t", "expires_in": 10**400}, id="a huge number"),
        pytest.param({"access_token": "t\u00f6ken\u0142"}, id="a token of other letters"),
        pytest.param({"access_token": "pl4nted-t0ken\nx"}, id="a token with a line break"),
        pytest.param({"access_token": {"a": 1}}, id="a token that is no text"),
        pytest.param(b"[" * 100_000, id="a deep list"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_an_answer_without_a_usable_token_is_a_cluster_error(body: Any) -> None:
    with vim(Provider(answer(body))) as header:
        with pytest.raises(ClusterError, match="expected a token, got none") as raised:
            header()
        assert raised.value.status == 401
        assert not raised.value.transient
        assert "pl4nted" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "transient"),
    [(400, False), (401, False), (302, False), (429, True), (500, True), (503, True)],
)
def test_only_a_provider_that_is_away_is_asked_again(status: int, transient: bool) -> None:
    with vim(Provider(answer({"access_token": "t"}, status))) as header:
        with pytest.raises(ClusterError) as raised:
            header()
        assert raised.value.transient is transient


def test_a_provider_that_nobody_listens_for_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/token"
    with vim(Provider(silence), token_url=url) as header:
        with pytest.raises(ClusterError, match="Connection refused") as raised:
            header()
        assert raised.value.transient


@pytest.mark.parametrize(
    "url",
    ["ftp://sso/token", "sso/token", "http://sso:x/", "http://\u0142/", "http://a..b/",
     "https://u:pl4nted@sso/token"],
)  # fmt: skip
def test_a_token_url_has_to_be_one(url: str) -> None:
    with pytest.raises(ClusterError, match="oidc_token_url: expected") as raised:
        connect_vim("https://vim", oidc={"token_url": url, "username": "u"})
    assert "pl4nted" not in str(raised.value)
    assert not raised.value.transient
