"""Changes of stacks that can be interrupted anywhere: the journal around a run, and what is done
with a journal that a run left behind.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError
from container_update.model.operation import Status, begun, recover, refuse_incomplete
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.stacks.client import StackService
from container_update.stacks.coordination import Coordinator, no_coordination
from container_update.stacks.execute import Execution
from container_update.stacks.journal import Journal, Record, now
from container_update.stacks.plan import StackPlan


@dataclass(frozen=True)
class StackInstance:
    """A VNF instance in a cloud: what can be under way there."""

    service: StackService
    instance_id: str | None
    options: Options
    coordinate: Coordinator = no_coordination
    cancel: CancelToken | None = None
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failure is left for a rollback or a resume, not undone at once."""
    clock: Callable[[], datetime] = now

    def journal(self, holder: str) -> Journal:
        """Where a change that is under way is written down."""
        return Journal(
            self.service, self.instance_id, holder, self.options.lease_seconds, clock=self.clock
        )

    def run(self, plan: StackPlan, goal: str) -> Outcome:
        """Carry out a plan, with a journal.

        :param goal: stands for what was asked for.
        :raises UpdateInProgressError: another change of this instance runs.
        :raises UpdateFailedError: see :meth:`Execution.run`.
        """
        with self.begun(plan, goal) as execution:
            return Outcome(plan, execution.run())

    @contextmanager
    def begun(
        self, plan: StackPlan, goal: str, context: Mapping[str, Any] | None = None
    ) -> Iterator[Execution]:
        """Keep a plan in the journal while the block carries it out.

        :param context: plain values that a resume needs beside the plan; no passwords.
        :raises UpdateInProgressError: another change of this instance runs.
        """
        common = begun(self.clock(), goal, self.instance_id)
        record = Record(**common, plan=plan, context=context or {})
        journal = self.journal(record.operation)
        journal.begin(record)
        with _released(journal):
            yield self._execution(journal, record)
            journal.remove()

    def status(self) -> Status:
        """Return what is under way."""
        journal = self.journal("")
        record, holder = journal.read(), journal.holder()
        if record is None or holder is None:
            return Status(record)
        name, silence = holder
        heard = f"(last heartbeat {silence:.0f} s ago)"
        return Status(record, name, heard, silence > self.options.lease_seconds)

    def recover(
        self,
        *,
        goal: str | None = None,
        back: bool = False,
        go_on: Callable[[Execution], object] = Execution.run,
        started: Callable[[Execution], object] = lambda _: None,
    ) -> Outcome | None:
        """Finish or undo the change that left its journal behind.

        :param goal: what is asked for now; a journal that leads elsewhere is undone.
        :param back: undo in any case.
        :param go_on: brings it to its end.
        :param started: told the execution before it goes either way.
        :returns: what became of it; None: there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UndoIncompleteError: it could not be undone.
        """

        def execution(record: Record, journal: Journal) -> Execution:
            made = self._execution(journal, record)
            started(made)
            return made

        return recover(
            self.journal("").read,
            self._held,
            lambda record, journal: _finish(execution(record, journal), go_on, journal),
            lambda record, journal: _go_back(execution(record, journal), journal),
            goal=goal,
            back=back,
        )

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
            options=self.options,
            coordinate=self.coordinate,
            progress=self.progress,
            cancel=self.cancel,
            leave_failed=self.leave_failed,
        )


def _finish(
    execution: Execution, go_on: Callable[[Execution], object], journal: Journal
) -> Outcome:
    go_on(execution)
    journal.remove()
    return Outcome(execution.record.plan, execution.results)


def _go_back(execution: Execution, journal: Journal) -> Outcome:
    outcome = Outcome(execution.record.plan, execution.undo())
    refuse_incomplete(execution.record, outcome)
    journal.remove()
    return outcome


@contextmanager
def _released(journal: Journal) -> Iterator[None]:
    """Let others go on with a run that fails and leaves its journal."""
    try:
        yield
    except ContainerUpdateError:
        journal.release()
        raise
