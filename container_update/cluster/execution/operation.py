"""Updates that can be cut short anywhere: the lock and the journal around a run, and what is made
of a journal that a run left behind.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from container_update.cluster.execution.execute import Execution, pods_by_workload
from container_update.cluster.informer import Informer
from container_update.cluster.journal import Journal, Phase, Record, target_of
from container_update.cluster.lease import Holder, Lock, utc_now
from container_update.model.cancellation import Stop
from container_update.model.cluster import Cluster
from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    NextStep,
    UndoIncompleteError,
    UpdateFailedError,
)
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Plan
from container_update.planning import permissions
from container_update.planning.steps import object_steps
from container_update.planning.update import collections, traffic

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """What is under way for an instance; as text it never shows content."""

    record: Record | None
    """The journal of a run that has not ended."""
    holder: Holder | None
    """Who holds the lease."""

    def __str__(self) -> str:
        lines = [self.record.summary() if self.record else "No update is under way."]
        if self.holder is not None:
            lines.append(
                f"Held by {self.holder.identity} since {self.holder.since}{self._expired}."
            )
        return "\n".join(lines)

    @property
    def _expired(self) -> str:
        expired = self.holder is not None and self.holder.is_expired(utc_now())
        return " (expired)" if expired else ""

    def as_dict(self) -> dict[str, object]:
        """The same as plain values."""
        return {
            "operation": self.record.operation if self.record else None,
            "phase": self.record.phase.value if self.record else None,
            "started": self.record.started if self.record else None,
            "steps": [str(step.key) for step in self.record.steps] if self.record else [],
            "holder": self.holder.identity if self.holder else None,
            "expired": bool(self._expired),
        }


@dataclass
class Run:
    """A run that is locked and journalled."""

    journal: Journal
    record: Record
    execution: Execution

    def has_passed(self, milestone: str) -> bool:
        """This run, or one before it that was cut short, came that far."""
        return milestone in self.record.milestones

    def pass_milestone(self, milestone: str) -> None:
        """Note, for a resume, that it came that far."""
        self.record = self.journal.pass_milestone(self.record, milestone)


@dataclass(frozen=True)
class Instance:
    """A VNF instance in a cluster: what can be under way there."""

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

    def lock(self, operation: str, stop: Stop) -> Lock:
        """Keeps a second update of this instance out."""
        return Lock(
            self.cluster,
            self.namespace,
            self.instance_id,
            operation,
            _host(),
            self.options.lease_seconds,
            lambda reason: stop.request(reason, lost=True),
        )

    # --- a new run ------------------------------------------------------------------------------

    def run(self, plan: Plan, informer: Informer, stop: Stop) -> tuple[StepResult, ...]:
        """Carry out a plan, locked and journalled.

        :raises UpdateInProgressError: another update of this instance runs.
        :raises UpdateFailedError: see :meth:`Execution.run`.
        """
        with self.begun(plan, informer, stop, target_of(plan.manifests)) as run:
            return run.execution.run()

    @contextmanager
    def begun(
        self,
        plan: Plan,
        informer: Informer,
        stop: Stop,
        target: str,
        context: Mapping[str, Any] | None = None,
    ) -> Iterator[Run]:
        """Hold the lock and the journal while the block carries out the plan.

        :param target: stands for what was asked for.
        :param context: plain values that a resume needs beside the steps.
        :raises ClusterError: the account lacks a right; nothing was written.
        :raises UpdateInProgressError: another update of this instance runs.
        """
        self._refuse_missing_rights(plan)
        operation = str(uuid.uuid4())
        with self.lock(operation, stop):
            record = Record(
                operation=operation,
                host=_host(),
                started=utc_now().isoformat(timespec="seconds"),
                target=target,
                steps=object_steps(plan),
                pods_before=pods_by_workload(plan, informer),
                instance_id=self.instance_id,
                def_files=plan.def_files,
                context=context or {},
            )
            self.journal.write(record)
            with self._until_ended(record):
                yield Run(self.journal, record, self._execution(plan, record, informer, stop))

    def _refuse_missing_rights(self, plan: Plan) -> None:
        missing = self.cluster.refused(permissions.needed(plan))
        if missing:
            raise ClusterError(
                "the update, or its undo, would be refused (403) because this account may not "
                f"{'; '.join(str(right) for right in missing)}: nothing was written; bind a Role "
                "with these rights to it",
                status=403,
                reason="Forbidden",
            )

    def _execution(self, plan: Plan, record: Record, informer: Informer, stop: Stop) -> Execution:
        return Execution(
            plan,
            self.cluster,
            informer,
            self.options,
            record.pods_before,
            stop,
            lambda: self._turn_back(record),
            self.progress,
            leave_failed=self.leave_failed,
        )

    @contextmanager
    def _until_ended(self, record: Record) -> Iterator[None]:
        """The journal goes when the update is finished or wholly undone, and only then."""
        try:
            yield
        except UpdateFailedError as error:
            states = {result.state for result in error.outcome.results}
            if states <= {StepState.UNDONE, StepState.NOT_STARTED}:
                self._remove(record)
            raise
        self._remove(record)

    def _turn_back(self, record: Record) -> None:
        """Tell who comes after a second accident to undo too. Not worth leaving out the undo."""
        try:
            self.journal.set_phase(record, Phase.UNDO)
        except ContainerUpdateError as error:
            LOG.warning("the journal still says that the update goes on: %s", error)

    def _remove(self, record: Record) -> None:
        for _ in range(2):
            try:
                self.journal.remove(record)
                return
            except ContainerUpdateError as error:
                LOG.warning("the journal of a run that ended could not be removed: %s", error)

    # --- a run that was cut short ---------------------------------------------------------------

    def status(self) -> Status:
        """What is under way."""
        lease = self.cluster.get(self.lock("", Stop()).key)
        return Status(self.journal.read(), Holder.of(lease) if lease is not None else None)

    def recover(
        self,
        *,
        target: str | None = None,
        back: bool = False,
        stop: Stop | None = None,
        go_on: Callable[[Run], tuple[StepResult, ...]] | None = None,
    ) -> Outcome | None:
        """Finish or undo the run that left its journal behind.

        :param target: what is asked for now; a journal that leads elsewhere is undone.
        :param back: undo in any case.
        :param go_on: finishes a run that has a context, which is more than its steps.
        :returns: what became of it, None where there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises UpdateFailedError: it could not be finished and was undone.
        :raises UndoIncompleteError: it could not be undone.
        """
        if self.journal.read() is None:
            return None
        stop = Stop() if stop is None else stop
        with self.lock(str(uuid.uuid4()), stop), self._informer() as informer:
            record = self.journal.read()  # as it is now that nobody else changes it
            if record is None:
                return None
            plan = Plan(self.namespace, self.instance_id, record.steps, def_files=record.def_files)
            keys = [step.key for step in record.steps]
            informer.list(collections(keys) | traffic(keys))
            execution = self._execution(plan, record, informer, stop)
            elsewhere = target is not None and target != record.target
            if back or elsewhere or record.phase is Phase.UNDO:
                return self._go_back(record, plan, execution)
            LOG.warning("going on with %s", record.operation)
            if record.context and go_on is None:
                raise ContainerUpdateError(
                    f"operation {record.operation}, a change of the VNF package, has not ended",
                    next_step=NextStep.RESUME_OR_ROLLBACK,
                )
            with self._until_ended(record):
                if go_on is not None and record.context:
                    return Outcome(plan, go_on(Run(self.journal, record, execution)))
                return Outcome(plan, execution.run(resumed=True))

    def _informer(self) -> Informer:
        return Informer(self.cluster, watch_seconds=self.options.watch_seconds)

    def _go_back(self, record: Record, plan: Plan, execution: Execution) -> Outcome:
        results = execution.undo(f"operation {record.operation} was cut short", record.steps)
        outcome = Outcome(plan, results)
        could_not = [result for result in results if result.state is StepState.UNDO_FAILED]
        execution.refuse_if_lost()
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            raise UndoIncompleteError(
                f"operation {record.operation} could not be undone: {objects}", outcome
            )
        self._remove(record)
        return outcome


def _host() -> str:
    return f"{socket.gethostname()}.{os.getpid()}"
