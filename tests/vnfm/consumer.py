# SPDX-License-Identifier: Apache-2.0
"""A consumer of notifications: an HTTP server on loopback that records its requests."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)


@dataclass
class Consumer:
    """Answers 204 unless configured otherwise; a context manager."""

    requests: list[ReceivedRequest] = field(default_factory=list)
    statuses: deque[int] = field(default_factory=deque)
    """The statuses of the next responses; afterwards 204."""
    tokens: deque[str] = field(default_factory=deque)
    """The tokens that POST /token returns, in order."""
    unresponsive: threading.Event = field(default_factory=threading.Event)
    """While it is set no request is answered."""

    def __post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def posted(self, path: str = "/") -> list[ReceivedRequest]:
        return [each for each in self.requests if each.method == "POST" and each.path == path]

    def __enter__(self) -> Consumer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        consumer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def _answer(self) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                consumer.requests.append(
                    ReceivedRequest(self.command, self.path, dict(self.headers), text)
                )
                if consumer.unresponsive.is_set():
                    consumer.closing.wait(30)
                    return
                if self.path == "/token":
                    token = {"access_token": consumer.tokens.popleft(), "expires_in": 3600}
                    self._send(200, json.dumps(token).encode())
                    return
                self._send(consumer.statuses.popleft() if consumer.statuses else 204, b"")

            def _send(self, status: int, content: bytes) -> None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler
