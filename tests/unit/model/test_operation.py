# SPDX-License-Identifier: Apache-2.0
"""The record of an operation, and the status that people see of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from container_update.model.errors import UpdateInProgressError
from container_update.model.objects import ObjectKey
from container_update.model.operation import (
    OperationRecord,
    Phase,
    Status,
    from_values,
    to_values,
)


@dataclass(frozen=True)
class Record(OperationRecord):
    """A record without steps."""

    planned = ()


RECORD = Record("op-1", "host.1", "2026-01-01T00:00:00+00:00", "here", "i")
UNDOING = replace(RECORD, phase=Phase.UNDO)


def test_values_of_another_format_are_refused() -> None:
    values = to_values(RECORD, 7)
    assert Record(**from_values(values, 7)) == RECORD
    with pytest.raises(UpdateInProgressError, match="has format 7, expected 8"):
        from_values(values, 8)


def test_a_status_says_what_runs_and_who_holds_it() -> None:
    status = Status(UNDOING, "host.1", "since noon", expired=True)
    assert str(status) == (
        "Operation op-1 of host.1, started 2026-01-01 00:00:00 UTC, being undone:\n"
        "Held by host.1 since noon (expired)."
    )
    assert status.as_dict() == {
        "operation": "op-1",
        "phase": "undo",
        "held": False,
        "started": "2026-01-01T00:00:00+00:00",
        "steps": [],
        "holder": "host.1",
        "expired": True,
        "leftovers": [],
        "frozen": None,
        "nextStep": "resume or rollback",
    }
    assert str(Status(None)) == "No operation is under way."


def test_a_status_names_what_a_run_left_that_changed_nothing() -> None:
    status = Status(None, leftovers=(ObjectKey("", "Secret", "ns", "container-update-i.1"),))
    assert str(status).splitlines()[1] == (
        "A run that changed nothing has left Secret ns/container-update-i.1; a rollback removes it."
    )
    assert status.as_dict()["leftovers"] == [
        {"group": "", "kind": "Secret", "namespace": "ns", "name": "container-update-i.1"}
    ]
