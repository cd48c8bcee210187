"""What a pod waits for: named timers on the event loop, at most one of each name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """Things to do later."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Do *act* in *seconds*, instead of what was to be done under that name."""
        self.cancel(name)

        def due() -> None:
            del self._handles[name]
            act()

        self._handles[name] = self._loop.call_later(seconds, due)

    def is_set(self, name: str) -> bool:
        """Something is to be done under that name."""
        return name in self._handles

    def cancel(self, name: str) -> None:
        """Do not do it; nothing happens where there is nothing of that name."""
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Do nothing of all that was to be done."""
        for name in list(self._handles):
            self.cancel(name)
