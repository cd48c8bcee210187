# SPDX-License-Identifier: Apache-2.0
"""The cluster of a benchmark, the embedded one or a real one, and its namespaces."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks import embedded
from container_update.cluster import kubeconfig as kubeconfigs
from container_update.cluster.client import KubernetesCluster, connect
from container_update.engine.verbs import install
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.requests import UpdateRequest
from container_update.vnfm.commands.vim_config import vim_config

COMMAND = (sys.executable, "-m", "container_update")
_GONE_SECONDS = 600.0


@dataclass(frozen=True)
class Access:
    """Where a cluster is, and who may change it; see ``tests.tacker.operator.ClusterAccess``."""

    url: str
    ca_text: str
    token: str = field(repr=False)


class Counter(Protocol):
    """What sees the requests of a cluster."""

    def counted(self, counts: dict[str, int]) -> AbstractContextManager[None]:
        """Count the requests of the block."""


@dataclass(frozen=True)
class Target:
    """A cluster, as the programs that are compared reach it."""

    kubeconfig: str
    context: str | None
    cluster: KubernetesCluster
    process: embedded.Process | None = None
    """Of the embedded cluster."""
    counter: Counter | None = None
    """Counts the requests that a real cluster gets."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def arguments(self) -> list[str]:
        """The arguments of a command that name it."""
        context = ["--context", self.context] if self.context else []
        return ["--kubeconfig", self.kubeconfig, *context]

    @contextmanager
    def observed(self) -> Iterator[dict[str, int]]:
        """Yield what is to have the counts of the requests of the block, where they can be seen;
        each takes as long as was chosen."""
        counts: dict[str, int] = {}
        if self.process is None:
            with self.counter.counted(counts) if self.counter else nullcontext():
                yield counts
            return
        with self.process.observed() as found:
            yield counts
        counts |= found.counts

    @contextmanager
    def instantiated(
        self, request: UpdateRequest, by: Install | None = None
    ) -> Iterator[UpdateRequest]:
        """Instantiate the old package in a new namespace; yield the request for it.

        :param by: the program that instantiates it; None: ours.
        """
        name = f"benchmark-{time.time_ns():x}-{next(self._numbers)}"
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.cluster.create(namespace)
        try:
            request = replace(request, namespace=name, instance_id=name)
            (by or _install)(request, self)
            yield request
        finally:
            self.delete([name])

    def delete(self, namespaces: Iterable[str]) -> None:
        """Delete namespaces and wait until they are gone: the next run has the cluster alone."""
        keys = [ObjectKey("", "Namespace", "", name) for name in namespaces]
        for key in keys:
            self.cluster.delete(key)
        deadline = time.monotonic() + _GONE_SECONDS
        while there := [key for key in keys if self._is_there(key)]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{there[0]} is still there after {_GONE_SECONDS:.0f} s")
            keys = there
            time.sleep(0.2)

    def delete_all(self, prefix: str) -> None:
        """Delete all namespaces whose names begin so, as :meth:`delete` does."""
        listed = self.cluster.list(Collection("", "Namespace", "")).items
        names = [str(body["metadata"]["name"]) for body in listed]
        self.delete(name for name in names if name.startswith(prefix))

    def _is_there(self, key: ObjectKey) -> bool:
        try:
            return self.cluster.get(key) is not None
        except ClusterError as error:
            if not error.transient:
                raise
            return True  # the server is busy with deleting

    @property
    def access(self) -> Access:
        """Return how a VNFM reaches it.

        :raises ClusterError: the login of the kubeconfig has no place in a VIM.
        """
        kubeconfig = kubeconfigs.read(kubeconfigs.files(self.kubeconfig))
        found = vim_config(kubeconfig, self.context, None)
        token = found.get("bearer_token")
        if token is None:
            raise ClusterError(f"{self.kubeconfig}: expected a token, found a password")
        return Access(found["auth_url"], found.get("ssl_ca_cert", ""), token)

    def crowd(self, namespace: str, number: int) -> None:
        """Create pods of others in a namespace, which no scheduler binds to a node."""
        with ThreadPoolExecutor(16) as pool:
            for _ in pool.map(self._create_foreign, [namespace] * number, range(number)):
                pass

    def _create_foreign(self, namespace: str, number: int) -> None:
        self.cluster.create(_foreign(namespace, number))


Install = Callable[[UpdateRequest, Target], object]


def _install(request: UpdateRequest, target: Target) -> None:
    install(
        request.old,
        target.cluster,
        def_files=request.def_files,
        namespace=request.namespace,
        instance_id=request.instance_id,
    )


def _foreign(namespace: str, number: int) -> Json:
    labels = {"app": f"other-{number % 100}", "app.kubernetes.io/name": f"other-{number % 100}"}
    env = [{"name": f"SETTING_{index}", "value": "a value of thirty characters ."}
           for index in range(20)]  # fmt: skip
    container: dict[str, Any] = {"name": "main", "image": "other:1", "env": env}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-{number}", "namespace": namespace, "labels": labels},
        "spec": {"schedulerName": "nobody", "containers": [container]},
    }


@contextmanager
def embedded_target(folder: Path, slow: float, latency: float) -> Iterator[Target]:
    """Run the embedded cluster in a process of its own.

    :param slow: how long a container takes from its start until it is ready, in seconds.
    :param latency: how long each request of an observed program takes.
    """
    kubeconfig = str(folder / "kubeconfig")
    with embedded.process(kubeconfig, slow, latency) as process, connect(kubeconfig) as cluster:
        yield Target(kubeconfig, None, cluster, process)


@contextmanager
def real(kubeconfig: str, context: str | None, counter: Counter | None = None) -> Iterator[Target]:
    """Connect to a real cluster: the account creates and deletes namespaces."""
    with connect(kubeconfig, context) as cluster:
        yield Target(kubeconfig, context, cluster, counter=counter)
