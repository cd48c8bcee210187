"""Changes of stacks that can be interrupted anywhere: the journal around a run, and what is done
with a journal that a run left behind.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from container_update.model.cancellation import Stop
from container_update.model.errors import ContainerUpdateError, UndoIncompleteError
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepState
from container_update.stacks.client import StackService
from container_update.stacks.coordination import Coordinator, no_coordination
from container_update.stacks.execute import Execution
from container_update.stacks.journal import Journal, Phase, Record, now
from container_update.stacks.plan import StackPlan


@dataclass(frozen=True)
class StackInstance:
    """A VNF instance in a cloud: what can be under way there."""

    service: StackService
    instance_id: str | None
    options: Options
    coordinate: Coordinator = no_coordination
    stop: Stop | None = None
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failure is left for a rollback or a resume, not undone at once."""
    clock: Callable[[], datetime] = now

    def journal(self, holder: str) -> Journal:
        """Where a change that is under way is written down."""
        return Journal(
            self.service, self.instance_id, holder, self.options.lease_seconds, clock=self.clock
        )

    def run(self, plan: StackPlan, target: str) -> Outcome:
        """Carry out a plan, with a journal.

        :param target: stands for what was asked for.
        :raises UpdateInProgressError: another change of this instance runs.
        :raises UpdateFailedError: see :meth:`Execution.run`.
        """
        with self.begun(plan, target) as execution:
            return Outcome(plan, execution.run())

    @contextmanager
    def begun(self, plan: StackPlan, target: str) -> Iterator[Execution]:
        """A plan in the journal, while the block carries it out to its end.

        :raises UpdateInProgressError: another change of this instance runs.
        """
        started = self.clock().isoformat(timespec="seconds")
        record = Record(str(uuid.uuid4()), _host(), started, plan, target)
        journal = self.journal(record.operation)
        journal.begin(record)
        with _released(journal):
            yield self._execution(journal, record)
            journal.remove()

    def status(self) -> Record | None:
        """What is under way."""
        return self.journal("").read()

    def recover(
        self,
        *,
        target: str | None = None,
        back: bool = False,
        go_on: Callable[[Execution], object] = Execution.run,
        started: Callable[[Execution], object] = lambda _: None,
    ) -> Outcome | None:
        """Finish or undo the change that left its journal behind.

        :param target: what is asked for now; a journal that leads elsewhere is undone.
        :param back: undo in any case.
        :param go_on: brings it to its end.
        :param started: told the execution before it goes either way.
        :returns: what became of it; None: there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UndoIncompleteError: it could not be undone.
        """
        journal = self.journal(str(uuid.uuid4()))
        if journal.read() is None:
            return None
        journal.take_over()
        record = journal.read()
        if record is None:
            return None
        elsewhere = target is not None and target != record.target
        with _released(journal):
            execution = self._execution(journal, record)
            started(execution)
            if back or elsewhere or record.phase is Phase.UNDO:
                return self._go_back(execution, journal)
            go_on(execution)
            journal.remove()
            return Outcome(record.plan, execution.results)

    def _execution(self, journal: Journal, record: Record) -> Execution:
        return Execution(
            self.service,
            journal,
            record,
            options=self.options,
            coordinate=self.coordinate,
            progress=self.progress,
            stop=self.stop,
            leave_failed=self.leave_failed,
        )

    def _go_back(self, execution: Execution, journal: Journal) -> Outcome:
        outcome = Outcome(execution.record.plan, execution.undo())
        could_not = [result for result in outcome.results if result.state is StepState.UNDO_FAILED]
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            raise UndoIncompleteError(
                f"operation {execution.record.operation} could not be undone: {objects}", outcome
            )
        journal.remove()
        return outcome


@contextmanager
def _released(journal: Journal) -> Iterator[None]:
    """A run that fails and leaves its journal lets others go on with it."""
    try:
        yield
    except ContainerUpdateError:
        journal.release()
        raise


def _host() -> str:
    return f"{socket.gethostname()}.{os.getpid()}"
