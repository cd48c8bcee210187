"""Operations that may be interrupted anywhere: the lease and the journal around a run.

What a run left behind in its journal is finished or undone by the next one.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from container_update.cluster.execution.execute import Execution, pods_by_workload
from container_update.cluster.informer import Informer
from container_update.cluster.journal import Journal, Record, goal_of
from container_update.cluster.lease import Holder, LeaseLock, utc_now
from container_update.model import errors, operation
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Plan
from container_update.planning import permissions
from container_update.planning.steps import object_steps
from container_update.planning.update import collections, traffic

LOG = logging.getLogger(__name__)


@dataclass
class JournalledRun:
    """A run that holds the lease and has a journal."""

    journal: Journal
    record: Record
    execution: Execution

    def has_passed(self, milestone: str) -> bool:
        """Return whether this run, or an interrupted one before it, passed the milestone."""
        return milestone in self.record.milestones

    def pass_milestone(self, milestone: str) -> None:
        """Note in the journal, for a resume, that the run passed the milestone."""
        self.record = self.journal.pass_milestone(self.record, milestone)


@dataclass(frozen=True)
class Operation:
    """The operations of one VNF instance in a cluster: one new one, or what one left behind."""

    cluster: Cluster
    namespace: str
    instance_id: str | None
    options: Options
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """What a failure leaves is kept for a rollback or a resume, not undone."""

    @property
    def journal(self) -> Journal:
        """Where an update that is under way is written down."""
        return Journal(self.cluster, self.namespace, self.instance_id)

    def lock(self, run_id: str, cancel: CancelToken) -> LeaseLock:
        """Return the lease that keeps a second operation of this instance out."""
        return LeaseLock(
            self.cluster,
            self.namespace,
            self.instance_id,
            run_id,
            operation.host_name(),
            self.options.lease_seconds,
            lambda reason: cancel.request(reason, lease_lost=True),
        )

    def run(self, plan: Plan, informer: Informer, cancel: CancelToken) -> tuple[StepResult, ...]:
        """Carry out a plan, with lease and journal.

        :raises UpdateInProgressError: another update of this instance runs.
        :raises UpdateFailedError: see :meth:`Execution.run`.
        """
        with self.begun(plan, informer, cancel, goal_of(plan.manifests)) as run:
            return run.execution.run()

    @contextmanager
    def begun(
        self,
        plan: Plan,
        informer: Informer,
        cancel: CancelToken,
        goal: str,
        context: Mapping[str, Any] | None = None,
    ) -> Iterator[JournalledRun]:
        """Hold the lease and the journal while the block carries out the plan.

        :param goal: a digest of what is requested.
        :param context: plain values that a resume needs beside the steps.
        :raises ClusterError: the account lacks a right; nothing was written.
        :raises UpdateInProgressError: another update of this instance runs.
        """
        self._refuse_missing_rights(plan)
        common = operation.begun(utc_now(), goal, self.instance_id)
        steps = object_steps(plan)
        with self.lock(common["operation"], cancel):
            record = Record(
                **common,
                steps=steps,
                pods_before=pods_by_workload(steps, informer),
                def_files=plan.def_files,
                context=context or {},
            )
            self.journal.write(record)
            with self._until_ended(record):
                yield self._run_of(record, plan, informer, cancel)

    def _refuse_missing_rights(self, plan: Plan) -> None:
        missing = self.cluster.refused(permissions.needed(plan))
        if missing:
            raise errors.ClusterError(
                "the update, or its undo, would be refused (403) because this account may not "
                f"{'; '.join(str(right) for right in missing)}: nothing was written; bind a Role "
                "with these rights to it",
                status=403,
                reason="Forbidden",
            )

    def _run_of(
        self, record: Record, plan: Plan, informer: Informer, cancel: CancelToken
    ) -> JournalledRun:
        execution = Execution(
            plan,
            self.cluster,
            informer,
            self.options,
            record.pods_before,
            cancel,
            lambda: self._turn_back(record),
            self.progress,
            leave_failed=self.leave_failed,
        )
        return JournalledRun(self.journal, record, execution)

    @contextmanager
    def _until_ended(self, record: Record) -> Iterator[None]:
        """Remove the journal when the update is finished or completely undone, and only then."""
        try:
            yield
        except errors.UpdateFailedError as error:
            states = {result.state for result in error.outcome.results}
            if states <= {StepState.UNDONE, StepState.NOT_STARTED}:
                self._remove(record)
            raise
        self._remove(record)

    def _turn_back(self, record: Record) -> None:
        """Note in the journal that the run is being undone; the undo goes on without that too."""
        try:
            self.journal.set_phase(record, operation.Phase.UNDO)
        except errors.ContainerUpdateError as error:
            LOG.warning("the journal still says that the update goes on: %s", error)

    def _remove(self, record: Record) -> None:
        for _ in range(2):
            try:
                self.journal.remove(record)
                return
            except errors.ContainerUpdateError as error:
                LOG.warning("the journal of a run that ended could not be removed: %s", error)

    def status(self) -> operation.Status:
        """Return what is under way."""
        record, holder = self.journal.read(), self.holder()
        if holder is None:
            return operation.Status(record)
        expired = holder.is_expired(utc_now())
        return operation.Status(record, holder.identity, f"since {holder.since}", expired)

    def holder(self) -> Holder | None:
        """Return who holds the lease, also where it has expired."""
        lease = self.cluster.get(self.lock("", CancelToken()).key)
        return None if lease is None else Holder.of(lease)

    def recover(
        self,
        *,
        goal: str | None = None,
        back: bool = False,
        cancel: CancelToken | None = None,
        go_on: Callable[[JournalledRun], tuple[StepResult, ...]] | None = None,
    ) -> Outcome | None:
        """Finish or undo the run that left its journal behind.

        :param goal: of the present request; a run with another goal is undone.
        :param back: undo in any case.
        :param go_on: finishes a run that has a context, which is more than its steps.
        :returns: what became of it, None where there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UpdateFailedError: it could not be finished and was undone.
        :raises UndoIncompleteError: it could not be undone.
        """
        cancel = CancelToken() if cancel is None else cancel

        def run(record: Record, informer: Informer) -> JournalledRun:
            plan = Plan(self.namespace, self.instance_id, record.steps, def_files=record.def_files)
            keys = [step.key for step in record.steps]
            informer.list(collections(keys) | traffic(keys))
            return self._run_of(record, plan, informer, cancel)

        return operation.recover(
            self.journal.read,
            lambda: self._held(cancel),
            lambda record, informer: self._finish(run(record, informer), go_on),
            lambda record, informer: self._go_back(run(record, informer)),
            goal=goal,
            back=back,
        )

    @contextmanager
    def _held(self, cancel: CancelToken) -> Iterator[Informer]:
        informer = Informer(self.cluster, watch_seconds=self.options.watch_seconds)
        with self.lock(str(uuid.uuid4()), cancel), informer:
            yield informer

    def _finish(
        self, run: JournalledRun, go_on: Callable[[JournalledRun], tuple[StepResult, ...]] | None
    ) -> Outcome:
        record = run.record
        if record.context and go_on is None:
            raise errors.ContainerUpdateError(
                f"operation {record.operation}, a change of the VNF package, has not ended",
                next_step=errors.NextStep.RESUME_OR_ROLLBACK,
            )
        with self._until_ended(record):
            if go_on is not None and record.context:
                return Outcome(run.execution.plan, go_on(run))
            return Outcome(run.execution.plan, run.execution.run(resumed=True))

    def _go_back(self, run: JournalledRun) -> Outcome:
        record, execution = run.record, run.execution
        results = execution.undo(f"operation {record.operation} was interrupted", record.steps)
        outcome = Outcome(execution.plan, results)
        execution.refuse_if_lost()
        operation.refuse_incomplete(record, outcome)
        self._remove(record)
        return outcome
