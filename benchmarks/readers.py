# SPDX-License-Identifier: Apache-2.0
"""Clients that read while the service works: a process of their own, so that they time only it."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

import requests

READERS, VIEWERS = 20, 10
PAUSE_SECONDS = 0.5
"""Of a reader, between an answer and its next request."""


@contextmanager
def reading(url: str, path: str) -> Iterator[dict[str, int]]:
    """Show a resource at a pace, and follow the events of the page, during the ``with`` block.

    Yield what is filled with the figures at its end.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_read_until_told, args=(url, path, theirs))
    process.start()
    found: dict[str, int] = {}
    try:
        ours.recv()  # they have begun
        yield found
        ours.send("end")
        found |= ours.recv()
    finally:
        process.terminate()
        process.join()


def _read_until_told(url: str, path: str, pipe: Connection) -> None:
    seconds: list[float] = []
    refused: list[int] = []
    sizes: list[int] = []
    end = threading.Event()
    threads = [
        threading.Thread(target=_read, args=(url + path, seconds, refused, end))
        for _ in range(READERS)
    ]
    viewers = [
        threading.Thread(target=_view, args=(url, sizes), daemon=True) for _ in range(VIEWERS)
    ]
    began = time.monotonic()
    for thread in (*threads, *viewers):
        thread.start()
    pipe.send("begun")
    pipe.recv()
    took = time.monotonic() - began
    end.set()
    for thread in threads:
        thread.join()
    hundredths = statistics.quantiles(seconds, n=100)
    pipe.send(
        {
            "reads": len(seconds),
            "refused reads": len(refused),
            "median ms": round(1000 * hundredths[49]),
            "p99 ms": round(1000 * hundredths[98]),
            "bytes a second for a viewer": round(sum(sizes) / VIEWERS / took),
        }
    )


def _read(url: str, seconds: list[float], refused: list[int], end: threading.Event) -> None:
    with requests.Session() as session:
        session.headers["Version"] = "2.0.0"
        while not end.is_set():
            began = time.monotonic()
            answer = session.get(url, timeout=60)
            seconds.append(time.monotonic() - began)
            if not answer.ok:
                refused.append(answer.status_code)
            end.wait(PAUSE_SECONDS)


def _view(url: str, sizes: list[int]) -> None:
    answer = requests.get(f"{url}/view/events", stream=True, timeout=60)
    sizes.extend(len(part) for part in answer.iter_content(None))
