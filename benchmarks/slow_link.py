# SPDX-License-Identifier: Apache-2.0
"""A real API server that is far away: connections to it through a link with a latency."""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml

_CHUNK = 65536


@contextmanager
def slow_link(kubeconfig: Path, seconds: float, folder: Path) -> Iterator[Path]:
    """Yield a kubeconfig whose server is behind the link, for a ``with`` block.

    :param kubeconfig: of the server; its certificate is valid for 127.0.0.1.
    :param seconds: how much later what a client sends arrives: a request, and each flight of a
        handshake. Answers are not delayed.
    """
    found = yaml.safe_load(kubeconfig.read_text())
    servers = [each["cluster"] for each in found["clusters"]]
    with closing(socket.create_server(("127.0.0.1", 0))) as link:
        address = urlsplit(servers[0]["server"])
        threading.Thread(
            target=_accept, args=(link, (address.hostname, address.port), seconds), daemon=True
        ).start()
        for server in servers:
            server["server"] = f"https://127.0.0.1:{link.getsockname()[1]}"
        slow = folder / "kubeconfig"
        slow.write_text(json.dumps(found))
        yield slow


def _accept(link: socket.socket, server: tuple[str, int], seconds: float) -> None:
    with suppress(OSError):  # it is closed
        while True:
            client, _ = link.accept()
            there = socket.create_connection(server)
            for end in (client, there):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sent: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            for target, arguments in (
                (_take, (client, sent, seconds)),
                (_pass_on, (sent, there)),
                (_return, (there, client)),
            ):
                threading.Thread(target=target, args=arguments, daemon=True).start()


def _take(
    client: socket.socket, sent: queue.SimpleQueue[tuple[float, bytes]], seconds: float
) -> None:
    data = b"-"
    while data:
        try:
            data = client.recv(_CHUNK)
        except OSError:
            data = b""
        sent.put((time.monotonic() + seconds, data))


def _pass_on(sent: queue.SimpleQueue[tuple[float, bytes]], there: socket.socket) -> None:
    with suppress(OSError):
        while True:
            due, data = sent.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                there.shutdown(socket.SHUT_WR)
                return
            there.sendall(data)


def _return(there: socket.socket, client: socket.socket) -> None:
    with suppress(OSError), closing(there), closing(client):
        while data := there.recv(_CHUNK):
            client.sendall(data)
