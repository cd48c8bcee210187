# SPDX-License-Identifier: Apache-2.0
"""How a running operation is cancelled: by a signal, or because its lease is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    """A request to end an operation early; thread-safe, and safe in a signal handler.

    >>> cancel = CancelToken()
    >>> signal.signal(signal.SIGTERM, lambda *_: cancel.request("by SIGTERM"))  # doctest: +SKIP
    >>> outcome = update(request, cluster, cancel=cancel)  # doctest: +SKIP

    ``keep_journal``: what was written stays for a resume, instead of being undone.
    ``lease_lost``: another host may go on by now, so nothing must be written any more.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.keep_journal = False
        self.lease_lost = False
        self._wake: Callable[[], None] | None = None

    def request(self, reason: str, *, keep_journal: bool = False, lease_lost: bool = False) -> None:
        """Request the end; the first reason counts."""
        self.reason = self.reason or reason
        self.keep_journal |= keep_journal or lease_lost
        self.lease_lost |= lease_lost
        if self._wake is not None:
            # not in this thread: a signal may have come while it holds the informer's lock
            threading.Thread(target=self._wake, name="cancel", daemon=True).start()

    def on_request(self, wake: Callable[[], None]) -> None:
        """Register what ends the waits; call it at once if the end was requested already."""
        self._wake = wake
        if self.reason:
            wake()

    def __bool__(self) -> bool:
        return bool(self.reason)
