"""Run a Plan against a cluster: stage by stage, several workloads at a time.

On failure everything that was begun is undone, and the error says what became of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from container_update.cluster.execution.context import ExecutionContext, Reverted
from container_update.cluster.execution.executors import executor_of
from container_update.cluster.execution.undo import Undo
from container_update.cluster.execution.writer import ChangedByAnotherError
from container_update.cluster.informer import Informer
from container_update.cluster.waiting import AbortedError, Clock, NotReadyError, Waiter
from container_update.model import context_threads
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import (
    ClusterError,
    LeaseLostError,
    NextStep,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action, Plan, Stage, Step
from container_update.planning.steps import ObjectStep, object_steps
from container_update.planning.update import traffic
from container_update.workloads.registry import kind_of

LOG = logging.getLogger(__name__)

_UNDO_GRACE = 30.0
"""While undoing, pods show the trouble of the failed update until their kubelet has caught up."""

Place = tuple[ObjectKey, Action]
"""What tells the steps of a plan apart."""

_STEP_ERRORS = (ClusterError, ChangedByAnotherError, NotReadyError, AbortedError)


def _nothing() -> None:
    """Do nothing: the default of a hook."""


def _no_progress(_: object) -> None:
    """Nobody looks on."""


@dataclass
class Execution:
    """One run of one plan.

    :param informer: has listed the plan's collections; its watches are started here.
    :param pods_before: for each workload the UIDs of the pods it had before the update.
    :param cancel: cancels the run.
    :param before_undo: called once, before anything is put back.
    :param progress: told each step's result when it ends.
    :param leave_failed: what a failure leaves is kept for a rollback or a resume, not undone.
    """

    plan: Plan
    cluster: Cluster
    informer: Informer
    options: Options = field(default_factory=Options)
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    cancel: CancelToken = field(default_factory=CancelToken)
    before_undo: Callable[[], object] = _nothing
    progress: Progress = _no_progress
    clock: Clock = time.monotonic
    leave_failed: bool = False

    def __post_init__(self) -> None:
        self._resumed = False
        self._results: dict[Place, StepResult] = {}
        self._advanced: set[Stage] = set()
        self._waiter = Waiter(self.informer, self.options.grace_period, self.clock)

    def run(self, *, resumed: bool = False) -> tuple[StepResult, ...]:
        """Carry out every step of the plan, or none.

        :param resumed: a run before this one was cut short.
        :returns: what became of each step, in the order of the plan.
        :raises UpdateFailedError: a step failed and all was put back; with the outcome.
        :raises UndoIncompleteError: a step failed and something could not be put back.
        :raises UpdateInterruptedError: stopped, and put back or left as asked.
        :raises LeaseLostError: another may be going on with it.
        """
        self.begin(resumed=resumed)
        for stage in Stage:
            self.advance(stage)
        return self.results

    def begin(self, *, resumed: bool = False) -> None:
        """Be ready to :meth:`advance`; *resumed* as for :meth:`run`."""
        self._resumed = resumed
        self._context = ExecutionContext(
            self.cluster,
            self._waiter,
            self.plan.instance_id,
            self.pods_before,
            self._leaving(),
            resumed,
        )
        self.informer.watch(followed([s for s in self.plan.steps if not s.is_config]))
        self.cancel.on_request(self._waiter.abort)

    def advance(self, stage: Stage) -> None:
        """Carry out the steps of one stage; raises as :meth:`run` does."""
        steps = [step for step in object_steps(self.plan) if step.stage is stage]
        try:
            self._run_all(steps)
        except BaseException:
            self.undo("interrupted", self._begun())
            raise
        failed = self._failed()
        if failed or any(step.place not in self._results for step in steps):
            self._fail(failed)
        if stage is Stage.WORKLOADS:
            self._stay_ready(steps)
        self._advanced.add(stage)

    def skip(self, stage: Stage) -> None:
        """Count the steps of a stage as done: by a run before this one, which was cut short."""
        for step in self.plan.steps:
            if step.stage is stage:
                self._results[step.place] = StepResult(step, StepState.DONE, "done before")

    def linger(self, seconds: float) -> None:
        """Wait, unless the run is stopped; raises as :meth:`run` does."""
        deadline = self.clock() + seconds
        try:
            while (left := deadline - self.clock()) > 0:
                self._waiter.pause(left)
        except AbortedError:
            self._fail([])

    def give_up(self, cause: str) -> NoReturn:
        """End the run because of something beside its steps; raises as :meth:`run` does."""
        self.refuse_if_lost()
        if self.cancel:
            self._fail([])
        self._end(cause, UpdateFailedError)

    @property
    def results(self) -> tuple[StepResult, ...]:
        """What became of each step so far, in the order of the plan."""
        return self._outcome({}).results

    def undo(self, cause: str, steps: Sequence[ObjectStep]) -> tuple[StepResult, ...]:
        """Put these steps of the plan back, as far as they were done."""
        LOG.warning("undoing %d steps: %s", len(steps), cause)
        self.before_undo()
        self.informer.watch(followed([step for step in steps if not step.is_config]))
        waiter = Waiter(self.informer, max(self.options.grace_period, _UNDO_GRACE), self.clock)
        self.cancel.on_request(lambda: waiter.abort() if self.cancel.lease_lost else None)
        context = ExecutionContext(self.cluster, waiter, self.plan.instance_id, self.pods_before)
        undo = Undo(context, self.options.workers, self.options.drain_seconds)
        return undo.run(steps, self.clock() + self.options.undo_timeout)

    # --- the steps ------------------------------------------------------------------------------

    def _run_all(self, steps: Sequence[ObjectStep]) -> None:
        with context_threads.pool(self.options.workers) as pool:
            try:
                list(pool.map(self._run, steps))
            except BaseException:
                self._waiter.abort()  # or leaving the pool would wait for all of them
                raise

    def _run(self, step: ObjectStep) -> None:
        if self.cancel or self._waiter.aborted.is_set():
            return
        began = self.clock()
        state, message = StepState.DONE, ""
        self._results[step.place] = StepResult(step, StepState.FAILED, "interrupted")
        self.progress(step)
        try:
            executor_of(step, self._context).apply(step, began + self.options.timeout)
        except _STEP_ERRORS as error:
            state, message = StepState.FAILED, str(error)
            if not isinstance(error, AbortedError):
                LOG.error("%s: %s failed: %s", step.key, step.action.value, error)
                self._waiter.abort()
        result = StepResult(step, state, message, self.clock() - began)
        self._results[step.place] = result
        self.progress(result)
        LOG.info("%s: %s: %s (%.1f s)", step.key, step.action.value, state.value, result.seconds)

    def _leaving(self) -> frozenset[str]:
        """Return the pods of the workloads that the plan deletes."""
        removed = [step.key for step in self.plan.steps if step.stage is Stage.REMOVE]
        return frozenset(uid for key in removed for uid in self.pods_before.get(key, ()))

    def _stay_ready(self, steps: Sequence[ObjectStep]) -> None:
        """Everything that restarted is ready at the same time, and for ``settle_seconds``.

        Without a readiness probe a pod is Ready before it does anything: it may have crashed while
        others were waited for.
        """
        since = self.clock()
        try:
            while True:
                for step in steps:
                    if not self._context.rollout.is_still_done(step.key):
                        self._context.rollout.wait_again(
                            step.key, self.clock() + self.options.timeout
                        )
                        since = self.clock()
                left = since + self.options.settle_seconds - self.clock()
                if left <= 0:
                    return
                self._waiter.pause(left)
        except AbortedError:
            self._fail([])
        except (NotReadyError, ClusterError) as error:
            failed = replace(self._results[step.place], state=StepState.FAILED, message=str(error))
            self._results[step.place] = failed
            self.progress(failed)
            self._fail([failed])

    # --- failure --------------------------------------------------------------------------------

    def _begun(self) -> list[ObjectStep]:
        """Return the steps that may have been applied, in this run or in an earlier one."""
        return [
            step for step in object_steps(self.plan) if self._resumed or self._may_be_done(step)
        ]

    def _may_be_done(self, step: ObjectStep) -> bool:
        """By this run, or by a coordination script, which may switch over by itself."""
        by_script = step.stage is Stage.SWITCH and Stage.WORKLOADS in self._advanced
        return by_script or step.place in self._results

    def _failed(self) -> list[StepResult]:
        """Return the failed steps, the cause before those that were only aborted."""
        failed = [r for r in self._results.values() if r.state is StepState.FAILED]
        return sorted(failed, key=lambda result: not result.message)

    def _fail(self, failed: Sequence[StepResult]) -> NoReturn:
        causes = [result for result in failed if result.message]
        self.refuse_if_lost()
        if causes:
            what = f"{causes[0].step.key} failed: {causes[0].message}"
        else:
            what = f"The update was stopped {self.cancel.reason}"
        self._end(what, UpdateFailedError if causes else UpdateInterruptedError)

    def _end(self, what: str, error: type[UpdateFailedError]) -> NoReturn:
        """Undo, or leave it as it is where so asked; raise either way."""
        interrupted = error is UpdateInterruptedError
        if (self.cancel.keep_journal and interrupted) or (self.leave_failed and not interrupted):
            raise error(
                f"{what}. Everything is left as it is",
                self._outcome({}),
                next_step=NextStep.RESUME_OR_ROLLBACK,
            )
        self._raise_undone(what, error)

    def refuse_if_lost(self) -> None:
        """Another may be going on by now: raises LeaseLostError."""
        if self.cancel.lease_lost:
            raise LeaseLostError(f"This run stopped where it was: {self.cancel.reason}")

    def _raise_undone(self, what: str, error: type[UpdateFailedError]) -> NoReturn:
        undone = self.undo(what, self._begun())
        outcome = self._outcome({result.step.place: result for result in undone})
        could_not = [result for result in undone if result.state is StepState.UNDO_FAILED]
        self.refuse_if_lost()
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            raise UndoIncompleteError(
                f"{what}. Not everything could be put back: {objects}", outcome
            )
        theirs = [str(r.step.key) for r in undone if r.message == Reverted.OF_OTHERS.value]
        kept = f"; {', '.join(theirs)}: left as somebody else changed it" if theirs else ""
        raise error(
            f"{what}. Everything is as before ({len(undone)} objects looked at{kept})", outcome
        )

    def _outcome(self, undone: Mapping[Place, StepResult]) -> Outcome:
        def result(step: Step) -> StepResult:
            known = undone.get(step.place) or self._results.get(step.place)
            return known or StepResult(step, StepState.NOT_STARTED)

        return Outcome(self.plan, tuple(result(step) for step in self.plan.steps))


def followed(workloads: Sequence[Step]) -> frozenset[Collection]:
    """Return what to watch for these: workloads, their pods, and the traffic of Services."""
    keys = [step.key for step in workloads]
    kinds = [(kind, key.namespace) for key in keys if (kind := kind_of(key)) is not None]
    return traffic(keys).union(*(kind.followed(namespace) for kind, namespace in kinds))


def pods_by_workload(plan: Plan, informer: Informer) -> dict[ObjectKey, frozenset[str]]:
    """For each workload of the plan the UIDs of the pods it has now."""
    return {
        step.key: frozenset(pod["metadata"]["uid"] for pod in informer.pods_of(step.before))
        for step in object_steps(plan)
        if not step.is_config and step.before is not None
    }
