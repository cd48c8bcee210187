# SPDX-License-Identifier: Apache-2.0
"""What a person decides at a terminal: whether a plan is to be carried out, and when to stop it."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_YES = ("y", "yes")


class NotApprovedError(ContainerUpdateError):
    """The plan was not approved: nothing of it was written."""

    exit_status = 13


def ask(question: str) -> None:
    """Ask whether to carry out a plan or an undo; NotApprovedError: any answer but yes."""
    try:
        with _default_signals():
            sys.stdout.write(f"{question} [y/N] ")
            sys.stdout.flush()
            answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if not answer.endswith("\n"):
        sys.stdout.write("\n")
    if answer.strip().lower() not in _YES:
        raise NotApprovedError("Not approved: nothing of it was written")


def is_possible() -> bool:
    """Tell whether there is a person to ask: at a terminal, for input and output."""
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams)


@contextmanager
def _default_signals() -> Iterator[None]:
    """Let signals end the command for the block: there is nothing to undo yet."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- signals as a request to stop ---------------------------------------------------------------


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
        # Before the message: its reader may signal again.
        cancel.request(f"by {name}", keep_journal=leave)
        action = "leaving the operation for resume" if leave else "undoing the operation"
        text = f"container-update: {name}: {action}; a second signal exits immediately"
        with suppress(OSError):  # the terminal may be gone
            try:
                print(text, file=sys.stderr or io.StringIO(), flush=True)
            except RuntimeError:  # the signal came in the middle of a write to the same stream
                os.write(2, f"{text}\n".encode())

    handled = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    before = [signal.signal(number, handle) for number in handled]
    try:
        yield cancel
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)
