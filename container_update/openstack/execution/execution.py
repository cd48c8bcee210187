# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan against Heat step by step, each safe to repeat; undo it on failure.

The journal says which steps were begun, and the undo restores the stacks of all these: the tags of
a nested stack do not show it, because every update of what contains it clears them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action
from container_update.model.reporter import reporter
from container_update.model.scripts import OLD, ScriptReport, ScriptStep
from container_update.openstack import live
from container_update.openstack.client import Heat, reference
from container_update.openstack.execution.concurrent import (
    describe_other_changes,
    is_gone,
    removed_resources,
    restorable,
    surplus,
)
from container_update.openstack.execution.servers import Servers
from container_update.openstack.execution.writer import (
    HEATS_MINUTES,
    StepError,
    Writer,
    operators_tags,
)
from container_update.openstack.journal import StackJournal
from container_update.openstack.plan import (
    INSTANTIATE,
    SCALE,
    AnyStep,
    StackPlan,
    StackStep,
    member_script,
)
from container_update.openstack.record import StackRecord
from container_update.package.hot import StackBody

LOG = logging.getLogger(__name__)

Coordinator = Callable[[ScriptStep, "StackExecution"], ScriptReport | None]
"""Runs a coordination script of the request in a run; None where there is nothing to run it for.
ContainerUpdateError: it failed."""


@dataclass(repr=False)
class StackExecution:
    """One run over a plan."""

    service: Heat
    journal: StackJournal
    record: StackRecord
    """How far it is."""
    options: Options
    coordinate: Coordinator
    progress: Progress
    """Called with each step that begins, and with each step's result."""
    cancel: CancelToken
    leave_failed: bool
    """A failure is left for a rollback or a resume, not undone at once."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """The paths of the request's coordination scripts, by VNF."""
    _results: dict[int, StepResult] = field(default_factory=dict, init=False)
    """Those of the steps that this run has done, by number."""
    _scripts_back: list[StepResult] = field(default_factory=list, init=False)
    """What became of the scripts that only the undo runs."""

    def __post_init__(self) -> None:
        self.progress = reporter(self.progress)
        self._stacks = Writer(
            self.service, self.journal, self.options, self.cancel, self.record.tag
        )
        self._stacks.undoing = self._is_undo
        self._servers = Servers(self.service, self._stacks)

    # --- forwards -------------------------------------------------------------------------------

    def run(self) -> tuple[StepResult, ...]:
        """Carry out the steps that are left.

        :raises UpdateFailedError: a step failed; all was undone, or left if so asked.
        :raises UndoIncompleteError: the same, and not all could be undone; or what failed is
            the deletion of the old stack, after which there is no way back.
        """
        for number in range(self.record.done, len(self.record.plan.steps)):
            step = self.record.plan.steps[number]
            started = time.monotonic()
            try:
                self._stacks.check_stop()
                self.progress(step)
                result = self._do(number, step)
            except errors.LeaseLostError:
                raise
            except errors.ContainerUpdateError as error:
                raise self._failure(number, error) from error
            seconds = time.monotonic() - started
            self._results[number] = self._report(replace(result, seconds=seconds))
            plan = self._with_ids(step)
            self.record = self.journal.write(replace(self.record, plan=plan, done=number + 1))
        return self.results

    def _with_ids(self, step: AnyStep) -> StackPlan:
        """Return the plan with the ids of what a step added, for the steps after it."""
        plan = self.record.plan
        if not isinstance(step, StackStep) or not (step.before and step.after) or step.member:
            return plan
        old, new = (set(side.template["resources"]) for side in (step.before, step.after))
        if step.stack != plan.stack or not new - old:
            return plan
        ids = {
            str(resource["resource_name"]): resource["physical_resource_id"]
            for resource in self.service.resources(plan.stack)
        }
        return plan.with_ids({name: ids.get(name) for name in new - old})

    @property
    def results(self) -> tuple[StepResult, ...]:
        """The results of the steps that are done, by this run or an earlier one."""
        steps = enumerate(self.record.plan.steps[: self.record.done])
        return tuple(self._results.get(n, StepResult(step, StepState.DONE)) for n, step in steps)

    def _do(self, number: int, step: AnyStep) -> StepResult:
        if isinstance(step, ScriptStep):
            return self._run_script(step, StepState.DONE)
        if step.after is None:
            self._commit()
            self._stacks.delete(step.stack)
        elif step.before is None:
            plan = self.record.plan
            kept, instead = operators_tags({"tags": plan.tags}), plan.kind == INSTANTIATE
            self._stacks.create(step.stack, step.after, kept, plan.timeout_mins, instead=instead)
        else:
            self._update(number, step)
        return StepResult(step, StepState.DONE)

    def _run_script(self, step: ScriptStep, state: StepState) -> StepResult:
        """Run a script; return its result. CoordinationError: it failed or was stopped."""
        try:
            with self.journal.renew_meanwhile():
                report = self.coordinate(step, self)
        except errors.LeaseLostError:
            raise
        except errors.ContainerUpdateError as error:
            raise errors.CoordinationError(f"{step.key} failed: {error}") from error
        return StepResult(step, state, report.last_line if report else "", script=report)

    def _commit(self) -> None:
        """Note that there is no way back from here on, before anything is sent."""
        if not self.record.committed:
            self.record = self.journal.write(replace(self.record, committed=True))

    def _update(self, number: int, step: StackStep) -> None:
        """Update a stack, unless another client has changed one that is part of this."""
        plan = self.record.plan
        if message := describe_other_changes(self.service, plan, number, self.record.tag):
            raise StepError(message)
        assert step.after is not None
        if step.replaced:
            self._commit()
        self._send(step, step.after)
        if step.member is not None:
            self._servers.ensure(step.member, step.after)
        if step is plan.last_steps(back=False)[-1]:
            self._servers.look(plan.stack_steps)

    def _send(self, step: StackStep, body: StackBody, *, again: bool = False) -> None:
        """Update a step's stack to a body, after the resources to be replaced are marked."""
        plan, marked = self.record.plan, False
        unwanted = step.replaced if plan.kind != SCALE else surplus(self.service, plan, body)
        if unwanted:
            resources = self.service.resources(plan.stack, live.DEPTH)
            present = {str(resource["physical_resource_id"]) for resource in resources}
            for stack, name, id_ in unwanted:
                if id_ in present:  # else an earlier run has replaced it
                    self._stacks.mark_unhealthy(stack, name, plan.kind)
                    marked = True
        minutes, only = self._own_minutes(step), plan.sent_of(step)
        self._stacks.update(step.stack, body, minutes, again=again or marked, only=only)

    def _own_minutes(self, step: StackStep) -> int | None:
        """Return the whole stack's own time limit for its last update; None for any other step."""
        plan = self.record.plan
        return (plan.timeout_mins or HEATS_MINUTES) if plan.changes_no_resource(step) else None

    # --- undo -----------------------------------------------------------------------------------

    def undo(self) -> tuple[StepResult, ...]:
        """Undo what was done, the last step first; return the result of each step.

        Each stack is judged by its state now: to undo twice, or what was never done, is safe.
        """
        if self.record.committed:
            raise errors.NoWayBackError(self.record.plan.no_way_back)
        self.record = self.journal.write(replace(self.record, phase=Phase.UNDO))
        self._stacks.undoing = True
        plan, reached = self.record.plan, self._count_reached()
        results = {
            number: StepResult(step, StepState.NOT_STARTED)
            for number, step in enumerate(plan.steps)
            if number >= reached
        }
        begun = [number for number in plan.undo_order() if number < reached]
        self._quiet([plan.steps[number] for number in sorted(begun, reverse=True)])
        gone = {number: removed_resources(self.service, plan.steps[number]) for number in begun}
        for number in begun:
            step, began = plan.steps[number], time.monotonic()
            if isinstance(step, ScriptStep):
                results[number] = self._script_undone(step)
                continue
            undo = partial(self._undo, step, was_coordinated=number < self.record.done)
            message, state = _try_undo(undo)
            if gone[number] and state is StepState.UNDONE:
                message = f"{', '.join(gone[number])}: removed already, and had to be made anew"
            seconds = time.monotonic() - began
            results[number] = self._report(StepResult(step, state, message, seconds=seconds))
        steps = (plan.steps[number] for number in begun)
        if any(isinstance(step, StackStep) and step.member is None for step in steps):
            self._look_at_undone(results)
        return (*(results[number] for number in range(len(plan.steps))), *self._scripts_back)

    def _quiet(self, steps: list[AnyStep]) -> None:
        """Wait until the stacks are at rest, the outer first: they would undo an undo."""
        for step in steps:
            if isinstance(step, StackStep) and step.before and step.after:
                self._stacks.stop(step.stack, step.after)
                self._stacks.quiet(step.stack)

    def _look_at_undone(self, results: dict[int, StepResult]) -> None:
        """Look at every server once more, after all stacks that could change it are restored."""
        for number, result in results.items():
            step = result.step
            if not isinstance(step, StackStep) or result.state is not StepState.UNDONE:
                continue
            if step.member is None or step.before is None:
                continue
            if is_gone(self.service, self.record.plan, step):
                continue
            look = partial(self._servers.ensure_as_before, step.member, step.before)
            message, state = _try_undo(look)
            if state is StepState.UNDO_FAILED:
                results[number] = self._report(StepResult(step, state, message))

    def _count_reached(self) -> int:
        """Return how many steps an undo may have to go back, the step under way counted."""
        steps, reached = self.record.plan.steps, self.record.done
        while reached < len(steps):
            step = steps[reached]
            if step.action is Action.DELETE:
                break  # once it may have been sent there is no way back
            reached += 1
            if not isinstance(step, ScriptStep) or step.vdu.resource_id:
                break
        return reached

    def _undo(self, step: StackStep, *, was_coordinated: bool) -> str:
        """Undo the step of a stack; return what the operator should know of it."""
        if step.before is None:
            current = self.service.stack(step.stack)
            if current is not None and self._marks(current):
                self._stacks.delete(reference(current))
        elif step.after is not None:
            if is_gone(self.service, self.record.plan, step):
                return f"{step.key} is gone: another client removed it"
            remark = self._restore(step)
            if step.member is not None and was_coordinated and OLD in self.scripts:
                stack = self.record.plan.stack
                script = member_script(OLD, self.scripts[OLD], stack, step.member, back=True)
                self._scripts_back.append(self._coordinate_back(script))
            return remark
        return ""

    def _script_undone(self, step: ScriptStep) -> StepResult:
        """Undo the step of a script: for a whole VDU it runs again, with the way of the traffic."""
        if step.vdu.resource_id:
            return self._report(StepResult(step, StepState.UNDONE))
        back = replace(step, vdu=replace(step.vdu, details={"back": True}))
        return replace(self._coordinate_back(back), step=step)

    def _coordinate_back(self, step: ScriptStep) -> StepResult:
        """Run a script of the undo; its error does not end the undo."""
        self.progress(step)
        began = time.monotonic()
        try:
            result = replace(self._run_script(step, StepState.UNDONE), message="")
        except errors.LeaseLostError:
            raise
        except errors.ContainerUpdateError as error:
            message = f"{error}: see that the traffic goes to the old VNF"
            result = StepResult(step, StepState.FAILED, message)
        return self._report(replace(result, seconds=time.monotonic() - began))

    def _restore(self, step: StackStep) -> str:
        """Restore a stack, whatever its tags say; return what the operator should know."""
        plan, remark = self.record.plan, ""
        before = restorable(self.service, plan, step)
        if step.member is not None:
            remark = self._servers.make_room(step.member)
        current = self.service.stack(step.stack)
        is_complete = str(current and current["stack_status"]).endswith("_COMPLETE")
        is_as_before = is_complete and live.body_for(self.service, plan, step) in (
            before,
            step.before,
        )
        if remark or not is_as_before:
            self._send(step, before, again=bool(remark))
        if step.member is not None:
            remark = self._servers.ensure_as_before(step.member, before) or remark
        return remark

    def _failure(self, number: int, cause: errors.ContainerUpdateError) -> errors.UpdateFailedError:
        """Return the error of a step, after the undo where there is one."""
        step = self.record.plan.steps[number]
        what = "" if isinstance(step, ScriptStep) else f"{step.key}: {step.action.value}: "
        text = f"{what}{str(cause).rstrip('.')}"
        committed, stopped = self.record.committed, self.cancel.keep_journal
        if not (committed or stopped or self.leave_failed):
            return self._undone(text, step)
        failed = self._report(StepResult(step, StepState.FAILED, str(cause)))
        kind = self._error_type if stopped or not committed else errors.UndoIncompleteError
        next_steps = errors.NextStep
        return kind(
            Outcome(self.record.plan, (*self.results, failed)),
            text,
            ending=self.record.plan.part_done if committed else "",
            next_step=next_steps.RESUME if committed else next_steps.RESUME_OR_ROLLBACK,
        )

    @property
    def _error_type(self) -> type[errors.UpdateFailedError]:
        return errors.UpdateInterruptedError if self.cancel else errors.UpdateFailedError

    def _undone(self, cause: str, failed: AnyStep) -> errors.UpdateFailedError:
        """Undo everything because of *cause*; return the error that says so."""
        plan = self.record.plan
        self.progress = reporter(lambda _: None)
        try:
            results = self.undo()
        except (errors.ClusterError, StepError) as error:
            return errors.UndoIncompleteError(
                Outcome(plan, self.results), cause, ending=f"Nothing could be put back: {error}"
            )
        outcome = Outcome(
            plan,
            tuple(replace(r, message=cause) if r.step is failed else r for r in results),
        )
        could_not = Outcome(plan, results)
        if could_not.of_state(StepState.UNDO_FAILED):
            return errors.UndoIncompleteError(outcome, cause, ending=could_not.ending)
        self.end()
        remarks = [result.message for result in results if result.message]
        but = f", but {'; '.join(remarks)}" if remarks else ""
        return self._error_type(
            outcome,
            cause,
            ending=f"Everything is as before{but}",
            next_step=errors.NextStep.RETRY if self.cancel else None,
        )

    def end(self) -> None:
        """Look once more at every stack, then delete the journal.

        A request of a run that lost its hold, or whose answer was lost, may arrive late, and Heat
        cannot be told to refuse it.

        :raises UndoIncompleteError: what such a request did could not be undone, or the stack does
            not take its own time limit back.
        :raises LeaseLostError: another run has taken over.
        """
        steps = self.record.plan.last_steps(back=self._is_undo)
        try:
            while any(self._was_late(step) for step in steps):
                LOG.warning("a request arrived late, and was undone")
            self._restore_time_limit()
        except StepError as error:
            raise errors.UndoIncompleteError(
                Outcome(self.record.plan, self.results),
                f"The last look at the stacks found one that does not end: {error}",
            ) from error
        self.journal.remove()

    def _was_late(self, step: StackStep) -> bool:
        """Bring a stack to its end where its tags show another request of this operation."""
        current = self.service.stack(step.stack) or {}
        marks = self._marks(current)
        if not marks:
            return False
        body = step.after
        if self._is_undo:
            body = step.before and restorable(self.service, self.record.plan, step)
        is_complete = str(current.get("stack_status")).endswith("_COMPLETE")
        if body and is_complete and marks == {self.record.tag(body)}:
            return False
        if body is None:  # it was not there before this operation
            self._stacks.delete(reference(current))
            return True
        self._send(step, body)
        if step.member is not None and self._is_undo:
            self._servers.ensure_as_before(step.member, body)
        elif step.member is not None:
            self._servers.ensure(step.member, body)
        return True

    def _marks(self, stack: Json) -> set[str]:
        """Return the tags of a stack that this operation has set."""
        return {tag for tag in stack.get("tags") or () if tag.startswith(self.record.mark)}

    def _restore_time_limit(self) -> None:
        """Give the stack its own time limit back: Heat keeps the last one that was sent."""
        plan = self.record.plan
        current = self.service.stack(plan.stack)
        if current is None or any(step.action is Action.CREATE for step in plan.steps):
            return
        own = plan.timeout_mins or HEATS_MINUTES
        if current.get("timeout_mins") not in (None, own):
            self._stacks.set_minutes(plan.stack, own)

    def _report(self, result: StepResult) -> StepResult:
        self.progress(result)
        return result

    @property
    def _is_undo(self) -> bool:
        return self.record.phase is Phase.UNDO


def _try_undo(undo: Callable[[], str]) -> tuple[str, StepState]:
    """Return the remark and the state of an undo, whose failure does not end the others."""
    try:
        return undo(), StepState.UNDONE
    except errors.LeaseLostError:
        raise
    except errors.ContainerUpdateError as error:
        return str(error), StepState.UNDO_FAILED
