"""Carry out a plan against Heat step by step, each safe to repeat; undo it on failure.

What a step has sent to a stack is marked in the stack's tags with the operation and a digest of
what was sent: after a lost answer, or in another run, the tag shows whether it was done.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace

from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action
from container_update.model.reporter import reporter
from container_update.package.hot import Body
from container_update.stacks.client import Heat, reference, state_sentence
from container_update.stacks.journal import Journal
from container_update.stacks.plan import AnyStep, Coordinator, ScriptStep, StackStep
from container_update.stacks.record import Record
from container_update.stacks.vnfcs import VnfcServer

LOG = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class StepError(errors.ContainerUpdateError):
    """A step failed; the message says why."""


@dataclass(repr=False)
class Execution:
    """One run over a plan."""

    service: Heat
    journal: Journal
    record: Record
    """How far it is."""
    options: Options
    coordinate: Coordinator
    progress: Progress
    """Called with each step that begins, and with each step's result."""
    cancel: CancelToken
    leave_failed: bool
    """A failure is left for a rollback or a resume, not undone at once."""
    _seconds: dict[int, float] = field(default_factory=dict, init=False)
    """What the steps that are done took, by number."""

    def __post_init__(self) -> None:
        self.progress = reporter(self.progress)

    # --- forwards -------------------------------------------------------------------------------

    def run(self, *, before: Action | None = None) -> tuple[StepResult, ...]:
        """Carry out the steps that are left.

        :param before: stop before the first step with this action.
        :raises UpdateFailedError: a step failed; all was undone, or left if so asked.
        :raises UndoIncompleteError: the same, and not all could be undone; or what failed is
            the deletion of the old stack, after which there is no way back.
        """
        steps = self.record.plan.steps
        for number in range(self.record.done, len(steps)):
            step = steps[number]
            if step.action is before:
                break
            started = time.monotonic()
            try:
                self._check_stop()
                self.progress(step)
                self._do(step)
            except errors.LeaseLostError:
                raise
            except errors.ContainerUpdateError as error:
                raise self._failed(number, error) from error
            self._seconds[number] = time.monotonic() - started
            self._report(self._done(number))
            self.record = self.journal.write(replace(self.record, done=number + 1))
        return self.results

    @property
    def results(self) -> tuple[StepResult, ...]:
        """The results of the steps that are done, by this run or an earlier one."""
        return tuple(self._done(number) for number in range(self.record.done))

    def _done(self, number: int) -> StepResult:
        step = self.record.plan.steps[number]
        return StepResult(step, StepState.DONE, seconds=self._seconds.get(number, 0.0))

    def _do(self, step: AnyStep) -> None:
        if isinstance(step, ScriptStep):
            with self.journal.renewed():
                self.coordinate(step)
        elif step.after is None:
            self.record = self.journal.write(replace(self.record, committed=True))
            self._delete(step.stack)
        elif step.before is None:
            self._create(step.stack, step.after)
        else:
            self._update(step.stack, step.after, step.member)

    # --- undo -----------------------------------------------------------------------------------

    def undo(self) -> tuple[StepResult, ...]:
        """Undo what was done, the last step first; return the result of each step.

        Each stack is judged by its state now: to undo twice, or what was never done, is safe.
        """
        self._refuse_no_way_back()
        self.record = self.journal.write(replace(self.record, phase=Phase.UNDO))
        results = []
        reached = self._reached()
        for number, step in reversed(list(enumerate(self.record.plan.steps))):
            if number >= reached:
                results.append(StepResult(step, StepState.NOT_STARTED))
                continue
            try:
                message = self._undo(step, was_coordinated=number + 1 < reached)
                results.append(self._report(StepResult(step, StepState.UNDONE, message)))
            except errors.LeaseLostError:
                raise
            except errors.ContainerUpdateError as error:
                results.append(self._report(StepResult(step, StepState.UNDO_FAILED, str(error))))
        return tuple(reversed(results))

    def _reached(self) -> int:
        """Return how many steps may have to be undone. The old VNF's script, which gives it its
        traffic back, is one of them once the new VNF's script may have taken the traffic away."""
        reached = self.record.done + 1
        for step in self.record.plan.steps[self.record.done : reached]:
            reached += isinstance(step, ScriptStep) and step.role == "new" and not step.member
        return reached

    def _refuse_no_way_back(self) -> None:
        if self.record.committed:
            step = next(s for s in self.record.planned if s.action is Action.DELETE)
            raise errors.NoWayBackError(
                f"{step.key}, the old VNF's, is being deleted or gone: this change cannot be "
                "undone any more. To get the old package back, finish this change, then change "
                "the VNF to the old package"
            )

    def _undo(self, step: AnyStep, *, was_coordinated: bool) -> str:
        """Undo one step; return what the operator should know of it."""
        if isinstance(step, ScriptStep):
            return "" if step.member else self._coordinate_back(step.role, step)
        if step.before is None:
            current = self.service.stack(step.stack)
            if current is not None and self.record.tag(step.after) in (current.get("tags") or ()):
                self._delete(reference(current))
        elif step.after is not None:
            self._restore(step)
            if step.member is not None and was_coordinated:
                return self._coordinate_back("old", step)
        return ""

    def _coordinate_back(self, role: str, step: AnyStep) -> str:
        """Run a script of the undo; return its error: it does not end the undo."""
        try:
            with self.journal.renewed():
                self.coordinate(ScriptStep.of(role, step.stack, step.member, back=True))
        except errors.LeaseLostError:
            raise
        except errors.ContainerUpdateError as error:
            return f"{error}: see that the traffic goes to the old VNF"
        return ""

    def _restore(self, step: StackStep) -> None:
        """Restore a stack if this operation has sent an update to it."""
        assert step.before is not None
        current = self.service.stack(step.stack) or {}
        after, before = self.record.tag(step.after), self.record.tag(step.before)
        tags = set(current.get("tags") or ())
        if after in tags and current["stack_status"] == "UPDATE_IN_PROGRESS":
            self.service.cancel(step.stack, guard=self.journal.confirm)
        if tags & {after, before}:
            self._update(step.stack, step.before, step.member)

    def _failed(self, number: int, cause: errors.ContainerUpdateError) -> errors.UpdateFailedError:
        """Return the error of a step, after the undo where there is one."""
        step = self.record.plan.steps[number]
        if step.action is Action.DELETE:
            return errors.UndoIncompleteError(
                f"{step.key}: {cause}. The new VNF is in force, but a part of the old one is "
                "left: fix the cause",
                self._left(step, cause),
                next_step=errors.NextStep.RESUME,
            )
        what = str(step) if isinstance(step, ScriptStep) else f"{step.key}: {step.action.value}"
        if self.leave_failed or self.cancel.keep_journal:
            return self._error_type(
                f"{what}: {cause}. Everything is left as it is",
                self._left(step, cause),
                next_step=errors.NextStep.RESUME_OR_ROLLBACK,
            )
        return self.give_up(f"{what}: {cause}", step)

    @property
    def _error_type(self) -> type[errors.UpdateFailedError]:
        return errors.UpdateInterruptedError if self.cancel else errors.UpdateFailedError

    def _left(self, step: AnyStep, cause: errors.ContainerUpdateError) -> Outcome:
        failed = self._report(StepResult(step, StepState.FAILED, str(cause)))
        return Outcome(self.record.plan, (*self.results, failed))

    def give_up(self, cause: str, failed: AnyStep | None = None) -> errors.UpdateFailedError:
        """Undo everything because of *cause*; return the error that says so."""
        plan = self.record.plan
        try:
            results = self.undo()
        except errors.ClusterError as error:
            return errors.UndoIncompleteError(
                f"{cause}. Nothing could be put back: {error}", Outcome(plan, self.results)
            )
        outcome = Outcome(
            plan,
            tuple(replace(r, message=cause) if r.step is failed else r for r in results),
        )
        could_not = [result for result in results if result.state is StepState.UNDO_FAILED]
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            return errors.UndoIncompleteError(
                f"{cause}. Not everything could be put back: {objects}", outcome
            )
        self.end()
        remarks = [result.message for result in results if result.message]
        but = f", but {'; '.join(remarks)}" if remarks else ""
        return self._error_type(
            f"{cause}. Everything was put back{but}",
            outcome,
            next_step=errors.NextStep.RETRY if self.cancel else None,
        )

    def end(self) -> None:
        """Look once more at every stack, then delete the journal.

        A request of a run that lost its hold, or whose answer was lost, may arrive late, and Heat
        cannot be told to refuse it.

        :raises UndoIncompleteError: what such a request did could not be undone.
        :raises LeaseLostError: another run has taken over.
        """
        steps = self.record.plan.last_steps(back=self._is_undo)
        try:
            while any(self._was_late(step) for step in steps):
                LOG.warning("a request arrived late, and was undone")
        except StepError as error:
            raise errors.UndoIncompleteError(
                f"a request arrived late and could not be undone: {error}",
                Outcome(self.record.plan, self.results),
            ) from error
        self.journal.remove()

    def _was_late(self, step: StackStep) -> bool:
        """Bring a stack to its end where its tags show another request of this operation."""
        body = step.before if self._is_undo else step.after
        current = self.service.stack(step.stack) or {}
        ours = {tag for tag in current.get("tags") or () if tag.startswith(self.record.mark)}
        is_complete = str(current.get("stack_status")).endswith("_COMPLETE")
        if not ours or (body and is_complete and ours == {self.record.tag(body)}):
            return False
        if body is None:
            self._delete(reference(current))
        else:
            self._update(step.stack, body, step.member)
        return True

    def _report(self, result: StepResult) -> StepResult:
        self.progress(result)
        return result

    # --- one stack ------------------------------------------------------------------------------

    def _create(self, name: str, body: Body) -> None:
        """Create a stack; replace one that failed in an earlier run."""
        tag, deadline, sent = self.record.tag(body), self._deadline(), False
        while True:
            current = self._settled(name, deadline)
            if current is None:
                try:
                    self.service.create(
                        {"stack_name": name, "tags": tag, "disable_rollback": True}
                        | body.as_request(),
                        guard=self.journal.confirm,
                    )
                except errors.ClusterError as error:
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
        """Update a stack; repeat an update that failed in an earlier run."""
        tag, deadline, sent = self.record.tag(body), self._deadline(), False
        while True:
            current = self._settled(stack, deadline)
            if current is None:
                raise StepError(f"stack {stack} is gone: somebody else deleted it")
            if tag in (current.get("tags") or ()):
                status = current["stack_status"]  # ROLLBACK_COMPLETE: Heat has undone the update
                if status.endswith("_COMPLETE") and not status.startswith("ROLLBACK"):
                    break
                if sent and not self._was_cancelled(current):
                    raise StepError(state_sentence(current))
            try:
                request, existing = body.as_update()
                request |= {"tags": tag}
                self.service.update(stack, request, existing=existing, guard=self.journal.confirm)
                sent = True
            except errors.ClusterError as error:
                self._only_busy(error, stack, deadline)
            self._rest(_FIRST_PAUSE)
        if member is not None:
            self._wait_active(stack, member, deadline)

    def _was_cancelled(self, stack: Json) -> bool:
        """Return whether an earlier run's request to cancel its update has met that of the undo."""
        return self._is_undo and str(stack["stack_status_reason"]).endswith("cancelled")

    def _only_busy(self, error: errors.ClusterError, stack: str, deadline: float) -> None:
        """Raise the error unless the stack is busy (409) and the time limit not over: the caller
        then tries again."""
        if error.status != 409 or time.monotonic() > deadline:
            raise error
        LOG.info("stack %s is busy: %s", stack, error)

    def _delete(self, stack: str) -> None:
        deadline = self._deadline()
        while True:
            try:
                self.service.delete(stack, guard=self.journal.confirm)
                break
            except errors.ClusterError as error:
                self._only_busy(error, stack, deadline)
                self._rest(_FIRST_PAUSE)
        current = self._settled(stack, deadline)
        if current is not None:
            raise StepError(state_sentence(current))

    def _wait_active(self, stack: str, member: VnfcServer, deadline: float) -> None:
        """Wait until the server is active: it can fail after Heat's update has ended."""
        pause = _FIRST_PAUSE
        while True:
            current = self.service.resource(stack, member.resource)
            status = str(((current or {}).get("attributes") or {}).get("status", "gone"))
            if status == "ACTIVE":
                return
            if status == "ERROR" or time.monotonic() > deadline:
                raise StepError(f"its server is {status}, expected ACTIVE: see the server's fault")
            self._rest(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _settled(self, stack: str, deadline: float) -> Json | None:
        """Return the stack once no action is in progress on it; None where there is none."""
        pause = _FIRST_PAUSE
        while True:
            current = self.service.stack(stack)
            if current is None or not current["stack_status"].endswith("_IN_PROGRESS"):
                return current
            if time.monotonic() > deadline:
                raise StepError(
                    f"stack {current['stack_name']} is still {current['stack_status']} after the "
                    f"time limit; Heat says: {current['stack_status_reason']}"
                )
            self._check_stop()
            self._rest(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _rest(self, seconds: float) -> None:
        self.journal.renew()
        time.sleep(seconds)

    def _check_stop(self) -> None:
        if self.cancel and not self._is_undo:
            raise StepError(f"stopped {self.cancel.reason}")

    @property
    def _is_undo(self) -> bool:
        return self.record.phase is Phase.UNDO

    def _deadline(self) -> float:
        limit = self.options.undo_timeout if self._is_undo else self.options.timeout
        return time.monotonic() + limit
