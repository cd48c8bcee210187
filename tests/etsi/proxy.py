# SPDX-License-Identifier: Apache-2.0
"""A proxy that writes the names of headers as ``Content-Type``.

The suite compares them as texts, and this service writes them in lower case; for HTTP they are the
same (RFC 9110, 5.1).
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OF_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length", "host"})


class Proxy:
    """Passes requests on to a port of this host; a context manager."""

    def __init__(self, target: int) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(target))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,))
        self.port = self._server.server_port

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(target: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            sent = {k: v for k, v in self.headers.items() if k.lower() not in _OF_CONNECTION}
            connection = http.client.HTTPConnection("127.0.0.1", target, timeout=60)
            connection.request(self.command, self.path, body, sent)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_CONNECTION:
                    self.send_header(name.title(), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815, the server's names

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler
