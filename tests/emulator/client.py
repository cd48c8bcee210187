# SPDX-License-Identifier: Apache-2.0
"""A plain HTTP client for the tests: no Kubernetes library stands between them and the server."""

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

DEADLINE_SECONDS = 30.0


@dataclass
class Answer:
    """The server's response."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Server(Protocol):
    """An API server on loopback: an embedded cluster, or a real one."""

    @property
    def port(self) -> int: ...
    @property
    def ca_text(self) -> str: ...
    @property
    def token(self) -> str: ...


class Api:
    """Requests to a server, over one kept connection."""

    def __init__(self, cluster: Server) -> None:
        self.cluster = cluster
        self._context = ssl.create_default_context(cadata=cluster.ca_text)
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.cluster.port, timeout=DEADLINE_SECONDS, context=self._context
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """Send a request; *token* '' sends none."""
        token = self.cluster.token if token is None else token
        sent_headers = {"Authorization": f"Bearer {token}"} if token else {}
        sent_headers |= headers or {}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent_headers.setdefault("Content-Type", "application/json")
        self._connection.request(method, path, data, sent_headers)
        response = self._connection.getresponse()
        text = response.read().decode()
        parsed = json.loads(text) if text.startswith(("{", "[")) else text
        return Answer(response.status, parsed, dict(response.getheaders()))

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: Any) -> Answer:
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Answer:
        return self.request("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Answer:
        return self.request("DELETE", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge-patch") -> Answer:
        return self.request("PATCH", path, body, {"Content-Type": f"application/{kind}+json"})

    def watch(self, path: str, flag: str = "true", **headers: str) -> Iterator[Any]:
        """Yield the events of a watch until the server ends it."""
        connection = self._connect()
        separator = "&" if "?" in path else "?"
        sent_headers = {"Authorization": f"Bearer {self.cluster.token}"} | headers
        connection.request("GET", f"{path}{separator}watch={flag}", headers=sent_headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        try:
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def close(self) -> None:
        self._connection.close()


def eventually(read: Callable[[], Any], is_done: Callable[[Any], bool], condition: str) -> Any:
    """Call *read* until its value *is_done* and return it; fail with the last value in the end."""
    end = time.monotonic() + DEADLINE_SECONDS
    while True:
        value = read()
        if is_done(value):
            return value
        assert time.monotonic() < end, (
            f"{condition}: not within {DEADLINE_SECONDS} s; last: {value}"
        )
        time.sleep(0.005)
