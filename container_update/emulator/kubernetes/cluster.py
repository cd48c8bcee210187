# SPDX-License-Identifier: Apache-2.0
"""The embedded cluster as a whole: an API server, its controllers and nodes, on one thread."""

from __future__ import annotations

import base64
import os
import secrets
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import trustme
import yaml

from container_update.emulator import private_file
from container_update.emulator.http_server import HttpServerThread
from container_update.emulator.kubernetes.api.server import ApiServer
from container_update.emulator.kubernetes.controllers import start
from container_update.emulator.kubernetes.controllers.base import Controller
from container_update.emulator.kubernetes.kubelet import Behaviour
from container_update.emulator.kubernetes.kubelet.logs import read_log
from container_update.emulator.kubernetes.registry import FIRST_NAMESPACES, Registry
from container_update.emulator.kubernetes.watches import Watches

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class EmbeddedCluster(HttpServerThread):
    """A Kubernetes API server on loopback, with controllers and nodes that act like real ones.

    Use it as a context manager, or :meth:`start` and :meth:`stop` it. At first it holds only its
    nodes and the namespaces 'default' and 'kube-system'. Nothing is stored when it stops.

    :param port: where to listen on 127.0.0.1; 0 for any free port.
    :param token: the administrator's bearer token; by default a random one.
    :param nodes: how many nodes it has.
    :param behaviour: how containers behave on them; it may be changed while the cluster runs.
    :param history: how many past events of each resource a watch can start from.
    :param controllers: controllers to start beside the built-in ones, for custom resources.

    Example::

        from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster

        with EmbeddedCluster(behaviour=Behaviour(bad_images=["*broken*"])) as cluster:
            path = cluster.write_kubeconfig("cluster.yaml")
            kubernetes.config.load_kube_config(str(path))
            kubernetes.client.CoreV1Api().list_namespace()
            assert [record.path for record in cluster.requests] == ["/api/v1/namespaces"]
    """

    def __init__(  # noqa: PLR0913, what a test may choose
        self,
        *,
        port: int = 0,
        token: str | None = None,
        nodes: int = 1,
        behaviour: Behaviour | None = None,
        history: int = 10_000,
        controllers: Iterable[type[Controller]] = (),
    ) -> None:
        super().__init__("embedded-cluster")
        self.port = port
        self.token = token or secrets.token_urlsafe(24)
        self.behaviour = behaviour or Behaviour()
        self._nodes = nodes
        self._controllers = tuple(controllers)
        self._certificates = _certificates()
        self._registry = Registry()
        self._watches = Watches(self._registry, history)
        self._server: ApiServer = ApiServer(
            self._registry, self._watches, self.token, partial(read_log, self.behaviour)
        )

    async def _open(self) -> None:
        self.port = await self._server.start(self.port, self._certificates.context)
        for name in FIRST_NAMESPACES:
            self._registry.create("namespaces", "", {"metadata": {"name": name}})
        self._running = start(
            self._registry, self._loop, self.behaviour, self._nodes, self._controllers
        )

    async def _close(self) -> None:
        self._running.stop()
        await self._server.stop()

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_text(self) -> str:
        """The certificate (PEM) of the authority that signed the server's."""
        return self._certificates.ca_text

    def kubeconfig(self) -> str:
        """Return a kubeconfig (YAML) with the address, the authority and the token."""
        name = "embedded"
        authority = base64.b64encode(self.ca_text.encode()).decode("ascii")
        cluster = {"server": self.url, "certificate-authority-data": authority}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}
            ],
            "current-context": name,
        }
        return yaml.safe_dump(content, sort_keys=False)

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> Path:
        """Write the kubeconfig, readable by its owner only, and return the path."""
        return private_file.write(path, self.kubeconfig())

    def call(
        self,
        function: Callable[Concatenate[Registry, Parameters], Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Run ``function(registry, ...)`` on the cluster's own thread and return its result.

        The only way to read or write objects without the HTTP side.
        """
        return self._on_loop(lambda: function(self._registry, *args, **kwargs))

    def end_watches(self) -> None:
        """End every open watch, as a server does when it restarts."""
        self.call(lambda _: self._watches.close_all())

    def forget_history(self) -> None:
        """Make every resourceVersion but the present one too old to watch from (410)."""
        self.call(lambda _: self._watches.forget_history())


@dataclass(frozen=True)
class _Certificates:
    """A new certificate authority and a server certificate for loopback: kubectl sends a token only
    over TLS."""

    ca_text: str
    """The authority's certificate (PEM), which clients have to trust."""
    context: ssl.SSLContext
    """The context for the server."""


def _certificates() -> _Certificates:
    """Create certificates for 127.0.0.1 and localhost, with elliptic keys: they are made fast."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return _Certificates(authority.cert_pem.bytes().decode("ascii"), context)
