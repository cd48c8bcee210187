# SPDX-License-Identifier: Apache-2.0
"""How every operation is carried out, from its goal to its outcome. Start here.

recover what an earlier run left -> observe the live objects -> plan -> report
    -> rights, lease, journal -> execute (or undo) -> history -> outcome

What differs from one operation to another is its goal: which plan it makes. What differs from one
VIM to another is the instance: how it is observed, held and written to.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from container_update.cluster.retry import RetryingCluster, RetryingReader
from container_update.engine.checks.budgets import with_budgets_noted
from container_update.engine.cluster_instance import ClusterInstance
from container_update.engine.cluster_view import ClusterView
from container_update.engine.goal import Goal
from container_update.engine.progress import log_remarks
from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Plan


class AnyGoal(Protocol):
    """The aim of an operation, in a cluster or in stacks."""

    def carry_out(self, run: Any, /) -> tuple[StepResult, ...]:
        """Carry out the plan of a run that has begun."""


GoalT_contra = TypeVar("GoalT_contra", bound=AnyGoal, contravariant=True)
SeenT = TypeVar("SeenT")
PlanT = TypeVar("PlanT", bound=Plan)


class AnyInstance(Protocol[GoalT_contra, SeenT, PlanT]):
    """A VNF instance where it runs: in a cluster, or in the stacks of a cloud.

    The errors are those of :func:`run`.
    """

    @property
    def requests(self) -> int:
        """How many requests went to the VIM so far."""

    @property
    def progress(self) -> Progress:
        """Called with the plan, with each step that begins, and with its result."""

    def recover_for(self, goal: GoalT_contra, /) -> Outcome | None:
        """Finish what an earlier run left where it has the same goal, else undo it.

        :returns: its outcome; None where there was nothing.
        """

    def happens_once(self, goal: GoalT_contra, /) -> bool:
        """Tell whether an interrupted run that is finished is all that was asked for."""

    def observe(self, goal: GoalT_contra, /) -> AbstractContextManager[SeenT]:
        """Observe the live objects while the block plans and carries the plan out."""

    def make_plan(self, goal: GoalT_contra, seen: SeenT, /) -> PlanT:
        """Return the plan; write nothing."""

    def tidy(self, goal: GoalT_contra, /) -> None:
        """Remove what an earlier run left, where there is nothing to do."""

    def begin(self, goal: GoalT_contra, plan: PlanT, seen: SeenT, /) -> AbstractContextManager[Any]:
        """Hold the lease and the journal while the block carries the plan out."""

    def outcome(self, plan: PlanT, results: tuple[StepResult, ...], seen: SeenT, /) -> Outcome:
        """Return the outcome of the plan, with the live pods."""


def operate(goal: GoalT_contra, instance: AnyInstance[GoalT_contra, SeenT, PlanT]) -> Outcome:
    """Carry out a goal in a cluster or in stacks; see :func:`run`."""
    began, sent_before = time.monotonic(), instance.requests

    def with_cost(outcome: Outcome) -> Outcome:
        sent, seconds = instance.requests - sent_before, time.monotonic() - began
        return replace(outcome, requests=sent, seconds=seconds)

    try:
        resumed = instance.recover_for(goal)
        if resumed is not None:
            is_done = all(result.state is StepState.DONE for result in resumed.results)
            if resumed.held or (instance.happens_once(goal) and is_done):
                return with_cost(resumed)
        with instance.observe(goal) as seen:
            plan = instance.make_plan(goal, seen)
            instance.progress(plan)
            log_remarks(plan)
            results = resumed.results if resumed else ()
            if plan.is_empty:
                instance.tidy(goal)
            else:
                with instance.begin(goal, plan, seen) as begun:
                    results = (*results, *goal.carry_out(begun))
            return with_cost(instance.outcome(plan, results, seen))
    except errors.UpdateFailedError as error:
        error.outcome = with_cost(error.outcome)
        raise


def run(  # noqa: PLR0913
    goal: Goal,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    leave_failed: bool = False,
) -> Outcome:
    """Bring a VNF instance in a cluster to where a goal leads, or leave it wholly as it was.

    An operation of the instance that was interrupted is finished first if it has the same goal,
    else undone.

    >>> goal = Update(UpdateRequest(old="packages/v1", new="packages/v2"))  # doctest: +SKIP
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = run(goal, cluster)

    :param cluster: where the VNF runs.
    :param cancel: cancels the operation from another thread or a signal handler.
    :param progress: see :data:`~container_update.model.outcome.Progress`.
    :param leave_failed: a failure is left for a resume or a rollback, not undone at once.
    :returns: the plan, the result of each step, and the pods of every VDU.
    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the cluster is in no state for it; nothing was written.
    :raises ClusterError: the API server cannot be read, refuses a right, or would refuse a write
        that it was asked about; nothing was written.
    :raises UpdateInProgressError: another operation of this instance runs; nothing was written.
    :raises UpdateFailedError: something did not get ready; everything was put back.
    :raises UndoIncompleteError: the same, and something could not be put back.
    :raises UpdateInterruptedError: it was cancelled; everything was put back, or left if so asked.
    """
    cancel = CancelToken() if cancel is None else cancel
    retrying = RetryingCluster(cluster, options.retry_seconds)
    where = goal.intent.where
    instance = ClusterInstance(retrying, *where, options, progress, leave_failed, cancel)
    return operate(goal, instance)


def preview(goal: Goal, cluster: ReadOnlyCluster, options: Options = Options()) -> Plan:  # noqa: B008
    """Return the plan that :func:`run` would carry out; write nothing, raise the same errors."""
    retrying = RetryingReader(cluster, options.retry_seconds)
    view = ClusterView(retrying, *goal.intent.where, options)
    with view.observe(goal) as observed:
        return with_budgets_noted(view.make_plan(goal, observed), retrying, observed.informer)
