# SPDX-License-Identifier: Apache-2.0
"""What a Prometheus server, or what is in its place, can do to an operation that asks it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from container_update.cluster import prometheus
from container_update.cluster.prometheus import MetricError, measured
from container_update.cluster.waiting import AbortedError

GOOD = b'{"data": {"resultType": "scalar", "result": [1, "1"]}}'
HUGE = GOOD.replace(b'"1"', b"9" * 400)
"""A number that JSON has and no float is."""


class Server(ThreadingHTTPServer):
    """Answers by the first word of the path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ends = threading.Event()
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        body = GOOD if "good" in self.path else HUGE if "huge" in self.path else b""
        self.send_header("Content-Length", str(len(body) or 1000))
        self.end_headers()
        while "drip" in self.path and not self.server.ends.wait(0.02):
            try:
                self.wfile.write(b" ")
            except OSError:
                return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    with Server() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.ends.set()
        one.shutdown()


def test_a_path_in_the_url_is_kept(server: Server) -> None:
    assert measured(f"{server.url}/good/", "up == 1") == (1.0,)
    assert server.paths == ["/good/api/v1/query?query=up+%3D%3D+1"]


def test_a_number_that_is_too_large_is_no_value(server: Server) -> None:
    with pytest.raises(MetricError, match="has no value: expected a number"):
        measured(f"{server.url}/huge", "up")


def test_an_answer_that_never_ends_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_SECONDS", 0.5)
    with pytest.raises(MetricError, match=r"has not answered up within 0\.5 s"):
        measured(f"{server.url}/drip", "up")


def test_a_run_that_is_cancelled_does_not_wait_for_an_answer(server: Server) -> None:
    def pause(_: float) -> None:
        raise AbortedError

    with pytest.raises(AbortedError):
        measured(f"{server.url}/drip", "up", pause)


def test_a_redirect_is_an_error_and_not_followed(server: Server) -> None:
    with pytest.raises(MetricError, match="expected the status 200, found 302"):
        measured(f"{server.url}/redirect", "up")
    assert all(path.startswith("/redirect") for path in server.paths)


@pytest.mark.parametrize(
    "url", ["", "ftp://host", "http://", "http://user:hidden@127.0.0.1", "http://[", "http://a:x"]
)
def test_a_url_that_is_none_or_has_a_login_is_refused_without_its_text(url: str) -> None:
    with pytest.raises(MetricError, match="option prometheus") as error:
        measured(url, "up")
    assert "hidden" not in str(error.value)
