# SPDX-License-Identifier: Apache-2.0
"""The API server under test: the embedded one, or a proxy in front of a real one.

Both record the requests and take middlewares, and both tell which objects there are and what the
containers were started with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from container_update import Options, connect
from container_update.emulator.http_server import Middleware, RequestRecord
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster, Registry
from tests.functional.container_starts import CONTAINER, ContainerStarts, Start
from tests.functional.proxy import Proxy
from tests.internals.core import Collection, Json, KubernetesCluster

GROUPS = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "CronJob": "batch",
    "Lease": "coordination.k8s.io",
    "EndpointSlice": "discovery.k8s.io",
    "ClusterRole": "rbac.authorization.k8s.io",
}
"""The API groups of the kinds that are looked at, where they have one."""

Place = tuple[str, str]
"""A kind and a namespace, '' for objects that are in none."""


class Server(ABC):
    """An API server that can be looked into and disturbed."""

    front: EmbeddedCluster | Proxy
    """What clients talk to."""

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests received so far, in order."""
        return self.front.requests

    def clear_requests(self) -> None:
        """Forget the requests received so far."""
        self.front.clear_requests()

    @property
    def middlewares(self) -> list[Middleware]:
        """Called between request and response; see :mod:`container_update.emulator.faults`."""
        return self.front.middlewares

    def end_watches(self) -> None:
        """End every open watch."""
        self.front.end_watches()

    def write_kubeconfig(self, path: Path) -> str:
        """Write a kubeconfig of the administrator and return the path."""
        return str(self.front.write_kubeconfig(path))

    @abstractmethod
    def objects(self, places: Iterable[Place]) -> Mapping[Place, Sequence[Json]]:
        """Return the objects that there are."""

    @abstractmethod
    def started(self, pod: Json) -> list[Start]:
        """Return the starts of a pod's main container, the oldest first."""

    @abstractmethod
    def follow(self, namespace: str) -> None:
        """Begin to notice what happens in a new namespace."""

    @abstractmethod
    def leave(self, namespace: str) -> None:
        """Notice no longer what happens in a namespace."""


@dataclass
class EmbeddedServer(Server):
    """The embedded cluster, which is looked into from inside."""

    front: EmbeddedCluster

    def objects(self, places: Iterable[Place]) -> Mapping[Place, Sequence[Json]]:
        def read(registry: Registry) -> dict[Place, Sequence[Json]]:
            return {
                (kind, namespace): registry.list(f"{kind.lower()}s", namespace)
                for kind, namespace in places
            }

        return self.front.call(read)

    def started(self, pod: Json) -> list[Start]:
        metadata = pod["metadata"]
        place = (metadata["namespace"], metadata["name"], CONTAINER)
        return [
            Start(start.image, start.env)
            for start in self.front.behaviour.started(*place)
            if start.pod_uid == metadata["uid"]
        ]

    def follow(self, namespace: str) -> None:
        """Do nothing: the kubelet remembers what it did."""

    def leave(self, namespace: str) -> None:
        """Do nothing: the kubelet remembers what it did."""


@dataclass
class RealServer(Server):
    """A proxy in front of a real API server, which is asked directly what there is."""

    front: Proxy
    admin: KubernetesCluster
    """Its requests go past the proxy."""
    starts: ContainerStarts

    def objects(self, places: Iterable[Place]) -> Mapping[Place, Sequence[Json]]:
        return {
            (kind, namespace): self.admin.list(
                Collection(GROUPS.get(kind, ""), kind, namespace)
            ).items
            for kind, namespace in places
        }

    def started(self, pod: Json) -> list[Start]:
        return self.starts.of(pod)

    def follow(self, namespace: str) -> None:
        self.starts.follow(namespace)

    def leave(self, namespace: str) -> None:
        self.starts.leave(namespace)


@contextmanager
def running(real: str | None, behaviour: Behaviour, options: Options) -> Iterator[Server]:
    """Yield a server while the block runs.

    :param real: the administrator's kubeconfig of a real one; None: an embedded one.
    :param behaviour: how containers behave on the embedded one.
    """
    with ExitStack() as stack:
        if real is None:
            embedded = EmbeddedCluster(behaviour=behaviour, history=100_000)
            yield EmbeddedServer(stack.enter_context(embedded))
            return
        proxy = stack.enter_context(Proxy(real))
        admin = stack.enter_context(connect(real, options=options))
        starts = stack.enter_context(ContainerStarts(proxy.upstream))
        yield RealServer(proxy, admin, starts)


__all__ = ["EmbeddedServer", "RealServer", "Server", "running"]
