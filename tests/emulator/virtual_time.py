# SPDX-License-Identifier: Apache-2.0
"""An event loop whose clock jumps to the next timer instead of waiting for it.

What a test sees then depends on delays alone, never on how busy the machine is, and an hour of
back-off takes no time. The emulator's own clock goes with it.
"""

from __future__ import annotations

import asyncio
import datetime
import selectors
from collections.abc import Coroutine
from typing import Any
from unittest import mock

from container_update.emulator import clock

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class _NoWaiting(selectors.DefaultSelector):
    """Selects what is ready now, and sums up how long it would have waited."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("the test waits for something that never happens")
            self.waited += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop: ``time()`` is the sum of the timeouts that were skipped."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return self._no_waiting.waited


async def pass_by(seconds: float) -> None:
    """Let virtual time pass: everything that is due within it happens."""
    await asyncio.sleep(seconds)


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in virtual time."""
    loop = VirtualTimeLoop()

    def now() -> datetime.datetime:
        return EPOCH + datetime.timedelta(seconds=loop.time())

    try:
        with mock.patch.object(clock, "now", now):
            loop.run_until_complete(test)
    finally:
        loop.close()
