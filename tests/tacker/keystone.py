# SPDX-License-Identifier: Apache-2.0
"""Stands in for Keystone where a client logs in: one user, any password, a catalog."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

PROJECT = "6f1c2f0e-53a4-4f5b-9a53-6d0b7a1f0001"
OTHERS = ("image", "volumev3", "compute", "orchestration", "network")
"""Services that Tacker's tests make clients of and never call."""


@contextlib.contextmanager
def running(tacker_url: str) -> Iterator[str]:
    """Serve on a free port for a ``with`` block; yield the URL that clients log in at."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    server.documents = _documents(url, tacker_url)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _documents(url: str, tacker_url: str) -> dict[str, Any]:
    version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{url}/v3/"}]}
    services = {"nfv-orchestration": f"{tacker_url}/", "identity": f"{url}/v3"}
    services |= {name: f"{url}/{name}" for name in OTHERS}
    now, form = datetime.datetime.now(datetime.timezone.utc), "%Y-%m-%dT%H:%M:%S.000000Z"
    domain = {"id": "default", "name": "Default"}
    token = {
        "methods": ["password"],
        "user": {"id": "user", "name": "tester", "domain": domain},
        "project": {"id": PROJECT, "name": "tests", "domain": domain},
        "roles": [{"id": "admin", "name": "admin"}],
        "issued_at": now.strftime(form),
        "expires_at": (now + datetime.timedelta(days=1)).strftime(form),
        "catalog": [_service(name, address) for name, address in services.items()],
    }
    return {
        "": {"versions": {"values": [version]}},
        "/v3": {"version": version},
        "/v3/auth/tokens": {"token": token},
    }


def _service(name: str, url: str) -> dict[str, Any]:
    return {
        "type": name,
        "name": name,
        "id": name,
        "endpoints": [
            {"id": each, "interface": each, "region": "RegionOne", "region_id": "RegionOne"}
            | {"url": url}
            for each in ("public", "internal", "admin")
        ],
    }


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the document of the path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer the discovery of versions."""
        self._answer(200)

    def do_POST(self) -> None:
        """Answer a login."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(201)

    def _answer(self, status: int) -> None:
        documents: dict[str, Any] = self.server.documents  # type: ignore[attr-defined]
        body = json.dumps(documents.get(self.path.rstrip("/"), {})).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Subject-Token", "token")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
