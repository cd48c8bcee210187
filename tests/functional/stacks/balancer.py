# SPDX-License-Identifier: Apache-2.0
"""A load balancer that the scripts of a change configure, for runs that are killed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update import ContainerUpdateError
from tests.functional.stacks.change import Call


@dataclass(frozen=True)
class Balancer:
    """Stores the scripts' messages in a file that outlives the process that sent them."""

    path: str
    fails: bool
    """The last script of the change fails."""

    def __call__(self, step: Call, /) -> None:
        member = step.member.server_id if step.member else ""
        entry = [step.role, step.stack.partition("/")[0], member, step.back]
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        last = step.role == "old" if not member else len(self.messages()) > 1
        if self.fails and last and not step.back:
            raise ContainerUpdateError("the load balancer does not answer")

    def messages(self) -> list[list[Any]]:
        """Return all messages, in order."""
        try:
            return [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        except FileNotFoundError:
            return []

    def traffic(self) -> dict[str, tuple[str, str]]:
        """Return for each server ('' for a whole VNF) whether its new or old one gets the traffic,
        and in which stack."""
        traffic = {}
        for role, stack, member, back in self.messages():
            if role == ("old" if back else "new"):
                traffic[member] = (role, stack)
        return traffic
