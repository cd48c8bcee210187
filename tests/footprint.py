# SPDX-License-Identifier: Apache-2.0
"""What a process holds, as the operating system says: for tests of what must not grow."""

from __future__ import annotations

import operator
import os
from dataclasses import astuple, dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Footprint:
    """The number of things that a process holds."""

    descriptors: int
    threads: int
    processes: int
    """Its children, ended ones that nobody has waited for too, and what else is in its session."""
    files: int
    """Files and folders in its folder for temporary ones."""

    def within(self, bound: Footprint) -> bool:
        """Return whether it holds no more of anything."""
        pairs = zip(astuple(self), astuple(bound), strict=True)
        return all(number <= limit for number, limit in pairs)

    def most(self, other: Footprint) -> Footprint:
        """Return the larger number of each."""
        return Footprint(*map(max, astuple(self), astuple(other)))

    def plus(self, other: Footprint) -> Footprint:
        """Return the sum of each."""
        return Footprint(*map(operator.add, astuple(self), astuple(other)))


def footprint(process: int, folder: Path) -> Footprint:
    """Return what a process holds now.

    :param process: its id.
    :param folder: its folder for temporary files.
    """
    proc = Path("/proc", str(process))
    others = [_parent_and_session(path) for path in Path("/proc").glob("[0-9]*/stat")]
    return Footprint(
        descriptors=len(os.listdir(proc / "fd")),
        threads=len(os.listdir(proc / "task")),
        processes=sum(process in other for other in others) - (os.getsid(process) == process),
        files=sum(1 for _ in folder.rglob("*")),
    )


def resident_bytes(process: int) -> int:
    """Return how much memory of a process is resident, in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES


def _parent_and_session(stat: Path) -> tuple[int, int]:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return (0, 0)
    return int(fields[1]), int(fields[3])
