# SPDX-License-Identifier: Apache-2.0
"""The journal of a VNF in a project where another client may write stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.openstack.client import reference
from container_update.openstack.journal import StackJournal


@dataclass
class Cloud:
    """A Heat that has these stacks, each with these files."""

    found: list[dict[str, Any]]
    content: dict[str, str]

    def stacks(self) -> list[dict[str, Any]]:
        """List them."""
        return self.found

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return one, by its reference."""
        return next((stack for stack in self.found if reference(stack) == name), None)

    def files(self, _: str) -> dict[str, str]:
        """Return its files."""
        return self.content


def stack(name: str, id_: str, *tags: str) -> dict[str, Any]:
    """Return a stack of the instance 1."""
    status = {"stack_status": "CREATE_COMPLETE", "stack_status_reason": ""}
    return {"stack_name": f"container-update-1{name}", "id": id_, "tags": list(tags), **status}


def journal(*stacks: dict[str, Any], **content: str) -> StackJournal:
    """Return the journal of the instance 1 in a project with these stacks."""
    service: Any = Cloud(list(stacks), content)
    return StackJournal(service, "1", "", 10)


@pytest.mark.parametrize(
    "stacks",
    [[stack(".a", "a")], [stack(".a", "b"), stack(".b", "a")]],
    ids=["itself", "each other"],
)
def test_stacks_that_succeed_themselves_are_no_journal(stacks: list[dict[str, Any]]) -> None:
    assert journal(*stacks).holder() is None


@pytest.mark.parametrize("time", ["", "yesterday", "2026-13-26T10:00:00Z"])
def test_a_heartbeat_that_is_no_time_is_an_error_that_names_the_stack(time: str) -> None:
    record = {"container-update-journal": "x"}
    with pytest.raises(PlanError, match=r"^stack container-update-1, tag renewed: .* delete"):
        journal(stack("", "a", f"renewed={time}"), **record).holder()
