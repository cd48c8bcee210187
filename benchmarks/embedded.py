# SPDX-License-Identifier: Apache-2.0
"""The embedded cluster in a process of its own, as far away as is wished, with a log of requests.

    python -m benchmarks.embedded KUBECONFIG SECONDS

Each line on the standard input is the latency of the requests from now on; it is answered by a line
with those since the last one. What a distance costs is how many requests wait for one another.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import web

from container_update.emulator.faults import is_watch
from container_update.emulator.http_server import Handler
from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.emulator.kubernetes.objects import condition_of


@dataclass(frozen=True)
class Request:
    """A request; a watch has ended when it is accepted."""

    method: str
    path: str
    began: float
    ended: float

    @property
    def writes(self) -> bool:
        """Tell whether it changes an object of the VNF: none of what is only about the run."""
        own = ("leases", "selfsubject", "/secrets/container-update", "/events")
        is_record = self.path.endswith("/secrets") and self.method == "POST"
        return self.method != "GET" and not is_record and not any(a in self.path for a in own)


@dataclass
class Requests:
    """The requests of one run of a program."""

    all: list[Request] = field(default_factory=list)
    ready: float = 0.0
    """When a pod last became Ready."""

    @property
    def counts(self) -> dict[str, int]:
        """How many there were; and of those that waited for one another how many there were before
        the first write of the VNF, and after its last pod was Ready."""
        first = min((each.began for each in self.all if each.writes), default=float("inf"))
        return {
            "requests": len(self.all),
            "round trips": _one_after_another(self.all),
            "before the first write": _one_after_another(r for r in self.all if r.ended <= first),
            "after the last pod": _one_after_another(r for r in self.all if r.began > self.ready),
        }


def _one_after_another(requests: Iterable[Request]) -> int:
    """Return the length of the longest chain of requests of which each began after the last."""
    number, until = 0, float("-inf")
    for request in sorted(requests, key=lambda each: each.ended):
        if request.began >= until:
            number, until = number + 1, request.ended
    return number


@dataclass
class Distant:
    """A middleware that lets each request wait, and keeps a record of it."""

    latency: float = 0.0
    requests: list[Request] = field(default_factory=list)
    ready: float = 0.0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Respond after the latency; see Middleware."""
        began, is_endless = time.monotonic(), is_watch(request)
        await asyncio.sleep(self.latency)
        if is_endless:
            self._add(request, began)
        response = await handler(request)
        if not is_endless:
            self._add(request, began)
        return response

    def _add(self, request: web.Request, began: float) -> None:
        self.requests.append(Request(request.method, request.path, began, time.monotonic()))

    def see(self, event: str, resource: str, new: Any, old: Any) -> None:
        """Note when a pod becomes Ready; see Subscriber."""
        if event == "MODIFIED" and resource == "pods":
            before, now = (condition_of(pod, "Ready") or {} for pod in (old, new))
            if (before.get("status"), now.get("status")) == ("False", "True"):
                self.ready = time.monotonic()

    def take(self, latency: float) -> dict[str, Any]:
        """Begin a new record with another latency; return the one before as plain values."""
        found = {"all": [asdict(each) for each in self.requests], "ready": self.ready}
        self.requests.clear()
        self.latency = latency
        return found


@dataclass(frozen=True)
class Process:
    """The process of a cluster."""

    running: subprocess.Popen[str]
    latency: float

    @contextmanager
    def observed(self) -> Iterator[Requests]:
        """Yield what has the requests of the block once it has ended; only these take long."""
        self._take(self.latency)
        requests = Requests()
        yield requests
        found = self._take(0)
        requests.all += [Request(**each) for each in found["all"]]
        requests.ready = found["ready"]

    def _take(self, latency: float) -> Any:
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        self.running.stdin.write(f"{latency}\n")
        self.running.stdin.flush()
        return json.loads(self.running.stdout.readline())


@contextmanager
def process(kubeconfig: str, slow: float, latency: float) -> Iterator[Process]:
    """Run a cluster, and write its kubeconfig.

    :param slow: how long a container takes from its start until it is ready, in seconds.
    :param latency: how long each observed request takes.
    """
    command = [sys.executable, "-m", "benchmarks.embedded", kubeconfig, str(slow)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield Process(running, latency)  # ends with its standard input


def main() -> None:
    """Run the cluster until the standard input ends."""
    kubeconfig, slow = sys.argv[1:]
    distant = Distant()
    with EmbeddedCluster() as cluster:
        cluster.behaviour.ready_seconds = float(slow)
        cluster.middlewares.append(distant)
        cluster.call(lambda registry: registry.subscribe(distant.see))
        cluster.write_kubeconfig(kubeconfig)
        print(flush=True)
        for line in sys.stdin:
            latency = float(line)
            print(json.dumps(cluster.call(lambda _: distant.take(latency))), flush=True)  # noqa: B023


if __name__ == "__main__":
    main()
