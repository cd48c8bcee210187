# SPDX-License-Identifier: Apache-2.0
"""A connection that ends in its TLS handshake ends no operation: the request goes out again."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from container_update import connect
from tests.functional.cnf import Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import config_map

CUT = 2
"""Every second connection is cut."""
HELLO = 1


class Relay:
    """Passes the bytes of every other connection on, and cuts the rest at their first byte, as a
    load balancer does whose backend has just gone."""

    def __init__(self, host: str, port: int) -> None:
        self._behind = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the test is over
            for number in itertools.count():
                client, _ = self._listener.accept()
                if number % CUT:
                    client.recv(HELLO)
                    client.shutdown(socket.SHUT_WR)
                    client.close()
                    self.cut += 1
                    continue
                server = socket.create_connection(self._behind)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()

    def close(self) -> None:
        self._listener.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(65536):
            target.sendall(received)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def behind_relay(kubeconfig: str, path: Path) -> Iterator[tuple[Relay, str]]:
    """Yield a relay, and a kubeconfig that leads through it."""
    content = yaml.safe_load(Path(kubeconfig).read_text())
    (cluster,) = [each["cluster"] for each in content["clusters"]]
    url = urlsplit(cluster["server"])
    with closing(Relay(url.hostname or "", url.port or 443)) as relay:
        cluster["server"] = f"https://127.0.0.1:{relay.port}"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        yield relay, str(path)


def test_an_update_survives_connections_that_end_in_their_handshake(
    cnf: Cnf, kubeconfig: str, tmp_path: Path
) -> None:
    names = [f"c{number}" for number in range(30)]
    old, new = (
        {name: config_map(name, key=version) for name in names} for version in ("old", "new")
    )
    cnf.instantiate(**old)
    with (
        behind_relay(kubeconfig, tmp_path / "through-relay") as (relay, path),
        connect(path, options=OPTIONS) as cluster,
    ):
        replace(cnf, cluster=cluster).update(new)
        assert relay.cut > 1
    for name in names:
        assert cnf.get("ConfigMap", name)["data"] == {"key": "new"}
