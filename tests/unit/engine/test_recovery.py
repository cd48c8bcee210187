# SPDX-License-Identifier: Apache-2.0
"""The recovery of an operation that left its journal: the same for clusters and stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from container_update.engine.recovery import Recovery, refuse_incomplete
from container_update.model.errors import PackageError, UndoIncompleteError
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Plan
from tests.unit.cluster.test_journal import record as journal_record
from tests.unit.model.test_operation import RECORD, UNDOING, Record


class Journal(Recovery[Record]):
    """Notes what is done, in order, where the journal is read as listed.

    Read under the lease and not gone, it is claimed; the last of three is what was claimed then.
    """

    def __init__(
        self, *reads: Record | None, goal: Callable[[], str] | None = None, back: bool = False
    ) -> None:
        super().__init__(goal, back=back)
        self.reads, self.done = iter(reads), list[str]()

    def read(self) -> Record | None:
        self.done.append("read")
        return next(self.reads)

    @contextmanager
    def hold(self, _: Record) -> Iterator[None]:
        self.done.append("hold")
        yield
        self.done.append("release")

    def claim(self, record: Record, *, goes_back: bool) -> Record | None:
        self.done.append("claim")
        return next(self.reads, record)

    def finish(self, record: Record) -> Outcome:
        self.done.append(f"finish {record.operation}")
        return Outcome(Plan("", None, ()))

    def undo(self, record: Record) -> Outcome:
        self.done.append(f"undo {record.operation}")
        return Outcome(Plan("", None, ()))


def way(*reads: Record | None, goal: str | None = None, back: bool = False) -> list[str]:
    """Return what is done with an operation, in order."""
    journal = Journal(*reads, goal=(lambda: goal) if goal is not None else None, back=back)
    assert (journal.run() is None) is (None in reads)
    return journal.done


FINISH, UNDO = "finish op-1", "undo op-1"


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

    journal = Journal(RECORD, goal=goal)
    with pytest.raises(PackageError, match="no such package"):
        journal.run()
    assert journal.done == ["read"]


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
