"""Run a Plan against a cluster: all configuration, then the workloads, several at a time.

On failure everything that was begun is undone, and the error says what became of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from container_update.config import Options
from container_update.errors import (
    ClusterError,
    LockLostError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from container_update.informer import Informer
from container_update.model import (
    Cluster,
    Collection,
    ObjectKey,
    Outcome,
    Plan,
    Progress,
    Step,
    StepResult,
    StepState,
)
from container_update.plan import collections
from container_update.restart import ChangedByAnotherError, Restarter
from container_update.stopping import Stop
from container_update.undo import Undo
from container_update.waiting import AbortedError, Clock, NotReadyError, Waiter

LOG = logging.getLogger(__name__)

_UNDO_GRACE = 30.0
"""While undoing, pods show the trouble of the failed update until their kubelet has caught up."""

_STEP_ERRORS = (ClusterError, ChangedByAnotherError, NotReadyError, AbortedError)


def _nothing() -> None:
    """The default of a hook."""


def _no_progress(_: object) -> None:
    """Nobody looks on."""


@dataclass
class Execution:
    """One run of one plan.

    :param informer: has listed the plan's collections; its watches are started here.
    :param pods_before: for each workload the UIDs of the pods it had before the update.
    :param stop: ends the run early.
    :param before_undo: called once, before anything is put back.
    :param progress: told each step's result when it ends.
    """

    plan: Plan
    cluster: Cluster
    informer: Informer
    options: Options = field(default_factory=Options)
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    stop: Stop = field(default_factory=Stop)
    before_undo: Callable[[], object] = _nothing
    progress: Progress = _no_progress
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._results: dict[ObjectKey, StepResult] = {}
        self._waiter = Waiter(self.informer, self.options.grace_period, self.clock)

    def run(self, *, resumed: bool = False) -> tuple[StepResult, ...]:
        """Carry out every step of the plan, or none.

        :param resumed: a run before this one was cut short.
        :returns: what became of each step, in the order of the plan.
        :raises UpdateFailedError: a step failed and all was put back; with the outcome.
        :raises UndoIncompleteError: a step failed and something could not be put back.
        :raises UpdateInterruptedError: stopped, and put back or left as asked.
        :raises LockLostError: another may be going on with it.
        """
        self._restarter = Restarter(self.cluster, self._waiter, self.plan.instance_id, resumed)
        config = [step for step in self.plan.steps if step.is_config]
        workloads = [step for step in self.plan.steps if not step.is_config]
        self.informer.watch(followed(workloads))
        self.stop.on_request(self._waiter.abort)
        try:
            self._run_all(config)
            if not self._failed():
                self._run_all(workloads)
        except BaseException:
            self.undo("interrupted", self._begun())
            raise
        failed = self._failed()
        if failed or len(self._results) < len(self.plan.steps):
            self._fail(failed)
        return tuple(self._results[step.key] for step in self.plan.steps)

    def undo(self, cause: str, steps: Sequence[Step]) -> tuple[StepResult, ...]:
        """Put these steps of the plan back, as far as they were done."""
        LOG.warning("undoing %d steps: %s", len(steps), cause)
        self.before_undo()
        self.informer.watch(followed([step for step in steps if not step.is_config]))
        waiter = Waiter(self.informer, max(self.options.grace_period, _UNDO_GRACE), self.clock)
        restarter = Restarter(self.cluster, waiter, self.plan.instance_id)
        undo = Undo(restarter, self.pods_before, self.options.workers)
        return undo.run(steps, self.clock() + self.options.undo_timeout)

    # --- the steps ------------------------------------------------------------------------------

    def _run_all(self, steps: Sequence[Step]) -> None:
        with ThreadPoolExecutor(max_workers=self.options.workers) as pool:
            try:
                list(pool.map(self._run, steps))
            except BaseException:
                self._waiter.abort()  # or leaving the pool would wait for all of them
                raise

    def _run(self, step: Step) -> None:
        if self._waiter.aborted.is_set():
            return
        began = self.clock()
        state, message = StepState.DONE, ""
        self._results[step.key] = StepResult(step, StepState.FAILED, "interrupted")
        try:
            if step.is_config:
                self._restarter.write_config(step)
            else:
                old_pods = self.pods_before.get(step.key, frozenset())
                self._restarter.restart(step, old_pods, began + self.options.timeout)
        except _STEP_ERRORS as error:
            state, message = StepState.FAILED, str(error)
            if not isinstance(error, AbortedError):
                LOG.error("%s: %s failed: %s", step.key, step.action.value, error)
                self._waiter.abort()
        result = StepResult(step, state, message, self.clock() - began)
        self._results[step.key] = result
        self.progress(result)
        LOG.info("%s: %s: %s (%.1f s)", step.key, step.action.value, state.value, result.seconds)

    # --- failure --------------------------------------------------------------------------------

    def _begun(self) -> list[Step]:
        return [step for step in self.plan.steps if step.key in self._results]

    def _failed(self) -> list[StepResult]:
        """The failed steps, the cause before those that were only aborted."""
        failed = [r for r in self._results.values() if r.state is StepState.FAILED]
        return sorted(failed, key=lambda result: not result.message)

    def _fail(self, failed: Sequence[StepResult]) -> None:
        causes = [result for result in failed if result.message]
        if self.stop.lost:
            raise LockLostError(
                f"{self.stop.reason}: stopped where it was; see container-update status, then "
                "resume or rollback"
            )
        if causes:
            what = f"{causes[0].step.key} failed: {causes[0].message}"
        else:
            what = f"The update was stopped: {self.stop.reason}"
        if self.stop.leave and not causes:
            raise UpdateInterruptedError(
                f"{what}. It is left as it is: go on with container-update resume, or go back with "
                "container-update rollback",
                self._outcome({}),
            )
        error = UpdateFailedError if causes else UpdateInterruptedError
        self._raise_undone(what, error)

    def _raise_undone(self, what: str, error: type[UpdateFailedError]) -> None:
        undone = self.undo(what, self._begun())
        outcome = self._outcome({result.step.key: result for result in undone})
        could_not = [result for result in undone if result.state is StepState.UNDO_FAILED]
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            raise UndoIncompleteError(
                f"{what}. Not everything could be put back: {objects}. Mend these, then run "
                "container-update rollback, or the update again",
                outcome,
            )
        raise error(
            f"{what}. Everything is as before ({len(undone)} objects looked at). Correct the cause "
            "and run the update again",
            outcome,
        )

    def _outcome(self, undone: Mapping[ObjectKey, StepResult]) -> Outcome:
        def result(step: Step) -> StepResult:
            known = undone.get(step.key) or self._results.get(step.key)
            return known or StepResult(step, StepState.NOT_STARTED)

        return Outcome(self.plan, tuple(result(step) for step in self.plan.steps))


def followed(workloads: Sequence[Step]) -> frozenset[Collection]:
    """What to watch for these workloads: their kinds, their pods, a Deployment's ReplicaSets."""
    return collections(step.key for step in workloads if step.key.kind != "CronJob")


def pods_by_workload(plan: Plan, informer: Informer) -> dict[ObjectKey, frozenset[str]]:
    """For each workload of the plan the UIDs of the pods it has now."""
    return {
        step.key: frozenset(pod["metadata"]["uid"] for pod in informer.pods_of(step.before))
        for step in plan.steps
        if not step.is_config and step.before is not None
    }
