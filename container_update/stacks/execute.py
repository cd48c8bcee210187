"""Carry out a plan against Heat: step by step, each safe to begin again, and back on failure.

What a step has sent to a stack is marked in the stack's tags with the operation and a digest of
what was sent: after a lost answer, or in another run, the tag tells whether it was done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from container_update.model.cancellation import CancelToken
from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    LeaseLostError,
    NextStep,
    NoWayBackError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from container_update.model.objects import Json
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action
from container_update.package.hot import Body
from container_update.stacks.client import StackService, reference, state_sentence
from container_update.stacks.coordination import Coordination, Coordinator, no_coordination
from container_update.stacks.journal import Journal, Record
from container_update.stacks.steps import AnyStep, ScriptStep, StackStep
from container_update.stacks.vnfcs import VnfcServer

LOG = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class StepError(ContainerUpdateError):
    """A step did not get where it leads; the message says why."""


class Execution:
    """One run over a plan.

    :param record: how far it is.
    :param progress: told each step when it begins, and its result.
    :param cancel: cancels the run from another thread or a signal handler.
    :param leave_failed: a failure is left for a rollback or a resume, not undone at once.
    """

    def __init__(  # noqa: PLR0913
        self,
        service: StackService,
        journal: Journal,
        record: Record,
        *,
        options: Options,
        coordinate: Coordinator = no_coordination,
        progress: Progress = lambda _: None,
        cancel: CancelToken | None = None,
        leave_failed: bool = False,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self.record = record
        self._service = service
        self._journal = journal
        self._options = options
        self._coordinate = coordinate
        self._progress = progress
        self._cancel = CancelToken() if cancel is None else cancel
        self._leave_failed = leave_failed
        self._clock = clock
        self._pause = pause or threading.Event().wait
        self._going_back = record.phase is Phase.UNDO
        self._took: dict[int, float] = {}

    # --- there ----------------------------------------------------------------------------------

    def run(self, *, before: Action | None = None) -> tuple[StepResult, ...]:
        """Do what is left to do.

        :param before: stop in front of the first step that does this.
        :raises UpdateFailedError: a step failed; all was undone, or left if so asked.
        :raises UndoIncompleteError: the same, and not all could be undone; or what failed is
            the deletion of the old stack, after which there is no way back.
        """
        steps = self.record.plan.steps
        for number in range(self.record.done, len(steps)):
            step = steps[number]
            if step.action is before:
                break
            began = self._clock()
            try:
                self._check_stop()
                self._progress(step)
                self._do(step)
            except LeaseLostError:
                raise
            except ContainerUpdateError as error:
                raise self._failed(number, error) from error
            self._took[number] = self._clock() - began
            self._report(self._done(number))
            self.record = self._journal.write(replace(self.record, done=number + 1))
        return self.results

    @property
    def results(self) -> tuple[StepResult, ...]:
        """What is done so far, by this run or the one before it."""
        return tuple(self._done(number) for number in range(self.record.done))

    def _done(self, number: int) -> StepResult:
        step = self.record.plan.steps[number]
        return StepResult(step, StepState.DONE, seconds=self._took.get(number, 0.0))

    def _do(self, step: AnyStep) -> None:
        if isinstance(step, ScriptStep):
            self._coordinate(Coordination(step.role, step.stack, step.member))
        elif step.after is None:
            self._delete(step.stack)
        elif step.before is None:
            self._create(step.stack, step.after)
        else:
            self._update(step.stack, step.after, step.member)

    # --- back -----------------------------------------------------------------------------------

    def undo(self) -> tuple[StepResult, ...]:
        """Put back what was done, the last first; the result of each step.

        Steps are looked at as they are now: undoing twice, or what was never done, is safe.
        """
        self._refuse_no_way_back()
        self._going_back = True
        self.record = self._journal.write(replace(self.record, phase=Phase.UNDO))
        results = []
        reached = self._reached()
        for number, step in reversed(list(enumerate(self.record.plan.steps))):
            if number >= reached:
                results.append(StepResult(step, StepState.NOT_STARTED))
                continue
            try:
                message = self._undo(step, was_coordinated=number + 1 < reached)
                results.append(self._report(StepResult(step, StepState.UNDONE, message)))
            except LeaseLostError:
                raise
            except ContainerUpdateError as error:
                results.append(self._report(StepResult(step, StepState.UNDO_FAILED, str(error))))
        return tuple(reversed(results))

    def _reached(self) -> int:
        """How many steps there is something to undo of. The old VNF's script gives it its traffic
        back: it runs wherever the new VNF's may have taken the traffic away."""
        reached = self.record.done + 1
        for step in self.record.plan.steps[self.record.done : reached]:
            reached += isinstance(step, ScriptStep) and step.role == "new" and not step.member
        return reached

    def _refuse_no_way_back(self) -> None:
        for step in self.record.plan.steps[: self.record.done + 1]:
            if step.action is not Action.DELETE:
                continue
            current = self._service.stack(step.stack)
            if current is None or current["stack_status"].startswith("DELETE"):
                raise NoWayBackError(
                    f"{step.key}, the old VNF's, is being deleted or gone: this change cannot be "
                    "undone any more. To get the old package back, finish this change, then change "
                    "the VNF to the old package"
                )

    def _undo(self, step: AnyStep, *, was_coordinated: bool) -> str:
        """Put one step back; what the operator should know of it."""
        if isinstance(step, ScriptStep):
            return "" if step.member else self._coordinate_back(step.role, step)
        if step.before is None:
            current = self._service.stack(step.stack)
            if current is not None and self._tag(step.after) in (current.get("tags") or ()):
                self._delete(reference(current))
        elif step.after is not None:
            self._restore(step)
            if step.member is not None and was_coordinated:
                return self._coordinate_back("old", step)
        return ""

    def _coordinate_back(self, role: str, step: AnyStep) -> str:
        """Run a script for the way back; one that fails does not keep the servers from being put
        back."""
        try:
            self._coordinate(Coordination(role, step.stack, step.member, back=True))
        except ContainerUpdateError as error:
            return f"{error}: see that the traffic goes to the old VNF"
        return ""

    def _restore(self, step: StackStep) -> None:
        """Put a stack back, if this operation ever sent anything to it."""
        assert step.before is not None
        current = self._service.stack(step.stack) or {}
        after, before = self._tag(step.after), self._tag(step.before)
        tags = set(current.get("tags") or ())
        if after in tags and current["stack_status"] == "UPDATE_IN_PROGRESS":
            self._service.cancel(step.stack)
        if tags & {after, before}:
            self._update(step.stack, step.before, step.member)

    def _failed(self, number: int, cause: ContainerUpdateError) -> UpdateFailedError:
        """Return the error of a step, after the undo where there is one."""
        step = self.record.plan.steps[number]
        what = f"{step.key}: {step.action.value}"
        if isinstance(step, ScriptStep):
            what += f" the {step.role} VNF"
        if step.action is Action.DELETE:
            return UndoIncompleteError(
                f"{step.key}: {cause}. The new VNF is in force, but a part of the old one is "
                "left: fix the cause",
                self._left(step, cause),
                next_step=NextStep.RESUME,
            )
        if self._leave_failed or self._cancel.keep_journal:
            return self._error_type(
                f"{what}: {cause}. Everything is left as it is",
                self._left(step, cause),
                next_step=NextStep.RESUME_OR_ROLLBACK,
            )
        return self.give_up(f"{what}: {cause}", step)

    @property
    def _error_type(self) -> type[UpdateFailedError]:
        return UpdateInterruptedError if self._cancel else UpdateFailedError

    def _left(self, step: AnyStep, cause: ContainerUpdateError) -> Outcome:
        failed = self._report(StepResult(step, StepState.FAILED, str(cause)))
        return Outcome(self.record.plan, (*self.results, failed))

    def give_up(self, cause: str, failed: AnyStep | None = None) -> UpdateFailedError:
        """Undo everything because of *cause*; the error that tells it."""
        plan = self.record.plan
        try:
            results = self.undo()
        except ClusterError as error:
            return UndoIncompleteError(
                f"{cause}. Nothing could be put back: {error}", Outcome(plan, self.results)
            )
        outcome = Outcome(
            plan,
            tuple(
                replace(result, message=cause) if result.step is failed else result
                for result in results
            ),
        )
        could_not = [result for result in results if result.state is StepState.UNDO_FAILED]
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            return UndoIncompleteError(
                f"{cause}. Not everything could be put back: {objects}", outcome
            )
        self._journal.remove()
        remarks = [result.message for result in results if result.message]
        but = f", but {'; '.join(remarks)}" if remarks else ""
        return self._error_type(
            f"{cause}. Everything was put back{but}",
            outcome,
            next_step=NextStep.RETRY if self._cancel else None,
        )

    def _report(self, result: StepResult) -> StepResult:
        self._progress(result)
        return result

    # --- one stack ------------------------------------------------------------------------------

    def _create(self, name: str, body: Body) -> None:
        """Make a stack; one that failed in a run before this is made anew."""
        tag, deadline, sent = self._tag(body), self._deadline(), False
        while True:
            current = self._settled(name, deadline)
            if current is None:
                try:
                    self._service.create(
                        {"stack_name": name, "tags": tag, "disable_rollback": True}
                        | body.as_request()
                    )
                except ClusterError as error:
                    self._only_busy(error, name, deadline)
                sent = True
                self._rest(_FIRST_PAUSE)
                continue
            if tag not in (current.get("tags") or ()):
                raise StepError(
                    f"expected no stack {name}, found one that this operation did not make: delete "
                    "or rename it"
                )
            if current["stack_status"] == "CREATE_COMPLETE":
                return
            if sent:
                raise StepError(state_sentence(current))
            self._delete(reference(current))

    def _update(self, stack: str, body: Body, member: VnfcServer | None) -> None:
        """Update a stack; what failed in a run before this is tried again."""
        tag, deadline, sent = self._tag(body), self._deadline(), False
        while True:
            current = self._settled(stack, deadline)
            if current is None:
                raise StepError(f"stack {stack} is gone: somebody else deleted it")
            if tag in (current.get("tags") or ()):
                if _is_updated(current):
                    break
                if sent:
                    raise StepError(state_sentence(current))
            try:
                request, existing = body.as_update()
                self._service.update(stack, request | {"tags": tag}, existing=existing)
                sent = True
            except ClusterError as error:
                self._only_busy(error, stack, deadline)
            self._rest(_FIRST_PAUSE)
        if member is not None:
            self._wait_active(stack, member, deadline)

    def _only_busy(self, error: ClusterError, stack: str, deadline: float) -> None:
        """Let it be tried again where somebody else is at the stack (409), until the time limit."""
        if error.status != 409 or self._clock() > deadline:
            raise error
        LOG.info("stack %s is busy: %s", stack, error)

    def _delete(self, stack: str) -> None:
        deadline, accepted = self._deadline(), False
        while not accepted:
            try:
                self._service.delete(stack)
                accepted = True
            except ClusterError as error:
                self._only_busy(error, stack, deadline)
                self._rest(_FIRST_PAUSE)
        current = self._settled(stack, deadline)
        if current is not None:
            raise StepError(state_sentence(current))

    def _wait_active(self, stack: str, member: VnfcServer, deadline: float) -> None:
        """Wait for the server: it can break after Heat was done with it."""
        pause = _FIRST_PAUSE
        while True:
            current = self._service.resource(stack, member.resource)
            status = str(((current or {}).get("attributes") or {}).get("status", "gone"))
            if status == "ACTIVE":
                return
            if status == "ERROR" or self._clock() > deadline:
                raise StepError(f"its server is {status}, expected ACTIVE: see the server's fault")
            self._rest(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _settled(self, stack: str, deadline: float | None = None) -> Json | None:
        """Return the stack as soon as nothing is done to it; None where there is none."""
        deadline, pause = deadline or self._deadline(), _FIRST_PAUSE
        while True:
            current = self._service.stack(stack)
            if current is None or not current["stack_status"].endswith("_IN_PROGRESS"):
                return current
            if self._clock() > deadline:
                raise StepError(
                    f"stack {current['stack_name']} is still {current['stack_status']} after the "
                    f"time limit; Heat says: {current['stack_status_reason']}"
                )
            self._check_stop()
            self._rest(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _rest(self, seconds: float) -> None:
        self._journal.renew()
        self._pause(seconds)

    def _check_stop(self) -> None:
        if self._cancel and not self._going_back:
            raise StepError(f"stopped {self._cancel.reason}")

    def _deadline(self) -> float:
        options = self._options
        limit = options.undo_timeout if self._going_back else options.timeout
        return self._clock() + limit

    def _tag(self, body: Body | None) -> str:
        text = json.dumps(body and body.as_request(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"container-update-{self.record.operation[:8]}-{digest}"


def _is_updated(stack: Json) -> bool:
    """Return False also for a stack that was created with rollback and has undone its update."""
    status = str(stack["stack_status"])
    return status.endswith("_COMPLETE") and not status.startswith("ROLLBACK")
