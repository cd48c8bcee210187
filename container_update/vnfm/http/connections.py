# SPDX-License-Identifier: Apache-2.0
"""Connections of clients: their number, and the time that the headers of a request may take.

uvicorn limits the number of connections and the time between two requests, but not the time for the
headers of a request: a silent connection would hold its place for ever.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.settings import Settings

MAX_CONNECTIONS = 256
"""Of all clients together; a request on one more is answered with 503."""
ENDLESS = "/view/events"
"""The resource whose responses never end: they are cut when the service stops."""
STOP_SECONDS = 10
"""Maximum time for the requests that run when the service stops; then their connections are cut."""
HEADER_SECONDS = 10.0
"""Maximum time for the headers of a request, from the connection or the response before."""


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration; ContainerUpdateError: the certificate or key is of no use."""
    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
    )
    try:
        config.load()
    except OSError as error:  # also what ssl raises; neither has the name of the file
        raise _unusable(settings, error.strerror) from error
    return config


def check_certificate(settings: Settings) -> None:
    """Load certificate and key as the server does; ContainerUpdateError: they cannot be used."""

    def refuse() -> str:
        raise _unusable(settings, "the key has a passphrase, for which no person could be asked")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, refuse)
    except OSError as error:
        raise _unusable(settings, error.strerror) from error


def _unusable(settings: Settings, cause: str | None) -> ContainerUpdateError:
    return ContainerUpdateError(
        f"tls_cert {settings.tls_cert}, tls_key {settings.tls_key}: expected a certificate and "
        f"its private key in PEM, which the service's user may read: {cause}"
    )


class Connection(H11Protocol):
    """A connection that is closed if the headers of a request do not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    @property
    def _owes_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends; a part of the headers does not prolong the time for them."""
        super().data_received(data)
        if not self._owes_request:
            self._cancel_deadline()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; what the application still says comes too late."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # it has answered already
            self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, if it has not arrived already."""
        self._cancel_deadline()
        self._await_request()
        super().on_response_complete()
        if not self._owes_request:
            self._cancel_deadline()

    def shutdown(self) -> None:
        """End the connection when the service stops: at once, or after the response."""
        super().shutdown()
        if not self._owes_request and self.scope["path"] == ENDLESS:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._drop)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop(self) -> None:
        """Close the connection at once: what is in its buffers may never be read either."""
        self.connections.discard(self)
        self.transport.abort()
