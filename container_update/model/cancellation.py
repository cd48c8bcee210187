"""How a running update is told to stop: by a signal, or because its lock is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stop:
    """A request to stop, handed into an update; thread-safe, and safe in a signal handler.

    ``leave``: what was written stays for a resume, instead of being undone.
    ``lost``: another host may be going on by now, so nothing must be written any more.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.leave = False
        self.lost = False
        self._wake: Callable[[], None] | None = None

    def request(self, reason: str, *, leave: bool = False, lost: bool = False) -> None:
        """Ask for the end; the first reason counts."""
        self.reason = self.reason or reason
        self.leave |= leave or lost
        self.lost |= lost
        if self._wake is not None:
            # not in this thread: a signal may have come while it holds the informer's lock
            threading.Thread(target=self._wake, name="stop", daemon=True).start()

    def on_request(self, wake: Callable[[], None]) -> None:
        """Set the function that ends all waits; call it now if a stop was already requested."""
        self._wake = wake
        if self.reason:
            wake()

    def __bool__(self) -> bool:
        return bool(self.reason)
