# SPDX-License-Identifier: Apache-2.0
"""What one process of the service carries: lists in a large database, and updates at once.

Each case runs on SQLite, and on PostgreSQL if Debian's package is installed. The service is
``container-update serve`` as a process of its own, with 8 workers; it shares the machine with its
clients and, unless the VNFs are on another cluster, with an embedded one. Filters are those of
``list_pages``, rows those of ``records``.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

from benchmarks import list_pages, records
from benchmarks.clusters import COMMAND, Target
from benchmarks.cnf import Images
from benchmarks.figures import OURS, Row, Run, peak_mib_of
from benchmarks.readers import reading
from container_update.cluster.client import connect
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from container_update.vnfm.store.database import Database
from tests.vnfm import fleet, postgres, vnfs
from tests.vnfm.client import Client
from tests.vnfm.test_load import client_of

LISTS, AT_ONCE = "service: lists and filters", "service: filtered lists at once"
UPDATES = {api: f"service: updates at once, {api}" for api in ("v1", "v2")}
CASES = (LISTS, AT_ONCE, *UPDATES.values())

_SLOW_SECONDS = 0.1
_START_SECONDS = 60.0
_CONFIGURATION = """[vnfm]
auth = none
lock_seconds = 1
operation_seconds = 0
"""
"""No operation is deleted because it is old."""


@dataclass(frozen=True)
class Server:
    """A process of the service."""

    url: str
    process: int

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it has used."""
        return time.clock_gettime(~self.process << 3 | 2)  # as of clock_getcpuclockid(3)


def rows(
    runs: int, images: Images, target: Target | None, *, small: bool, cases: Sequence[str] = CASES
) -> Iterator[Row]:
    """Yield the figures of the cases on each database.

    :param images: of the VNFs before and after.
    :param target: the cluster of the VNFs; None: an embedded one for each run.
    :param small: as a test runs them.
    """
    operations, lists, updates = (200, 8, 2) if small else (10_000, 40, 50)
    if not set(CASES) & set(cases):
        return  # PostgreSQL need not be started
    for name, create in databases():
        print(f"service on {name} ...", flush=True)
        if LISTS in cases:
            yield Row(f"{LISTS}, {name}", operations, OURS, each_list(create, operations, runs))
        if AT_ONCE in cases:
            found = [lists_at_once(create, operations, lists) for _ in range(runs)]
            yield Row(f"{AT_ONCE}, {name}", lists, OURS, found)
        for api, case in UPDATES.items():
            if case in cases:
                found = [updates_at_once(create, api, updates, images, target) for _ in range(runs)]
                yield Row(f"{case}, {name}", updates, OURS, found)


Create = Iterator[str]
"""Yields the URLs of empty databases, '' for SQLite in the service's folder."""


def databases() -> Iterator[tuple[str, Create]]:
    """Yield the name of each kind of database, and what makes empty ones while it is used."""
    yield "SQLite", iter(str, None)
    binaries = postgres.find()
    if binaries is not None:
        with postgres.running(binaries) as server:
            yield "PostgreSQL", iter(server.create_database, None)


@contextmanager
def serving(url: str, operations: int = 0) -> Iterator[Server]:
    """Run the service for the ``with`` block, with so many operations in its database."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "state").mkdir(mode=0o700)
        database = Database(url or f"sqlite:///{folder / 'state' / 'vnfm.sqlite'}")
        database.upgrade()
        records.store(database, operations)
        database.close()
        (folder / "vnfm.conf").write_text(_CONFIGURATION)
        config = str(folder / "vnfm.conf")
        command = [*COMMAND, "vnfm", "serve", "--config-file", config, "--port", "0",
                   "--state-dir", str(folder / "state")]  # fmt: skip
        command += ["--database-url", url] if url else []
        log = stack.enter_context((folder / "log").open("wb"))
        process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        )
        stack.callback(process.terminate)
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        _wait_until_ready(address)
        yield Server(address, process.pid)


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not requests.get(f"{address}/readyz", timeout=_START_SECONDS).ok:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the service on {address} is not ready")
        time.sleep(0.1)


# --- lists --------------------------------------------------------------------------------------


def each_list(create: Create, operations: int, runs: int) -> list[Run]:
    """Request each list, one after the other; return a run for each with the median of its times.

    The counts are those of all of them.
    """
    found = []
    with serving(next(create), operations) as server, _session() as session:
        for path in list_pages.requests(operations):
            times, before = [], server.cpu_seconds
            for _ in range(runs):
                began = time.monotonic()
                answer = session.get(server.url + path, timeout=60)
                times.append(time.monotonic() - began)
                answer.raise_for_status()
            entries = len(answer.json())
            cpu_seconds = (server.cpu_seconds - before) / runs
            found.append(Run(statistics.median(times), cpu_seconds, counts={"entries": entries}))
        peak = peak_mib_of(server.process)
    counts = {
        "lists": len(found),
        "over 100 ms": sum(run.seconds > _SLOW_SECONDS for run in found),
        "over 100 ms of CPU": sum(run.cpu_seconds > _SLOW_SECONDS for run in found),
        "most ms of CPU": round(1000 * max(run.cpu_seconds for run in found)),
        "entries": sum(run.counts["entries"] for run in found),
    }
    return [Run(run.seconds, run.cpu_seconds, peak, counts) for run in found]


def lists_at_once(create: Create, operations: int, number: int) -> Run:
    """Request so many lists at the same time, each with a filter that judges every operation."""
    with serving(next(create), operations) as server, ThreadPoolExecutor(number) as pool:
        paths = list_pages.scans(operations, number)
        began, before = time.monotonic(), server.cpu_seconds
        answers = list(pool.map(lambda path: _get(server.url + path), paths))
        seconds = time.monotonic() - began
        for answer in answers:
            answer.raise_for_status()
        counts = {"entries": sum(len(answer.json()) for answer in answers)}
        return Run(seconds, server.cpu_seconds - before, peak_mib_of(server.process), counts)


def _get(url: str) -> requests.Response:
    with _session() as session:
        return session.get(url, timeout=300)


def _session() -> requests.Session:
    session = requests.Session()
    session.headers["Version"] = "2.0.0"
    return session


# --- updates ------------------------------------------------------------------------------------


def updates_at_once(
    create: Create, api: str, number: int, images: Images, target: Target | None
) -> Run:
    """Update so many VNFs at the same time, while others read; seconds are those until all ended.

    A VNF is a Deployment with two pods and its ConfigMap.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        target = target or stack.enter_context(_embedded(folder))
        server = stack.enter_context(serving(next(create)))
        client = client_of(server, api, 300)
        prefix = f"benchmark-{time.time_ns():x}-"
        stack.callback(target.delete_all, prefix)
        instances = fleet.launch(
            client, target.access, target.cluster, folder, number,
            images=(images.old, images.new), prefix=prefix,
        )  # fmt: skip
        with reading(server.url, instances.paths[0]) as read:
            before, began = server.cpu_seconds, time.monotonic()
            begun = [_update(client, instances, path) for path in instances.paths]
            states = {client.settled(operation)["operationState"] for operation in begun}
            seconds = time.monotonic() - began
            cpu_seconds = server.cpu_seconds - before
        if states != {"COMPLETED"}:
            raise RuntimeError(f"updates ended {', '.join(sorted(states))}")
        counts = {"updates a minute": round(60 * number / seconds), **read}
        return Run(seconds, cpu_seconds, peak_mib_of(server.process), counts)


@contextmanager
def _embedded(folder: Path) -> Iterator[Target]:
    """Run an embedded cluster in this process, whose containers are ready at once."""
    with EmbeddedCluster(behaviour=Behaviour()) as cluster:
        kubeconfig = str(cluster.write_kubeconfig(folder / "kubeconfig"))
        with connect(kubeconfig) as kubernetes:
            yield Target(kubeconfig, None, kubernetes)


def _update(client: Client, instances: fleet.Fleet, path: str) -> str:
    """Begin to update a VNF to its other version; return the operation's path."""
    now = client.call("GET", path)["vnfdId"]
    return client.begin("PATCH", path, vnfs.modification(instances.other(now)))
