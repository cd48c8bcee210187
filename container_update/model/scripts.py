# SPDX-License-Identifier: Apache-2.0
"""Coordination scripts of a change of the package: as steps of a plan, and what they reported.

Pure. Source: the specification's "coordinate-script", and SOL002, 10.5.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, Reason, Step

NEW, OLD = "new", "old"
"""The VNFs that have a script, and their packages."""


@dataclass(frozen=True)
class VduChange:
    """A VDU that changes, as a coordination script sees it."""

    vdu_id: str
    old_resource: str
    """What runs the old VNFCs: a Deployment's name, a stack's id."""
    new_resource: str
    details: Json = field(default_factory=dict)
    """What else a script of this VIM needs, as plain values."""
    ssh_ips: Mapping[str, str] = field(default_factory=dict)
    """'new' and 'old' to the address of its first VNFC, where it has one."""
    resource_id: str = ""
    """What the VNFM recorded of the one VNFC that it is about; '': it is about all of the VDU."""


@dataclass(frozen=True)
class ScriptStep(Step):
    """Run the coordination script of the new or of the old VNF for one VDU, or one of its VNFCs.

    It has no way back: what a script did outside of the cluster only another script could undo.

    >>> from container_update.model.scripts import VduChange
    >>> str(ScriptStep.of("new", "Scripts/check.py", VduChange("VDU1", "web", "web-2")).key)
    'Script Scripts/check.py (new VNF, VDU1)'
    """

    role: str
    """'new' or 'old': the VNF that is coordinated."""
    vdu: VduChange
    path: str = ""
    """In its package; empty: the one that the request names for that VNF."""
    can_be_repeated = False

    @classmethod
    def of(cls, role: str, path: str, vdu: VduChange) -> ScriptStep:
        """Return the step that runs a script of the request, which has that path."""
        about = ", ".join(filter(None, (f"{role} VNF", vdu.vdu_id, vdu.resource_id)))
        key = ObjectKey("", "Script", "", f"{path} ({about})")
        return cls(key, Action.RUN, role, vdu, reasons=(Reason(f"it coordinates the {role} VNF"),))


@dataclass(frozen=True)
class ScriptReport:
    """The result of one run of a script."""

    which: str
    """'new' or 'old': the VNF that was coordinated."""
    vdu_id: str
    script: str
    status: int | None
    """The exit status; None where the script was killed."""
    seconds: float
    output: str
    """The last part of its output."""

    def __str__(self) -> str:
        how = "was ended" if self.status is None else f"status {self.status}"
        head = f"  {self.script} ({self.which} VNF, {self.vdu_id}): {how} ({self.seconds:.1f} s)"
        return "\n".join([head, *(f"      | {line}" for line in self.output.splitlines())])

    @property
    def last_line(self) -> str:
        """The last line that it printed."""
        return self.output.strip().rpartition("\n")[2]

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

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ScriptReport:
        """Return the report of :meth:`as_dict`."""
        names = ("vnf", "vduId", "script", "status", "seconds", "output")
        return cls(*(values[name] for name in names))


RunScript = Callable[[ScriptStep], ScriptReport | None]
"""Runs the script of a step; None where the request has none. Raises CoordinationError."""
