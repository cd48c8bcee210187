"""A server on a thread of its own with its own event loop, for those who are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
Self = TypeVar("Self", bound="LoopThread")

PATIENCE_SECONDS = 30.0
"""How long a call into the thread may take before something is badly wrong."""


class LoopThread(ABC):
    """Use it as a context manager, or :meth:`start` and :meth:`stop` it, once.

    :param name: the thread's.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._end: asyncio.Event | None = None

    @abstractmethod
    async def _open(self) -> None:
        """Begin to answer. OSError where that is not possible: nothing has been left open."""

    @abstractmethod
    async def _close(self) -> None:
        """End what :meth:`_open` began."""

    def start(self: Self) -> Self:
        """Start it; returns when it answers. OSError where the port is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure:
            self._thread.join()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop it and end its thread; nothing happens where it has stopped."""
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
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _live(self) -> None:
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

    def _on_the_loop(self, function: Callable[[], Result]) -> Result:
        """What the function returns, called on the thread."""

        async def run() -> Result:
            return function()

        waiting = asyncio.run_coroutine_threadsafe(run(), self._loop)
        return waiting.result(PATIENCE_SECONDS)
