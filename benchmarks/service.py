"""What one process of the service carries: updates a minute, and how long readers wait meanwhile.

    python benchmarks/service.py          20 VNF instances of each API, 20 readers, 10 viewers
    python benchmarks/service.py -n 50    more instances

Starts the embedded cluster and the service, which has its 8 workers and SQLite, instantiates small
VNFs (a Deployment with two pods and its ConfigMap), and updates all of them at once, there and
back. Readers show an instance twice a second; viewers follow the events of the page. All of it
shares the machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from container_update.cluster.client import connect  # noqa: E402
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster  # noqa: E402
from tests.vnfm import fleet  # noqa: E402
from tests.vnfm.served import Served, served  # noqa: E402
from tests.vnfm.test_load import client_of, modify  # noqa: E402

READERS, VIEWERS = 20, 10
PAUSE_SECONDS = 0.5
"""Of a reader, between an answer and its next request."""


class Readers:
    """Clients that read at a pace, and how long each answer took, in seconds."""

    def __init__(self, url: str, path: str) -> None:
        self.seconds: list[float] = []
        self.refused = 0
        self._url = url + path
        self._stop = threading.Event()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read during the ``with`` block."""
        threads = [threading.Thread(target=self._read) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _read(self) -> None:
        with requests.Session() as session:
            session.headers["Version"] = "2.0.0"
            while not self._stop.is_set():
                began = time.monotonic()
                answer = session.get(self._url, timeout=60)
                self.seconds.append(time.monotonic() - began)
                self.refused += not answer.ok
                self._stop.wait(PAUSE_SECONDS)


@contextmanager
def viewing(url: str) -> Iterator[list[int]]:
    """Follow the events during the ``with`` block; yield a list with the bytes of each part."""
    sizes: list[int] = []

    def follow(answer: requests.Response) -> None:
        try:
            sizes.extend(len(part) for part in answer.iter_content(None))
        except (requests.exceptions.RequestException, AttributeError):
            return  # it is closed below, in the middle of a part

    answers = [requests.get(f"{url}/view/events", stream=True, timeout=60) for _ in range(VIEWERS)]
    threads = [threading.Thread(target=follow, args=(each,), daemon=True) for each in answers]
    for thread in threads:
        thread.start()
    try:
        yield sizes
    finally:
        for answer in answers:
            answer.close()


def measure(api: str, count: int, service: Served, cluster: EmbeddedCluster, folder: Path) -> None:
    """Update all instances of an API there and back, and print the figures."""
    client = client_of(service, api, 300)
    with connect(str(cluster.write_kubeconfig(folder / "kubeconfig"))) as kubernetes:
        instances = fleet.launch(client, cluster, kubernetes, folder, count)
    readers = Readers(service.url, instances.paths[0])
    with viewing(service.url) as sizes, readers.reading():
        began = time.monotonic()
        for _ in range(2):
            begun = [modify(client, instances, path) for path in instances.paths]
            states = {client.settled(operation)["operationState"] for operation in begun}
            assert states == {"COMPLETED"}, states
        took = time.monotonic() - began
    hundredths = statistics.quantiles(readers.seconds, n=100)
    print(
        f"{api}: {2 * count} updates in {took:.1f} s, {120 * count / took:.0f} a minute; "
        f"{len(readers.seconds) / took:.0f} reads a second, {readers.refused} refused, median "
        f"{1000 * hundredths[49]:.0f} ms, p99 {1000 * hundredths[98]:.0f} ms; "
        f"{sum(sizes) / VIEWERS / took / 1024:.1f} KiB a second for each of {VIEWERS} viewers"
    )


def main() -> None:
    """Measure both APIs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-n", type=int, default=20, help="VNF instances of each API")
    count = parser.parse_args().n
    for api in ("v1", "v2"):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            cluster = stack.enter_context(EmbeddedCluster(behaviour=Behaviour()))
            service = stack.enter_context(served(folder / "service"))
            measure(api, count, service, cluster, folder)


if __name__ == "__main__":
    main()
