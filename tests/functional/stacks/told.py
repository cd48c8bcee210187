"""A load balancer that the scripts of a change tell, for runs that are killed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.model.errors import ContainerUpdateError
from container_update.stacks.plan import ScriptStep


@dataclass(frozen=True)
class Balancer:
    """What the scripts tell it, in a file that outlives the process that told it."""

    path: str
    fails: bool
    """The last script of the change fails."""

    def __call__(self, what: ScriptStep, /) -> None:
        member = what.member.name if what.member else ""
        entry = [what.role, what.stack.partition("/")[0], member, what.back]
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        last = what.role == "old" if not member else len(self.told()) > 1
        if self.fails and last and not what.back:
            raise ContainerUpdateError("the load balancer does not answer")

    def told(self) -> list[list[Any]]:
        """Everything, in order."""
        try:
            return [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        except FileNotFoundError:
            return []

    def traffic(self) -> dict[str, tuple[str, str]]:
        """For each VNFC ('' for a whole VNF): whether its new or old one gets the traffic, and in
        which stack."""
        found = {}
        for role, stack, member, back in self.told():
            if role == ("old" if back else "new"):
                found[member] = (role, stack)
        return found
