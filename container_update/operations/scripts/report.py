"""Runs of coordination scripts, as they begin and as they end. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScriptRun:
    """A run of a script that begins.

    >>> ScriptRun("new", "VDU1", "Scripts/check.py").title
    'Script Scripts/check.py (new VNF, VDU1)'
    """

    which: str
    """'new' or 'old': the VNF that is coordinated."""
    vdu_id: str
    script: str

    @property
    def title(self) -> str:
        """What it is, for a list of steps."""
        return f"Script {self.script} ({self.which} VNF, {self.vdu_id})"


@dataclass(frozen=True)
class ScriptReport(ScriptRun):
    """The result of one run of a script."""

    status: int | None
    """The exit status; None where the script was killed."""
    seconds: float
    output: str
    """The last part of what it printed."""

    def __str__(self) -> str:
        how = "was ended" if self.status is None else f"status {self.status}"
        head = f"  {self.script} ({self.which} VNF, {self.vdu_id}): {how} ({self.seconds:.1f} s)"
        return "\n".join([head, *(f"      | {line}" for line in self.output.splitlines())])

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {
            "vnf": self.which,
            "vduId": self.vdu_id,
            "script": self.script,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "output": self.output,
        }


Listener = Callable[[ScriptRun], object]
"""Called with a run when it begins, and with its report when it has ended."""
