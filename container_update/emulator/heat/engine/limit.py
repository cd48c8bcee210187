"""A time at which work is given up."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Limit:
    """Ends what runs in an ``async with`` block with asyncio.TimeoutError at a time of the loop.

    Unlike ``asyncio.wait_for`` it makes no task of its own: work that fails at once has failed
    before any other task begins.
    """

    def __init__(self, at: float) -> None:
        self._at = at
        self._expired = False

    async def __aenter__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        if loop.time() >= self._at:
            raise asyncio.TimeoutError

        def expire() -> None:
            self._expired = True
            task.cancel()

        self._timer = loop.call_at(self._at, expire)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._expired and kind is asyncio.CancelledError:
            raise asyncio.TimeoutError from error
