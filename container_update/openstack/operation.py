# SPDX-License-Identifier: Apache-2.0
"""How every operation on a VNF's stacks is carried out, from its goal to its outcome.

recover what an earlier run left -> read what is live, plan -> report
    -> hold with the journal -> execute (or undo) -> outcome

It is the story of :mod:`container_update.engine.run` for Heat. What differs from one operation
to another is its goal: which plan it makes.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.errors import NextStep, PlanError, UpdateInProgressError
from container_update.model.operation import Status, begun, recover, refuse_incomplete
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepState
from container_update.model.reporter import reporter
from container_update.openstack import live
from container_update.openstack.client import Heat
from container_update.openstack.execution.execution import StackExecution
from container_update.openstack.hold import Clock
from container_update.openstack.journal import StackJournal
from container_update.openstack.plan import Coordinator, StackPlan
from container_update.openstack.record import StackRecord


class StackGoal(ABC):
    """Where an operation on a VNF's stacks leads."""

    ends_vnf = False
    """Nothing is left of the VNF then: what an earlier operation left goes with it."""

    @abstractmethod
    def digest(self) -> str:
        """Return what identifies where it leads: two runs of one request have the same.

        :raises PackageError: a package or the request is wrong.
        """

    @abstractmethod
    def plan(self, service: Heat) -> StackPlan:
        """Return the plan; write nothing.

        :raises PlanError: the stack is in no state for it.
        """

    def context(self) -> Mapping[str, Any]:
        """Return plain values that a resume needs beside the plan; no passwords."""
        return {}

    def begun(self, execution: StackExecution) -> None:  # noqa: B027, most have nothing to do
        """Do what is to be done before an execution goes on or back."""

    def carried_out(self, execution: StackExecution) -> None:  # noqa: B027, likewise
        """Do what is to be done while the journal is still there."""


@dataclass(frozen=True)
class StackInstance:
    """A VNF instance in a cloud, on which one operation at a time can be under way."""

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

    def read(self) -> StackRecord | None:
        """Return the change that is under way; None where there is none.

        :raises PlanError: it is one of another stack.
        """
        return self._of_own_stack(self.journal("").read())

    def _of_own_stack(self, record: StackRecord | None) -> StackRecord | None:
        if record is None or self.stack is None or record.concerns(self.stack):
            return record
        other = record.plan.stack.partition("/")[0]
        raise PlanError(
            f"the instance id {self.instance_id} belongs to an unfinished change of stack {other}, "
            f"not of stack {self.stack}: finish or undo that one, or give the instance of this "
            "stack an id of its own"
        )

    def journal(self, operation: str) -> StackJournal:
        """Return the journal of a change that is under way, for use by the operation."""
        lease_seconds = self.options.lease_seconds
        return StackJournal(
            self.service, self.instance_id, operation, lease_seconds, self.clock, self.cancel
        )

    def run(self, goal: StackGoal) -> Outcome:
        """Bring the VNF to where a goal leads, or leave it wholly as it was.

        An operation of the instance that was interrupted is finished first if it has the same goal,
        else undone.

        :returns: the plan, and what became of each step.
        :raises ContainerUpdateError: as :func:`container_update.engine.run.run` does.
        """
        digest = goal.digest()
        if not goal.ends_vnf:
            self._refuse_unfinished_change(goal)
            resumed = self.recover(
                goal=lambda: digest, started=goal.begun, carried_out=goal.carried_out
            )
            if resumed and all(result.state is StepState.DONE for result in resumed.results):
                return resumed
        plan = goal.plan(self.service)
        reporter(self.progress)(plan)
        if plan.is_empty and not (goal.ends_vnf and self.journal("").stacks()):
            return Outcome(plan)
        with self.begun(plan, digest, goal.context(), instead=goal.ends_vnf) as execution:
            goal.begun(execution)
            execution.run()
            goal.carried_out(execution)
        return Outcome(execution.record.plan, execution.results)

    def _refuse_unfinished_change(self, goal: StackGoal) -> None:
        """Raise PlanError where something else would undo a change of the package without its
        scripts."""
        record = self.read()
        if record is not None and record.context and not goal.context():
            raise PlanError(
                f"operation {record.operation}, a change of this VNF's package, has not ended: "
                "send its request again to finish it"
            )

    @contextmanager
    def begun(
        self,
        plan: StackPlan,
        goal: str,
        context: Mapping[str, Any] | None = None,
        *,
        instead: bool = False,
    ) -> Iterator[StackExecution]:
        """Hold the journal, with the plan in it, while the block carries the plan out.

        :param context: plain values that a resume needs beside the plan; no passwords.
        :param instead: take the place of what an earlier operation has left.
        :raises UpdateInProgressError: another change of this instance runs, or ran since the
            plan was made.
        """
        common = begun(self.clock.now(), goal, self.instance_id)
        record = StackRecord(**common, plan=plan, context=context or {})
        journal = self.journal(record.operation)
        if instead:
            journal.take_over()
        is_taken = journal.is_held
        if not is_taken:
            journal.begin(record)
        with _released(journal):
            if is_taken:
                journal.write(record)
            self._refuse_stale(plan, journal)
            execution = self._execution(journal, record)
            yield execution
            execution.end()

    def _refuse_stale(self, plan: StackPlan, journal: StackJournal) -> None:
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
        started: Callable[[StackExecution], object] = lambda _: None,
        carried_out: Callable[[StackExecution], object] = lambda _: None,
    ) -> Outcome | None:
        """Finish or undo the operation that left its journal behind.

        :param goal: returns that of the current request; a change with another goal is undone.
        :param back: undo in any case.
        :param started: called with the execution before it goes on or is undone.
        :param carried_out: called before the journal of what was finished is removed.
        :returns: what became of it; None where there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UndoIncompleteError: it could not be undone.
        """

        def finish(record: StackRecord, journal: StackJournal) -> Outcome:
            execution = self._execution(journal, record)
            started(execution)
            execution.run()
            carried_out(execution)
            execution.end()
            return Outcome(execution.record.plan, execution.results)

        def undo(record: StackRecord, journal: StackJournal) -> Outcome | None:
            if record.committed and record.plan.can_be_left and not back:
                journal.remove()
                return None
            execution = self._execution(journal, record)
            started(execution)
            outcome = Outcome(execution.record.plan, execution.undo())
            refuse_incomplete(execution.record, outcome)
            execution.end()
            return outcome

        journal = self.journal("")

        def claim(record: StackRecord, _: bool) -> StackRecord:
            return record  # who holds the journal has claimed it

        outcome = recover(self.read, self._held, claim, finish, undo, goal=goal, back=back)
        if outcome is None:
            journal.sweep()
        return outcome

    @contextmanager
    def _held(self, _: StackRecord) -> Iterator[StackJournal]:
        journal = self.journal(str(uuid.uuid4()))
        journal.take_over()
        with _released(journal):
            yield journal

    def _execution(self, journal: StackJournal, record: StackRecord) -> StackExecution:
        return StackExecution(
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
def _released(journal: StackJournal) -> Iterator[None]:
    """Release the journal of a run that fails, by whatever error, and leaves it."""
    try:
        yield
    except Exception:
        journal.release()
        raise
