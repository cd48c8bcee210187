# SPDX-License-Identifier: Apache-2.0
"""The recovery of an operation that was interrupted: it is finished, or undone.

read the journal -> take the lease -> read it again -> claim it -> finish or undo
"""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from container_update.cluster.history import History
from container_update.cluster.informer import Informer
from container_update.cluster.operation import Operation
from container_update.cluster.scope import scope_of
from container_update.engine.fence import Fence
from container_update.engine.journalled_run import JournalledRun
from container_update.model import errors
from container_update.model.objects import Manifest
from container_update.model.operation import OperationRecord, Phase
from container_update.model.outcome import Outcome, ResumeStarted, StepResult, StepState
from container_update.model.plan import Action, Step
from container_update.model.reporter import REPORTED
from container_update.planning.steps import ObjectStep
from container_update.planning.update import collections, traffic

if TYPE_CHECKING:
    from container_update.engine.cluster_instance import ClusterInstance

LOG = logging.getLogger(__name__)

RecordT = TypeVar("RecordT", bound=OperationRecord)
Described = Callable[[], "Sequence[Manifest] | None"]
GoOn = Callable[[JournalledRun], "tuple[StepResult, ...]"]
"""Finishes an interrupted run; returns the result of each step."""


class Recovery(ABC, Generic[RecordT]):
    """Finishes or undoes the operation that left its journal behind, wherever the VNF runs.

    :param goal: returns the goal of the request; an operation with another goal is undone. It is
        called before anything is done, where there is an operation.
    :param back: undo in any case.
    """

    def __init__(self, goal: Callable[[], str] | None = None, *, back: bool = False) -> None:
        self.goal, self.back = goal, back

    def run(self) -> Outcome | None:
        """Finish or undo it.

        :returns: its outcome; None: there was none.
        :raises UpdateInProgressError: it is still running, or waits for a person.
        :raises UpdateFailedError: it could not be finished and was undone.
        :raises UndoIncompleteError: it could not be undone.
        """
        record = self.read()
        if record is None:
            return None
        asked = self.goal() if self.goal else None
        with self.hold(record):
            record = self.read()  # again: from now on no other process changes it
            if record is None:
                return None
            other_goal = asked is not None and asked != record.goal
            if other_goal and not self.back and record.held_at is not None:
                raise errors.UpdateInProgressError(
                    f"operation {record.operation} {record.progress()}",
                    next_step=errors.NextStep.PROMOTE_OR_ABORT,
                )
            goes_back = self.back or other_goal or record.phase is Phase.UNDO
            record = self.claim(record, goes_back=goes_back)
            if record is None:
                return None
            if goes_back or record.phase is Phase.UNDO:  # it may have begun until it was claimed
                return self.undo(record)
            LOG.warning("going on with %s", record.operation, extra=REPORTED)
            return self.finish(record)

    @abstractmethod
    def read(self) -> RecordT | None:
        """Return what the journal has; None: there is none."""

    @abstractmethod
    def hold(self, record: RecordT) -> AbstractContextManager[object]:
        """Hold the lease during the block."""

    @abstractmethod
    def claim(self, record: RecordT, *, goes_back: bool) -> RecordT | None:
        """Make the journal this process's: no late request of the run before changes anything.

        :param goes_back: the operation is undone.
        :returns: what may be carried out, or undone, of the record; None: it has been removed.
        :raises PlanError: the record is not trusted; nothing was written.
        """

    @abstractmethod
    def finish(self, record: RecordT) -> Outcome:
        """Bring the operation to its end and remove the journal."""

    @abstractmethod
    def undo(self, record: RecordT) -> Outcome | None:
        """Undo what can be undone; return None where the operation had come to its end."""


def refuse_incomplete(record: OperationRecord, outcome: Outcome) -> None:
    """Raise UndoIncompleteError where a step could not be undone."""
    if outcome.of_state(StepState.UNDO_FAILED):
        cause = f"operation {record.operation} was being undone"
        raise errors.UndoIncompleteError(outcome, cause)


class ClusterRecovery(Recovery[Operation]):
    """The recovery of an operation in a cluster.

    Where journals are not signed, each account that may create a Secret may have written one: see
    :mod:`~container_update.planning.foreign_steps`.

    :param promote: the name of the hold that is over: a run that waits there goes on.
    :param go_on: finishes a run whose journal has a context besides its steps.
    :param described: returns the objects that the packages of the request describe; None: it
        names none.
    """

    def __init__(  # noqa: PLR0913
        self,
        instance: ClusterInstance,
        goal: Callable[[], str] | None = None,
        *,
        back: bool = False,
        promote: str = "",
        go_on: GoOn | None = None,
        described: Described = lambda: None,
    ) -> None:
        super().__init__(goal, back=back)
        self._instance, self._promote = instance, promote
        self._go_on, self._described = go_on, described
        self._lock = instance.lock(str(uuid.uuid4()))
        self._journal = instance.journal_of(self._lock)
        self._owns = False
        self._until_released = ExitStack()

    def read(self) -> Operation | None:
        """See Recovery."""
        record, self._instance.read_at = self._journal.read(), self._journal.read_at
        return record

    @contextmanager
    def hold(self, record: Operation) -> Iterator[None]:
        """See Recovery; a frozen instance lets an operation be ended, not make room for another."""
        try:
            self._owns = self._instance.require_rights(self._instance.plan_of(record))
        except errors.ClusterError:  # an untrustworthy journal is the more important error
            self._with_trusted_steps(record, goes_back=self.back or record.phase is Phase.UNDO)
            raise
        self._lock.ends = self.back or self.goal is None or self.goal() == record.goal
        with self._lock, self._until_released:
            yield

    def claim(self, record: Operation, *, goes_back: bool) -> Operation | None:
        """See Recovery."""
        record = self._with_trusted_steps(record, goes_back=goes_back)
        has_ended = self._has_ended(record)
        if not has_ended:
            self._journal.refuse_copy()
        claimed = self._journal.claim(record)
        if claimed is not None and has_ended:
            return replace(claimed, phase=Phase.END)
        if claimed is not None:
            origin = claimed.origin
            why = "; ".join(filter(None, (origin.why, self._instance.why)))
            claimed = replace(claimed, origin=replace(origin, why=why))
            # what the run before has sent may still be on its way: it meets newer versions
            instance = self._instance
            fence = Fence(instance.cluster.with_guard(self._lock.check), instance.options.workers)
            fence.raise_((step.key for step in record.object_steps), self._lock.operation)
        return claimed

    def finish(self, record: Operation) -> Outcome:
        """See Recovery."""
        hold, promote = record.held_at, self._promote
        if hold is not None and hold.key.name == promote:
            record = self._journal.note(record, hold.group + 1)
        run, go_on = self._run_of(record), self._go_on
        if record.context and go_on is None:
            raise errors.ContainerUpdateError(
                f"operation {record.operation}, a change of the VNF package, has not ended",
                next_step=errors.NextStep.RESUME_OR_ROLLBACK,
            )
        why = f"was promoted ({promote})" if promote else "was interrupted"
        left = [each for each in record.steps if each.group >= record.ended_groups]
        event = ResumeStarted(f"operation {record.operation} {why}", tuple(left))
        self._instance.progress(event)
        with run.until_ended():
            if run.is_over:
                run.execution.skip(run.execution.plan.steps)
                results = run.execution.results
            else:
                results = go_on(run) if go_on and record.context else run.execution.run()
            outcome = Outcome(run.execution.plan, results)
        self._instance.kept = run.kept
        return replace(outcome, **self._instance.in_history)

    def undo(self, record: Operation) -> Outcome | None:
        """See Recovery."""
        run = self._run_of(record)
        if run.is_over:
            run.end()
            return None
        hold = record.held_at
        why = f"was aborted ({hold.key.name})" if hold else "was interrupted"
        cause = f"operation {record.operation} {why}"
        begun = [step for step in record.steps if hold is None or step.group < hold.group]
        outcome = Outcome(run.execution.plan, run.execution.undo(cause, begun))
        run.execution.refuse_if_lost()
        refuse_incomplete(record, outcome)
        run.end(outcome, cause)
        return outcome

    def _run_of(self, record: Operation) -> JournalledRun:
        instance, keys = self._instance, [step.key for step in record.object_steps]
        keys += record.objects
        scope = scope_of(record.object_steps)
        scope.include(record.objects)
        seconds = instance.options.watch_seconds
        instance.informer = informer = Informer(instance.cluster, scope, watch_seconds=seconds)
        self._until_released.enter_context(informer).list(collections(keys) | traffic(keys))
        plan, owns = instance.plan_of(record), self._owns
        return instance.run_of(
            self._lock, self._journal, record, plan, informer, owns=owns, resumed=True
        )

    def _with_trusted_steps(self, record: Operation, *, goes_back: bool) -> Operation:
        """Return a record with the steps of it that may be carried out, or undone."""
        if self._instance.cluster.journal_key:  # it is signed, or it would not have been read
            return record
        known = self._described()
        keys = None if known is None else {manifest.key for manifest in known}

        def is_over(step: Step) -> bool:
            is_known = keys is None or step.key in keys
            return step.group < record.ended_groups and not (step.waits_again or is_known)

        instance = self._instance
        owned = instance.owned_objects(known, record.namespaces, all_of_it=known is None)
        # steps that have ended are not repeated, and no undo brings back what the plan created
        left = [
            step
            for step in record.object_steps
            if not (step.is_removal and step.is_of_new_object if goes_back else is_over(step))
        ]
        deletes = Action.CREATE if goes_back else Action.DELETE
        steps = instance.trusted_steps(owned, left, {}, deletes, str(self._journal.key))
        scripts = (step for step in record.steps if not isinstance(step, ObjectStep))
        ordered = sorted((*steps, *scripts), key=lambda step: step.group)
        return replace(record, steps=tuple(ordered))

    def _has_ended(self, record: Operation) -> bool:
        """Tell whether the signed history has an operation whose journal is a copy.

        A signature has no time: a journal that was copied while its operation ran, and put back
        after that has ended, is signed too, but is another object. A kill between the revision and
        the removal of the journal leaves the journal itself, unless something else keeps it.
        """
        instance, journal = self._instance, self._journal
        if not instance.cluster.journal_key or not record.origin.kind:
            return False
        history = History(instance.cluster, instance.namespace, instance.instance_id).read()
        revisions = [each for each in history if each.operation == record.operation]
        own = () if journal.is_being_removed else (journal.owner["uid"],)
        return any(each.journal not in own for each in revisions)
