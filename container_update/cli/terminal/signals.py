# SPDX-License-Identifier: Apache-2.0
"""SIGHUP, SIGINT and SIGTERM as a request to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from container_update.model.cancellation import CancelToken

_NUMBERS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(*, leave: bool) -> Iterator[CancelToken]:
    """Request a stop at the first signal, and exit immediately at the second one.

    A SIGHUP that is ignored from the start (nohup) stays ignored. A terminal that is closed may
    send two of them: a second one does nothing.

    :param leave: the journal stays for a resume, nothing is undone.
    """
    cancel = CancelToken()

    def handle(number: int, _: object) -> None:
        if cancel and number == signal.SIGHUP:
            return
        if cancel:
            os._exit(128 + number)
        name = signal.Signals(number).name
        # Before the message: whoever reads that may signal again.
        cancel.request(f"by {name}", keep_journal=leave)
        action = "leaving the operation for resume" if leave else "undoing the operation"
        text = f"container-update: {name}: {action}; a second signal exits immediately\n"
        with suppress(OSError):  # the terminal may be gone
            os.write(2, text.encode())

    handled = [n for n in _NUMBERS if signal.getsignal(n) is not signal.SIG_IGN]
    before = [signal.signal(number, handle) for number in handled]
    try:
        yield cancel
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)
