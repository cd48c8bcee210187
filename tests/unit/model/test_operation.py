# SPDX-License-Identifier: Apache-2.0
"""What is done with an operation that left its journal: the same for clusters and stacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

import pytest

from container_update.model.errors import (
    PackageError,
    UndoIncompleteError,
    UpdateInProgressError,
)
from container_update.model.objects import ObjectKey
from container_update.model.operation import (
    OperationRecord,
    Phase,
    Status,
    from_bytes,
    recover,
    refuse_incomplete,
    to_bytes,
)
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Plan
from tests.unit.cluster.test_journal import record as journal_record


@dataclass(frozen=True)
class Record(OperationRecord):
    """A record without steps."""

    planned = ()


RECORD = Record("op-1", "host.1", "2026-01-01T00:00:00+00:00", "here", "i")
UNDOING = replace(RECORD, phase=Phase.UNDO)


def way(*reads: Record | None, goal: str | None = None, back: bool = False) -> list[str]:
    """Return what was done, in order, where the journal is read as listed.

    Read under the lease and not gone, it is claimed; the last of three is what was claimed then.
    """
    done: list[str] = []
    journal = iter(reads)

    def read() -> Record | None:
        done.append("read")
        return next(journal)

    @contextmanager
    def hold(_: Record) -> Iterator[str]:
        done.append("hold")
        yield "lease"
        done.append("release")

    def claim(record: Record, _: bool) -> Record | None:
        done.append("claim")
        return next(journal, record)

    def finish(record: Record, held: str) -> Outcome:
        done.append(f"finish {record.operation} with {held}")
        return Outcome(Plan("", None, ()))

    def undo(record: Record, held: str) -> Outcome:
        done.append(f"undo {record.operation} with {held}")
        return Outcome(Plan("", None, ()))

    asked = (lambda: goal) if goal is not None else None
    outcome = recover(read, hold, claim, finish, undo, goal=asked, back=back)
    assert (outcome is None) is (None in reads)
    return done


FINISH, UNDO = "finish op-1 with lease", "undo op-1 with lease"


@pytest.mark.parametrize(
    ("record", "goal", "back", "expected"),
    [
        (RECORD, None, False, FINISH),
        (RECORD, "here", False, FINISH),
        (RECORD, "elsewhere", False, UNDO),
        (RECORD, "here", True, UNDO),
        (UNDOING, "here", False, UNDO),
    ],
)
def test_it_is_finished_unless_it_is_undone_already_or_leads_elsewhere(
    record: Record, goal: str | None, back: bool, expected: str
) -> None:
    done = way(record, record, goal=goal, back=back)
    assert done == ["read", "hold", "read", "claim", expected, "release"]


def test_nothing_is_done_with_it_where_the_present_request_cannot_be_read() -> None:
    def goal() -> str:
        raise PackageError("no such package")

    def hold(_: Record) -> NoReturn:
        raise AssertionError("the lease was taken")

    with pytest.raises(PackageError, match="no such package"):
        recover(lambda: RECORD, hold, None, None, None, goal=goal, back=False)  # type: ignore[arg-type]


def test_without_a_journal_no_lease_is_taken() -> None:
    assert way(None) == ["read"]


def test_what_ended_before_the_lease_was_taken_is_left_alone() -> None:
    assert way(RECORD, None) == ["read", "hold", "read", "release"]


def test_the_phase_that_counts_is_the_one_read_under_the_lease() -> None:
    assert UNDO in way(RECORD, UNDOING)


def test_the_record_that_counts_is_the_one_that_was_claimed() -> None:
    assert UNDO in way(RECORD, RECORD, UNDOING)


def test_what_a_late_request_ended_before_it_was_claimed_is_left_alone() -> None:
    assert way(RECORD, RECORD, None) == ["read", "hold", "read", "claim", "release"]


def test_a_step_that_could_not_be_undone_is_named() -> None:
    step = journal_record().steps[0]
    failed = StepResult(step, StepState.UNDO_FAILED, "gone")
    with pytest.raises(UndoIncompleteError, match=r"op-1 was being undone.*: Secret ns/s: gone"):
        refuse_incomplete(RECORD, Outcome(Plan("", None, (step,)), (failed,)))
    undone = replace(failed, state=StepState.UNDONE)
    refuse_incomplete(RECORD, Outcome(Plan("", None, (step,)), (undone,)))


def test_bytes_of_another_format_are_refused() -> None:
    data = to_bytes(RECORD, 7, {"more": 1})
    common, content = from_bytes(data, 7)
    assert Record(**common) == RECORD
    assert content["more"] == 1
    with pytest.raises(UpdateInProgressError, match="has format 7, expected 8"):
        from_bytes(data, 8)


def test_a_status_says_what_runs_and_who_holds_it() -> None:
    status = Status(UNDOING, "host.1", "since noon", expired=True)
    assert str(status) == (
        "operation op-1 of host.1, started 2026-01-01T00:00:00+00:00, being undone:\n"
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
    }
    assert str(Status(None)) == "No update is under way."


def test_a_status_names_what_a_run_left_that_changed_nothing() -> None:
    status = Status(None, leftovers=(ObjectKey("", "Secret", "ns", "container-update-i.1"),))
    assert str(status).splitlines()[1] == (
        "Left of a run that changed nothing; a rollback removes it: Secret ns/container-update-i.1."
    )
    assert status.as_dict()["leftovers"] == ["Secret ns/container-update-i.1"]
