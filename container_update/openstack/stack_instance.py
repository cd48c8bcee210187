# SPDX-License-Identifier: Apache-2.0
"""A VNF instance in a cloud: what :mod:`container_update.engine.run` asks of it.

A run may be interrupted anywhere: the journal is around it, in a stack of its own, and what it
left behind is finished or undone by the next one.
"""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from container_update.cluster.beginning import new_identity
from container_update.engine.recovery import Recovery, refuse_incomplete
from container_update.model.cancellation import CancelToken
from container_update.model.errors import NextStep, PlanError, UpdateInProgressError
from container_update.model.operation import Status, name_of
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult
from container_update.model.reporter import reporter
from container_update.openstack import live
from container_update.openstack.client import Heat, reference
from container_update.openstack.execution.execution import Coordinator, StackExecution
from container_update.openstack.hold import Clock
from container_update.openstack.journal import StackJournal, UnsignedError
from container_update.openstack.plan import StackPlan
from container_update.openstack.record import StackRecord

LOG = logging.getLogger(__name__)

GoOn = Callable[[StackExecution], tuple[StepResult, ...]]
"""Finishes an interrupted run; returns the result of each step."""


class StackGoal(ABC):
    """Where an operation on a VNF's stacks leads."""

    ends_vnf: ClassVar[bool] = False
    """Nothing is left of the VNF then: what an earlier operation left goes with it."""

    @abstractmethod
    def digest(self) -> str:
        """Return what identifies where it leads: two runs of one request have the same.

        :raises PackageError: a package or the request is wrong.
        """

    @abstractmethod
    def plan(self, service: Heat) -> StackPlan:
        """Return the plan, write nothing; PlanError: the stack is in no state for it."""

    def context(self) -> Mapping[str, Any]:
        """Return plain values that a resume needs beside the plan; no passwords."""
        return {}

    def carry_out(self, execution: StackExecution) -> tuple[StepResult, ...]:
        """Carry out the plan of a run, while it holds the journal."""
        return execution.run()


@dataclass
class StackInstance:
    """A VNF instance in a cloud, on which one operation at a time can be under way."""

    service: Heat
    instance_id: str | None
    options: Options
    coordinate: Coordinator = lambda _, __: None
    cancel: CancelToken = field(default_factory=CancelToken)
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failure is left for a rollback or a resume, not undone at once."""
    clock: Clock = Clock()  # noqa: RUF009, it is frozen
    stack: str | None = None
    """The instance's stack (its name, its id or ``name/id``), whose changes alone are recovered;
    None: whatever is in the instance's journal."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """The paths of the request's coordination scripts, by VNF."""

    def __post_init__(self) -> None:
        self.progress = reporter(self.progress)

    def read(self) -> StackRecord | None:
        """Return the change under way, None without; PlanError for one of another stack."""
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

    # --- an operation, step by step -------------------------------------------------------------

    @property
    def requests(self) -> int:
        """How many requests went to the cloud so far."""
        return self.service.requests

    def recover_for(self, goal: StackGoal) -> Outcome | None:
        """Finish what an earlier run left where it has the same goal, else undo it."""
        digest = goal.digest()
        if goal.ends_vnf:
            return None
        self._refuse_unfinished_change(goal)
        return self.recover(goal=lambda: digest, go_on=goal.carry_out)

    def happens_once(self, _: StackGoal) -> bool:
        """Return True: an interrupted run that is finished is not planned again."""
        return True

    @contextmanager
    def observe(self, _: StackGoal) -> Iterator[Heat]:
        """Give the block Heat, which is asked whenever something is to be known."""
        yield self.service

    def make_plan(self, goal: StackGoal, service: Heat) -> StackPlan:
        """Return the plan of a goal; write nothing."""
        return goal.plan(service)

    def tidy(self, goal: StackGoal) -> None:
        """Remove the journal of a VNF that has no stack any more."""
        if goal.ends_vnf:
            journal = self.journal(str(uuid.uuid4()))
            journal.take_over()
            if journal.is_held:
                journal.remove()
            else:
                journal.sweep()

    def _refuse_unfinished_change(self, goal: StackGoal) -> None:
        """Raise PlanError where another goal would undo a change without its scripts."""
        record = self.read()
        if record is not None and record.context and not goal.context():
            raise PlanError(
                f"operation {record.operation}, a change of this VNF's package, has not ended: "
                "send its request again to finish it"
            )

    @contextmanager
    def begin(self, goal: StackGoal, plan: StackPlan, _: Heat) -> Iterator[StackExecution]:
        """Hold the journal, with the plan in it, while the block carries out the plan of a goal.

        :raises UpdateInProgressError: another change of this instance runs, or ran meanwhile.
        """
        common = new_identity(self.clock.now(), goal.digest(), self.instance_id)
        record = StackRecord(**common, plan=plan, context=goal.context())
        journal = self.journal(record.operation)
        if goal.ends_vnf:
            journal.take_over()  # in place of what an earlier operation has left
        is_taken = journal.is_held
        if not is_taken:
            journal.begin(record)
        with _release_on_error(journal):
            if is_taken:
                journal.write(record)
            self._refuse_stale(plan, journal)
            execution = self.execution(journal, record)
            yield execution
            execution.end()

    def outcome(self, plan: StackPlan, results: tuple[StepResult, ...], _: Heat) -> Outcome:
        """Return the outcome of a plan."""
        return Outcome(plan, results)

    # --- one that is under way, or stopped ------------------------------------------------------

    def _refuse_stale(self, plan: StackPlan, journal: StackJournal) -> None:
        """Raise UpdateInProgressError where a stack changed since the plan was made."""
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
        """Return the operation under way."""
        journal = self.journal("")
        record, holder = journal.read(), journal.holder()
        current = Status(record)
        if holder is not None:
            silence = holder.silence(self.clock.now())
            heartbeat = f"(last heartbeat {max(silence, 0):.0f} s ago)"
            expired = holder.is_gone or silence > holder.seconds
            current = replace(current, holder=holder.operation, held=heartbeat, expired=expired)
        if record is None:
            return current
        return replace(current, states=record.states_of_steps(runs=current.is_running))

    def recover(
        self,
        *,
        goal: Callable[[], str] | None = None,
        back: bool = False,
        go_on: GoOn = StackExecution.run,
    ) -> Outcome | None:
        """Finish or undo the operation that left its journal behind.

        :param go_on: finishes a run of a goal that has more to do than its steps.

        The other parameters, the result and the errors are those of
        :class:`~container_update.engine.recovery.Recovery`.
        """
        outcome = _StackRecovery(self, goal, back=back, go_on=go_on).run()
        if outcome is None:
            self.journal("").sweep()
        return outcome

    def execution(self, journal: StackJournal, record: StackRecord) -> StackExecution:
        """Return the execution of a plan by the process that holds its journal."""
        return StackExecution(
            self.service,
            journal,
            record,
            self.options,
            self.coordinate,
            self.progress,
            self.cancel,
            self.leave_failed,
            self.scripts,
        )


class _StackRecovery(Recovery[StackRecord]):
    """The recovery of an operation in a cloud: see :meth:`StackInstance.recover`."""

    def __init__(
        self, instance: StackInstance, goal: Callable[[], str] | None, *, back: bool, go_on: GoOn
    ) -> None:
        super().__init__(goal, back=back)
        self._instance, self._go_on = instance, go_on
        self._journal = instance.journal(str(uuid.uuid4()))

    def read(self) -> StackRecord | None:
        """See Recovery."""
        return self._instance.read()

    @contextmanager
    def hold(self, _: StackRecord) -> Iterator[None]:
        """See Recovery: who holds the journal has claimed it."""
        self._journal.take_over()
        with _release_on_error(self._journal):
            yield

    def claim(self, record: StackRecord, *, goes_back: bool) -> StackRecord:  # noqa: ARG002
        """See Recovery."""
        return record

    def finish(self, record: StackRecord) -> Outcome:
        """See Recovery."""
        execution = self._instance.execution(self._journal, record)
        results = self._go_on(execution)
        execution.end()
        return Outcome(execution.record.plan, results)

    def undo(self, record: StackRecord) -> Outcome | None:
        """See Recovery."""
        if record.committed and record.plan.can_be_left and not self.back:
            self._journal.remove()
            return None
        execution = self._instance.execution(self._journal, record)
        outcome = Outcome(execution.record.plan, execution.undo())
        refuse_incomplete(execution.record, outcome)
        execution.end()
        return outcome


@contextmanager
def _release_on_error(journal: StackJournal) -> Iterator[None]:
    """Release the journal of a run that fails, by whatever error, and leaves it."""
    try:
        yield
    except Exception:
        journal.release()
        raise


# --- its id where the caller has none -----------------------------------------------------------


def instance_id_of(service: Heat, stack: str) -> str | None:
    """Return the id under which the changes of a stack's VNF are journalled.

    It is the stack's id, unless a change of this stack is under way: Blue-Green gives the VNF
    another stack, and the one that it began with may be gone.

    :param stack: the stack, by name, id or ``name/id``.
    :raises PlanError: there is no such stack, and no change of it is under way.
    """
    current = service.stack(stack)
    known_as = reference(current) if current else stack
    for record in _under_way(service):
        if record.concerns(known_as):
            return record.instance_id
    if current is None:
        raise PlanError(f"there is no stack {stack}: name the VNF's stack by its name or id")
    return str(current["id"])


def _under_way(service: Heat) -> Iterator[StackRecord]:
    """Yield the record of every change in the project whose instance has a plain id."""
    prefix = name_of(None)
    names = {str(stack["stack_name"]).partition(".")[0] for stack in service.stacks()}
    for name in sorted(names):
        if name != prefix and not name.startswith(f"{prefix}-"):
            continue
        instance_id = name[len(prefix) + 1 :] or None
        journal = StackJournal(service, instance_id, "", 0.0, Clock(), CancelToken())
        try:
            record = journal.read()
        except (UpdateInProgressError, UnsignedError) as error:
            LOG.info("stack %s is the journal of another program or host: %s", name, error)
            continue
        if record is not None:
            yield record
