"""Named timers on the event loop, at most one of each name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """The timers of a pod."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call *act* in *seconds*; replaces the timer of that name."""
        self.cancel(name)

        def due() -> None:
            del self._handles[name]
            act()

        self._handles[name] = self._loop.call_later(seconds, due)

    def is_set(self, name: str) -> bool:
        """Return whether there is a timer of that name."""
        return name in self._handles

    def cancel(self, name: str) -> None:
        """Cancel the timer of that name, if there is one."""
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for name in list(self._handles):
            self.cancel(name)
