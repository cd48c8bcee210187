# SPDX-License-Identifier: Apache-2.0
"""Which process holds something: so that one which is gone holds nothing any more.

A pid alone says little: it is given again, and each container counts its own. Source: Linux,
proc(5) for ``/proc/[pid]/stat`` (22, starttime) and ``/proc/sys/kernel/random/boot_id``,
pid_namespaces(7).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of one boot of one machine.

    >>> ProcessIdentity.current().is_gone()
    False
    """

    boot: str
    """The kernel's id of this boot."""
    pid_namespace: str
    """'pid:[4026531836]': two containers of one machine have the same boot, and each a pid 1."""
    pid: int
    started: str
    """In clock ticks since the boot."""

    def __str__(self) -> str:
        return " ".join((self.boot, self.pid_namespace, str(self.pid), self.started))

    @classmethod
    def current(cls) -> ProcessIdentity | None:
        """Return this process; None where the system does not tell (another one than Linux)."""
        pid = os.getpid()
        try:
            return cls(*_machine(), pid, _stat(pid)[1])
        except OSError:
            return None

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity | None:
        """Return what ``str`` was made of; None where it is something else."""
        match text.split():
            case [boot, namespace, pid, started] if pid.isdecimal():
                return cls(boot, namespace, int(pid), started)
        return None

    def is_gone(self) -> bool:
        """Tell whether this process has certainly ended; of another machine that is unknown."""
        try:
            if (self.boot, self.pid_namespace) != _machine():
                return False
        except OSError:
            return False
        try:
            with suppress(PermissionError):  # it is there, and another user's
                os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        try:
            state, started = _stat(self.pid)
        except OSError:
            return False  # /proc hides other users' processes
        return state == "Z" or started != self.started


def _machine() -> tuple[str, str]:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return boot, os.readlink(_PROC / "self/ns/pid")


def _stat(pid: int) -> tuple[str, str]:
    """Return a process's state and start time; the name before them may hold any character."""
    fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return fields[0], fields[19]
