# SPDX-License-Identifier: Apache-2.0
"""Run an asynchronous server on a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
Self = TypeVar("Self", bound="LoopThread")

CALL_TIMEOUT_SECONDS = 30.0
"""How long a call into the thread may take."""


class LoopThread(ABC):
    """A server that can be started once: as a context manager, or with :meth:`start`.

    :param name: the name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._end: asyncio.Event | None = None

    @abstractmethod
    async def _open(self) -> None:
        """Begin to serve, or raise OSError and leave nothing open."""

    @abstractmethod
    async def _close(self) -> None:
        """End what :meth:`_open` started."""

    def start(self: Self) -> Self:
        """Start the server and return when it serves; OSError if the port is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure:
            self._thread.join()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop the server and its thread; do nothing if it has stopped."""
        if self._thread.is_alive() and self._end:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def __enter__(self: Self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        try:
            await self._open()
        except OSError as error:
            self._failure = error
            return
        finally:
            self._ready.set()
        await self._end.wait()
        await self._close()

    def _on_loop(self, function: Callable[[], Result]) -> Result:
        """Call the function on the thread and return its result."""

        async def run() -> Result:
            return function()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        return future.result(CALL_TIMEOUT_SECONDS)
