# SPDX-License-Identifier: Apache-2.0
"""A request that waits at the API server until a test releases it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from aiohttp import web

from container_update.emulator.faults import FaultedRequest

DEADLINE_SECONDS = 20.0

Result = TypeVar("Result")


class Gate:
    """An effect for a Fault; closed at first.

    :param seconds: the most that a request is held.
    """

    def __init__(self, seconds: float = DEADLINE_SECONDS) -> None:
        self._seconds = seconds
        self._reached = threading.Event()
        self._open = threading.Event()

    async def __call__(self, faulted: FaultedRequest) -> web.StreamResponse:
        """Hold the request, then let it take effect."""
        self._reached.set()
        await asyncio.to_thread(self._open.wait, self._seconds)
        return await faulted.handler(faulted.request)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Run the block while the request is held, and release the request afterwards."""
        try:
            assert self._reached.wait(self._seconds), "the request never came"
            yield
        finally:
            self._open.set()


@contextmanager
def running(function: Callable[[], Result]) -> Iterator[Future[Result]]:
    """Run the function beside the block, which waits for it at its end."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(function)
