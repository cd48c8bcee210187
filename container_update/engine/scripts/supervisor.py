# SPDX-License-Identifier: Apache-2.0
"""Run a program, and end all that it has started when it ends: ``LIFELINE COMMAND ...`` as
arguments.

LIFELINE is a file descriptor whose other end the parent process holds: when that is closed, the
program is killed. SIGTERM is passed on to the program. This process adopts what the program's
children leave behind, also those in a session of their own, so that it finds and kills them. The
exit status is the program's; after a signal 128 and its number. Imports nothing of this project:
only this file is started. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""Of ``linux/prctl.h``."""


def main(lifeline: int, command: list[str]) -> int:
    """Run the program and return the exit status."""
    os.set_inheritable(lifeline, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        _become(command)
    signal.signal(signal.SIGTERM, lambda number, _: _send(child, number))
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    status = _status_of(child)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(ChildProcessError):  # until there is none left
        while True:
            _kill_descendants()
            os.wait()
    return status


def _become(command: list[str]) -> None:
    """Become the program, in a session of its own; it ends with this process."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execv(command[0], command)  # noqa: S606 (what the parent process was asked to run)
    finally:
        os._exit(126)


def _status_of(child: int) -> int:
    """Wait for the program; meanwhile collect those of its children that it has left behind."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # nothing is ever written: it returns when the other end is closed
    _kill_descendants()


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _kill_descendants() -> None:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    pids = [os.getpid()]
    for pid in pids:
        pids += children.get(pid, ())
    for pid in pids[1:]:
        _send(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
