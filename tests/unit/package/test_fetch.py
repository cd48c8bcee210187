# SPDX-License-Identifier: Apache-2.0
"""Def-files at URLs: what is fetched from a server on loopback, and what is refused unasked."""

from __future__ import annotations

import contextlib
import http.server
import io
import socket
import ssl
import threading

import pytest
import trustme

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar, fetch
from tests.packages import CONFIG_MAP, META, block, write_folder

HERE = "127.0.0.1"
ALLOWED = Options(url_hosts=(HERE, "localhost", "example.com"))


class Server(http.server.ThreadingHTTPServer):
    """Answers by path; counts how many connections came."""

    def __init__(self) -> None:
        super().__init__((HERE, 0), Handler)
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.connections = 0

    def url(self, path: str, scheme: str = "http", host: str = HERE) -> str:
        return f"{scheme}://{host}:{self.server_address[1]}{path}"

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, headers, body = self.server.answers.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Be quiet."""


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def refusal(url: str, options: Options = ALLOWED) -> str:
    with pytest.raises(PackageError) as caught:
        fetch.fetch(url, options)
    return str(caught.value)


# --- what is fetched ----------------------------------------------------------------------------


def test_a_def_file_is_fetched_from_a_url_and_its_hash_holds(server, tmp_path):
    url = server.url("/a.yaml")
    server.answers["/a.yaml"] = (200, {}, CONFIG_MAP.encode())
    source = write_folder(tmp_path, {META: block(url, CONFIG_MAP)})
    with csar.open_package(source, options=ALLOWED) as package:
        assert package.read(url) == CONFIG_MAP.encode()
        package.verify()
        server.answers["/a.yaml"] = (200, {}, b"changed")
        with pytest.raises(PackageError, match="expected the sha256 hash"):
            package.read(url)


def test_the_query_is_sent_and_the_fragment_is_not(server):
    server.answers["/a?b=c"] = (200, {}, b"text")
    assert fetch.fetch(server.url("/a?b=c#d"), ALLOWED) == b"text"


def test_a_redirect_on_the_same_host_is_followed(server):
    server.answers["/a"] = (302, {"Location": "/b"}, b"")
    server.answers["/b"] = (200, {}, b"text")
    assert fetch.fetch(server.url("/a"), ALLOWED) == b"text"


def test_a_server_with_tls_has_to_prove_its_name(server, monkeypatch):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.answers["/a"] = (200, {}, b"text")
    assert "certificate" in refusal(server.url("/a", "https", "localhost"))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
    assert fetch.fetch(server.url("/a", "https", "localhost"), ALLOWED) == b"text"
    assert "certificate" in refusal(server.url("/a", "https"))


def test_a_file_url_is_read_where_it_is_allowed(tmp_path):
    (tmp_path / "a b.yaml").write_text("text")
    url = (tmp_path / "a b.yaml").as_uri()
    assert fetch.fetch(url, Options(url_schemes=("file",))) == b"text"
    too_small = Options(url_schemes=("file",), url_bytes=3)
    assert "it has more than 3 bytes (option url_bytes)" in refusal(url, too_small)
    assert "one of the schemes http, https" in refusal(url, Options())


# --- redirects ----------------------------------------------------------------------------------

REDIRECTS = {
    "another host": "http://localhost:{port}/b",
    "another scheme": "ftp://127.0.0.1/b",
    "a file": "file:///etc/hostname",
}


@pytest.mark.parametrize("location", REDIRECTS.values(), ids=REDIRECTS)
def test_a_redirect_elsewhere_is_refused(server, location):
    location = location.format(port=server.server_address[1])
    server.answers["/a"] = (302, {"Location": location}, b"")
    server.answers["/b"] = (200, {}, b"text")
    assert "only redirects to the same host are followed" in refusal(server.url("/a"))
    assert server.connections == 1


def test_the_refusal_of_another_host_asks_for_no_login(server):
    """It would choose to whom the login of the first one goes."""
    server.answers["/a"] = (302, {"Location": server.url("/b", host="localhost")}, b"")
    server.answers["/b"] = (401, {"WWW-Authenticate": 'Bearer realm="https://thief.example"'}, b"")
    with pytest.raises(PackageError) as caught:
        fetch.fetch_into(io.BytesIO(), server.url("/a"), ALLOWED, elsewhere=True)
    assert type(caught.value) is PackageError
    with pytest.raises(fetch.UnauthorizedError):
        fetch.fetch_into(io.BytesIO(), server.url("/b"), ALLOWED, elsewhere=True)


@pytest.mark.parametrize("other", ["https://a:1/", "http://b:1/", "http://a:2/", "http://a./"])
def test_an_origin_is_a_scheme_a_host_and_a_port(other):
    assert fetch.origin_of("http://a:1/x") == fetch.origin_of("HTTP://A:1/y")
    assert fetch.origin_of("http://a/") == fetch.origin_of("http://a:80")
    assert fetch.origin_of("http://a:1/") != fetch.origin_of(other)


def test_redirects_in_a_circle_end(server):
    server.answers["/a"] = (302, {"Location": "/a"}, b"")
    assert "it redirects more than 5 times" in refusal(server.url("/a"))


# --- answers ------------------------------------------------------------------------------------


def test_an_answer_that_is_no_success_is_refused(server):
    assert refusal(server.url("/none")).endswith("/none cannot be fetched: 404 'Not Found'")


def test_an_answer_over_the_size_limit_is_refused(server):
    server.answers["/big"] = (200, {}, bytes(1000))
    exact = Options(url_hosts=ALLOWED.url_hosts, url_bytes=1000)
    assert len(fetch.fetch(server.url("/big"), exact)) == 1000
    message = refusal(server.url("/big"), Options(url_hosts=ALLOWED.url_hosts, url_bytes=999))
    assert "it has more than 999 bytes (option url_bytes)" in message


def test_an_answer_that_ends_too_early_is_refused(server):
    server.answers["/cut"] = (200, {"Content-Length": "10"}, b"abc")
    assert "cannot be fetched: IncompleteRead" in refusal(server.url("/cut"))


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n\r\nabc"])
def test_a_server_that_stops_in_the_middle_is_given_up(sent):
    with socket.create_server((HERE, 0)) as silent:
        url = f"http://{HERE}:{silent.getsockname()[1]}/x"
        done = threading.Event()

        def answer() -> None:
            with silent.accept()[0] as connection:
                connection.sendall(sent)
                done.wait()

        answering = threading.Thread(target=answer)
        answering.start()
        message = refusal(url, Options(url_hosts=ALLOWED.url_hosts, url_seconds=0.3))
        done.set()
        answering.join()
    assert message.endswith(
        "/x cannot be fetched: not complete after 0.3 seconds (option url_seconds)"
    )


SLOW = {
    "a header without an end": ("http", b"HTTP/1.1 200 OK\r\nX: "),
    "a body without an end": ("http", b"HTTP/1.1 200 OK\r\n\r\n"),
    "a handshake without an end": ("https", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"),
}


@contextlib.contextmanager
def slow_server(sent: bytes):
    """A server that goes on byte by byte for four seconds: its port, and whether it came to its
    end."""
    done, ended = threading.Event(), threading.Event()
    with socket.create_server((HERE, 0)) as slow:
        slow.settimeout(20)

        def answer() -> None:
            with slow.accept()[0] as connection, contextlib.suppress(OSError):
                connection.sendall(sent)
                for _ in range(200):
                    connection.sendall(b"x")
                    if done.wait(0.02):
                        return
                ended.set()

        answering = threading.Thread(target=answer)
        answering.start()
        try:
            yield slow.getsockname()[1], ended
        finally:
            done.set()
            answering.join()


@pytest.mark.parametrize(("scheme", "sent"), SLOW.values(), ids=SLOW)
def test_a_server_that_answers_ever_so_slowly_is_given_up(scheme, sent):
    with slow_server(sent) as (port, ended):
        options = Options(url_hosts=ALLOWED.url_hosts, url_seconds=0.3)
        message = refusal(f"{scheme}://{HERE}:{port}/x", options)
        assert not ended.is_set(), "it was listened to until it ended"
    assert message.endswith(
        "/x cannot be fetched: not complete after 0.3 seconds (option url_seconds)"
    )


@pytest.mark.parametrize(("scheme", "sent"), SLOW.values(), ids=SLOW)
def test_a_connection_that_is_made_too_late_is_ended(monkeypatch, scheme, sent):
    """The timer of the deadline found no connection that it could end."""
    timers: list[threading.Timer] = []

    def start(timer):
        timers.append(timer)

    monkeypatch.setattr(threading.Timer, "start", start)
    create_connection = socket.create_connection

    def connect(*address):
        connection = create_connection(*address)
        timers[0].function()
        return connection

    monkeypatch.setattr(socket, "create_connection", connect)
    with slow_server(sent) as (port, ended):
        message = refusal(f"{scheme}://{HERE}:{port}/x")
        assert not ended.is_set(), "it was listened to until it ended"
    assert message.endswith("not complete after 30 seconds (option url_seconds)")


def test_a_name_server_that_does_not_answer_is_given_up(monkeypatch):
    """Its time counts: what is fetched after it has only the rest."""
    fetched = threading.Event()

    def resolve(*_, **__):
        assert fetched.wait(20), "the answer was waited for"
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    message = refusal("http://example.com/x", Options(url_seconds=0.3))
    fetched.set()
    assert message.endswith("not complete after 0.3 seconds (option url_seconds)")


def test_a_server_that_is_not_there_is_named():
    with socket.create_server((HERE, 0)) as gone:
        url = f"http://{HERE}:{gone.getsockname()[1]}/x"
    assert refusal(url).endswith("/x cannot be fetched: Connection refused")


# --- what is not even asked ---------------------------------------------------------------------

URLS = {
    "a scheme that is not allowed": ("ftp://example.com/a", "one of the schemes http, https"),
    "a user name": ("https://me:hunter2@example.com/a", "has a user name, which is not supported"),
    "a file": ("file:///etc/hostname", "one of the schemes http, https"),
    "a host that is none": ("http://[::1/a", "is not a valid URL"),
    "no host": ("http:///a", "is not a valid URL"),
    "a port that is none": ("http://example.com:99999/a", "is not a valid URL"),
    "a line break": ("http://example.com/a\r\nHost: x", "is not a valid URL"),
    "a space": ("http://example.com/a b", "is not a valid URL"),
}


@pytest.mark.parametrize(("url", "message"), URLS.values(), ids=URLS)
def test_a_url_that_breaks_a_rule_is_refused(url, message):
    found = refusal(url, Options())
    assert message in found
    assert "hunter2" not in found


@pytest.mark.parametrize(("url", "_"), URLS.values(), ids=URLS)
def test_no_message_has_what_may_be_the_signature_of_a_url(url, _):
    assert "hunter2" not in refusal(f"{url}?X-Signature=hunter2", Options())


def test_nor_has_one_about_a_server_that_is_not_there():
    with socket.create_server((HERE, 0)) as gone:
        url = f"http://{HERE}:{gone.getsockname()[1]}/x?X-Signature=hunter2"
    assert "hunter2" not in refusal(url)


FILES = {
    "of another host": ("file://example.com/a", "expected a file on this host"),
    "a device": ("file:///dev/zero", "no such regular file"),
    "missing": ("file:///none/such", "no such regular file"),
}


@pytest.mark.parametrize(("url", "message"), FILES.values(), ids=FILES)
def test_a_file_url_is_refused_that_names_a_file(url, message):
    assert message in refusal(url, Options(url_schemes=("file",)))


def test_a_host_that_is_not_on_the_list_is_refused():
    options = Options(url_hosts=("example.com",))
    assert "expected one of the hosts example.com" in refusal("http://example.org/a", options)


@pytest.mark.parametrize("host", [HERE, "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_a_host_that_only_we_can_reach_is_refused_unless_it_is_on_the_list(server, host):
    message = refusal(server.url("/a", host=host), Options())
    assert "is not a public address" in message
    assert f"{HERE} is at" not in message
    assert "(option url_hosts)" in message
    assert server.connections == 0


def test_every_address_of_a_host_is_judged_and_none_is_resolved_again(server, monkeypatch):
    """A name server that gives another answer at each question gets nowhere."""
    answers = iter([["93.184.216.34", HERE], [HERE]])

    def resolve(host, port, **_):
        kind = socket.AF_INET, socket.SOCK_STREAM, 6, ""
        return [(*kind, (address, port)) for address in next(answers)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    message = refusal(server.url("/a", host="rebinds.example"), Options())
    assert "rebinds.example is at 127.0.0.1, which is not a public address" in message
    assert server.connections == 0


def test_the_operators_options_hold_for_the_urls_of_a_package(tmp_path):
    source = write_folder(tmp_path, {META: block("http://127.0.0.1/a.yaml", CONFIG_MAP)})
    with (
        csar.open_package(source, options=Options(url_schemes=("file",))) as package,
        pytest.raises(PackageError, match="one of the schemes file"),
    ):
        package.verify()
