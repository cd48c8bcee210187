# SPDX-License-Identifier: Apache-2.0
"""The figures of a benchmark: one run of one program, and what several runs have in common."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))

OURS, BY_HAND, TACKER = "container-update", "by hand", "Tacker 16"
HELM, KUBECTL = "Helm", "kubectl"
"""The programs that are compared."""


@dataclass(frozen=True)
class Run:
    """What one run of a program cost."""

    seconds: float
    cpu_seconds: float = 0.0
    """Of a command: of its own code (user), and of the processes that it has begun."""
    peak_mib: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    """Requests, round trips, objects: what is the same in every run."""
    output: str = field(default="", repr=False)


@dataclass(frozen=True)
class Row:
    """A program in a case, with all of its runs."""

    case: str
    """'Deployments', 'foreign pods', ...: what is varied."""
    size: int
    """The value of what is varied."""
    program: str
    """One of those above."""
    runs: Sequence[Run]

    @property
    def seconds(self) -> tuple[float, float, float]:
        """The minimum, the median and the maximum."""
        return spread([run.seconds for run in self.runs])

    @property
    def cpu_seconds(self) -> float:
        """The minimum: what others do on the machine only adds to it."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def peak_mib(self) -> float:
        """The median."""
        return statistics.median(run.peak_mib for run in self.runs)

    @property
    def counts(self) -> dict[str, int]:
        """The largest of each."""
        names = {name for run in self.runs for name in run.counts}
        return {name: max(run.counts.get(name, 0) for run in self.runs) for name in sorted(names)}


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the minimum, the median and the maximum."""
    return min(values), statistics.median(values), max(values)


def peak_mib_of(process: int) -> float:
    """Return the most memory that a running process ever held, from ``/proc``.

    ``getrusage`` knows more than that: what the process held from which it was started.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def measured(command: Sequence[str], *, expected: Sequence[int] = (0,)) -> Run:
    """Run a program as a process of its own; return what the operating system says it cost.

    :param expected: its exit statuses.
    :raises RuntimeError: it ended with another one; the message has its last words.
    """
    with TemporaryFile() as out, TemporaryFile() as err, NamedTemporaryFile() as cost:
        launched = [sys.executable, "-S", "-E", _LAUNCHER, cost.name, *command]
        code = subprocess.run(
            launched, stdout=out, stderr=err, stdin=subprocess.DEVNULL, check=False
        ).returncode
        for file in (out, err):
            file.seek(0)
        if code not in expected:
            words = err.read().decode(errors="replace")[-1000:]
            raise RuntimeError(f"{command[0]} ended with {code}: {words}")
        seconds, cpu_seconds, peak, _ = map(float, cost.read().split())
        return Run(seconds, cpu_seconds, peak / 1024, output=out.read().decode())
