"""Run a Plan against a cluster: all configuration, then the workloads, several at a time.

On failure everything that was begun is undone, and the error says what became of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from container_update.config import Options
from container_update.errors import ClusterError, UndoIncompleteError, UpdateFailedError
from container_update.informer import Informer
from container_update.model import (
    Cluster,
    Collection,
    ObjectKey,
    Outcome,
    Plan,
    Step,
    StepResult,
    StepState,
)
from container_update.plan import collections
from container_update.restart import ChangedByAnotherError, Restarter
from container_update.undo import Undo
from container_update.waiting import AbortedError, Clock, NotReadyError, Waiter

LOG = logging.getLogger(__name__)

_UNDO_GRACE = 30.0
"""While undoing, pods show the trouble of the failed update until their kubelet has caught up."""

_STEP_ERRORS = (ClusterError, ChangedByAnotherError, NotReadyError, AbortedError)


def execute(
    plan: Plan,
    cluster: Cluster,
    informer: Informer,
    options: Options = Options(),  # noqa: B008
    clock: Clock = time.monotonic,
) -> tuple[StepResult, ...]:
    """Carry out every step of *plan*, or none.

    :param informer: has listed the plan's collections; its watches are started here.
    :returns: what became of each step, in the order of the plan.
    :raises UpdateFailedError: a step failed and all was put back; with the outcome.
    :raises UndoIncompleteError: a step failed and something could not be put back.
    """
    return _Execution(plan, cluster, informer, options, clock).run()


class _Execution:
    """One run of one plan."""

    def __init__(
        self, plan: Plan, cluster: Cluster, informer: Informer, options: Options, clock: Clock
    ) -> None:
        self.plan = plan
        self.options = options
        self.clock = clock
        self.informer = informer
        self.waiter = Waiter(informer, options.grace_period, clock)
        self.restarter = Restarter(cluster, self.waiter, plan.instance_id)
        self.results: dict[ObjectKey, StepResult] = {}
        self.pods_before = {
            step.key: frozenset(pod["metadata"]["uid"] for pod in informer.pods_of(step.before))
            for step in plan.steps
            if not step.is_config and step.before is not None
        }
        self.cluster = cluster

    def run(self) -> tuple[StepResult, ...]:
        config = [step for step in self.plan.steps if step.is_config]
        workloads = [step for step in self.plan.steps if not step.is_config]
        self.informer.watch(_followed(workloads))
        try:
            self._run_all(config)
            if not self._failed():
                self._run_all(workloads)
        except BaseException:
            self._undo("interrupted")
            raise
        failed = self._failed()
        if failed:
            self._fail(failed[0])
        return tuple(self.results[step.key] for step in self.plan.steps)

    def _run_all(self, steps: Sequence[Step]) -> None:
        with ThreadPoolExecutor(max_workers=self.options.workers) as pool:
            try:
                list(pool.map(self._run, steps))
            except BaseException:
                self.waiter.abort()  # or leaving the pool would wait for all of them
                raise

    def _run(self, step: Step) -> None:
        if self.waiter.aborted.is_set():
            return
        began = self.clock()
        state, message = StepState.DONE, ""
        self.results[step.key] = StepResult(step, StepState.FAILED, "interrupted")
        try:
            if step.is_config:
                self.restarter.write_config(step)
            else:
                self.restarter.restart(step, began + self.options.timeout)
        except _STEP_ERRORS as error:
            state, message = StepState.FAILED, str(error)
            if not isinstance(error, AbortedError):
                LOG.error("%s: %s failed: %s", step.key, step.action.value, error)
                self.waiter.abort()
        result = StepResult(step, state, message, self.clock() - began)
        self.results[step.key] = result
        LOG.info("%s: %s: %s (%.1f s)", step.key, step.action.value, state.value, result.seconds)

    def _failed(self) -> list[StepResult]:
        """The failed steps, the cause before those that were only aborted."""
        failed = [r for r in self.results.values() if r.state is StepState.FAILED]
        return sorted(failed, key=lambda result: not result.message)

    def _fail(self, cause: StepResult) -> None:
        undone = self._undo(cause.message)
        could_not = [result for result in undone if result.state is StepState.UNDO_FAILED]
        by_key = {result.step.key: result for result in undone}
        outcome = Outcome(
            self.plan,
            tuple(
                by_key.get(step.key, StepResult(step, StepState.NOT_STARTED))
                for step in self.plan.steps
            ),
        )
        what = f"{cause.step.key} failed: {cause.message}."
        if could_not:
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            raise UndoIncompleteError(
                f"{what} Not everything could be put back: {objects}. Mend these by hand, then run "
                "the update again",
                outcome,
            )
        count = len(undone)
        raise UpdateFailedError(
            f"{what} Everything is as before ({count} objects looked at). Correct the cause and "
            "run the update again",
            outcome,
        )

    def _undo(self, cause: str) -> tuple[StepResult, ...]:
        begun = [step for step in self.plan.steps if step.key in self.results]
        LOG.warning("undoing %d steps: %s", len(begun), cause)
        grace = max(self.options.grace_period, _UNDO_GRACE)
        waiter = Waiter(self.informer, grace, self.clock)
        undo = Undo(
            Restarter(self.cluster, waiter, self.plan.instance_id),
            self.pods_before,
            self.options.workers,
        )
        return undo.run(begun, self.clock() + self.options.undo_timeout)


def _followed(workloads: Sequence[Step]) -> frozenset[Collection]:
    """What to watch for these workloads: their kinds, their pods, a Deployment's ReplicaSets."""
    return collections(step.key for step in workloads if step.key.kind != "CronJob")
