# SPDX-License-Identifier: Apache-2.0
"""Changes of stacks that may be interrupted anywhere: the journal around a run, and the recovery of
a run that left its journal.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.errors import NextStep, PlanError, UpdateInProgressError
from container_update.model.operation import Status, begun, recover, refuse_incomplete
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.openstack import live
from container_update.openstack.client import Heat
from container_update.openstack.execution.execution import Execution
from container_update.openstack.hold import Clock
from container_update.openstack.journal import Journal
from container_update.openstack.plan import Coordinator, StackPlan
from container_update.openstack.record import Record


@dataclass(frozen=True)
class StackInstance:
    """A VNF instance in a cloud, on which one change at a time can be under way."""

    service: Heat
    instance_id: str | None
    options: Options
    coordinate: Coordinator = lambda _: None
    cancel: CancelToken = field(default_factory=CancelToken)
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failure is left for a rollback or a resume, not undone at once."""
    clock: Clock = Clock()  # noqa: RUF009, it is frozen
    stack: str | None = None
    """The instance's stack (its name, its id or ``name/id``), whose changes alone are recovered;
    None: whatever is in the instance's journal."""
    roles: frozenset[str] = frozenset({"new", "old"})
    """The VNFs that have a coordination script; the steps of others do nothing."""

    def read(self) -> Record | None:
        """Return the change that is under way; None where there is none.

        :raises PlanError: it is one of another stack.
        """
        return self._of_own_stack(self.journal("").read())

    def _of_own_stack(self, record: Record | None) -> Record | None:
        if record is None or self.stack is None or record.concerns(self.stack):
            return record
        other = record.plan.stack.partition("/")[0]
        raise PlanError(
            f"the instance id {self.instance_id} belongs to an unfinished change of stack {other}, "
            f"not of stack {self.stack}: finish or undo that one, or give the instance of this "
            "stack an id of its own"
        )

    def journal(self, operation: str) -> Journal:
        """Return the journal of a change that is under way, for use by the operation."""
        lease_seconds = self.options.lease_seconds
        return Journal(
            self.service, self.instance_id, operation, lease_seconds, self.clock, self.cancel
        )

    @contextmanager
    def begun(
        self, plan: StackPlan, goal: str, context: Mapping[str, Any] | None = None
    ) -> Iterator[Execution]:
        """Hold the journal, with the plan in it, while the block carries the plan out.

        :param context: plain values that a resume needs beside the plan; no passwords.
        :raises UpdateInProgressError: another change of this instance runs, or ran since the
            plan was made.
        """
        common = begun(self.clock.now(), goal, self.instance_id)
        record = Record(**common, plan=plan, context=context or {})
        journal = self.journal(record.operation)
        journal.begin(record)
        with _released(journal):
            self._refuse_stale(plan, journal)
            execution = self._execution(journal, record)
            yield execution
            execution.end()

    def _refuse_stale(self, plan: StackPlan, journal: Journal) -> None:
        """Raise UpdateInProgressError where a stack is not the one any more that was planned for:
        another change may have had the journal in the meantime, from its beginning to its end."""
        for first in plan.last_steps(back=True):
            if first.before is None:
                continue
            current = self.service.stack(first.stack)
            if current and first.updated and current.get("updated_time") == first.updated:
                continue
            if current is None or live.body_for(self.service, plan, first) != first.before:
                journal.remove()
                raise UpdateInProgressError(
                    f"stack {first.stack} changed while the change was being planned; another "
                    "operation of this VNF instance may have ended since: nothing was changed",
                    next_step=NextStep.RETRY,
                )

    def status(self) -> Status:
        """Return what is under way."""
        journal = self.journal("")
        record, holder = journal.read(), journal.holder()
        if record is None or holder is None:
            return Status(record)
        now = self.clock.now()
        heartbeat = f"(last heartbeat {max(holder.silence(now), 0):.0f} s ago)"
        expired = holder.is_gone or holder.silence(now) > holder.seconds
        return Status(record, holder.operation, heartbeat, expired)

    def recover(
        self,
        *,
        goal: Callable[[], str] | None = None,
        back: bool = False,
        go_on: Callable[[Execution], object] = Execution.run,
        started: Callable[[Execution], object] = lambda _: None,
    ) -> Outcome | None:
        """Finish or undo the change that left its journal behind.

        :param goal: returns that of the current request; a change with another goal is undone.
        :param back: undo in any case.
        :param go_on: carries out the steps that are left.
        :param started: called with the execution before it goes on or is undone.
        :returns: what became of it; None where there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UndoIncompleteError: it could not be undone.
        """

        def finish(record: Record, journal: Journal) -> Outcome:
            execution = self._execution(journal, record)
            started(execution)
            go_on(execution)
            execution.end()
            return Outcome(execution.record.plan, execution.results)

        def undo(record: Record, journal: Journal) -> Outcome:
            execution = self._execution(journal, record)
            started(execution)
            outcome = Outcome(execution.record.plan, execution.undo())
            refuse_incomplete(execution.record, outcome)
            execution.end()
            return outcome

        journal = self.journal("")

        def claim(record: Record, _: Journal) -> Record:
            return record  # who holds the journal has claimed it

        outcome = recover(self.read, self._held, claim, finish, undo, goal=goal, back=back)
        if outcome is None:
            journal.sweep()
        return outcome

    @contextmanager
    def _held(self) -> Iterator[Journal]:
        journal = self.journal(str(uuid.uuid4()))
        journal.take_over()
        with _released(journal):
            yield journal

    def _execution(self, journal: Journal, record: Record) -> Execution:
        return Execution(
            self.service,
            journal,
            record,
            self.options,
            self.coordinate,
            self.progress,
            self.cancel,
            self.leave_failed,
            self.roles,
        )


@contextmanager
def _released(journal: Journal) -> Iterator[None]:
    """Release the journal of a run that fails, by whatever error, and leaves it."""
    try:
        yield
    except Exception:
        journal.release()
        raise
