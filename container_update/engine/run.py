# SPDX-License-Identifier: Apache-2.0
"""How every operation on a cluster is carried out, from its goal to its outcome. Start here.

recover what an earlier run left -> list what is live -> plan -> ask the server -> report
    -> rights, lease, journal -> execute (or undo) -> history -> outcome

What differs from one operation to another is its goal: which plan it makes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingCluster
from container_update.engine.checks.image_check import pulled
from container_update.engine.checks.server_check import asked
from container_update.engine.goal import Goal, Observed
from container_update.engine.operation import Operation
from container_update.engine.progress import log_remarks
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState
from container_update.model.plan import Action, Plan
from container_update.planning.change_cause import with_change_causes
from container_update.planning.order import arranged
from container_update.workloads import ownership
from container_update.workloads.registry import known_kind


def run(  # noqa: PLR0913
    goal: Goal,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    leave_failed: bool = False,
) -> Outcome:
    """Bring a VNF instance to where a goal leads, or leave it wholly as it was.

    An operation of the instance that was interrupted is finished first if it has the same goal,
    else undone.

    >>> goal = Update(UpdateRequest(old="packages/v1", new="packages/v2"))  # doctest: +SKIP
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = run(goal, cluster)

    :param cluster: where the VNF runs.
    :param cancel: cancels the operation from another thread or a signal handler.
    :param progress: see :data:`~container_update.model.outcome.Progress`.
    :param leave_failed: a failure is left for a resume or a rollback, not undone at once.
    :returns: the plan, what became of each step, and the pods of every VDU.
    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the cluster is in no state for it; nothing was written.
    :raises ClusterError: the API server cannot be read, refuses a right, or would refuse a write
        that it was asked about; nothing was written.
    :raises UpdateInProgressError: another operation of this instance runs; nothing was written.
    :raises UpdateFailedError: something did not get ready; everything was put back.
    :raises UndoIncompleteError: the same, and something could not be put back.
    :raises UpdateInterruptedError: it was cancelled; everything was put back, or left if so asked.
    """
    began, sent_before = time.monotonic(), cluster.requests
    cancel = CancelToken() if cancel is None else cancel
    retrying = RetryingCluster(cluster, options.retry_seconds)
    namespace, instance_id = goal.namespace, goal.instance_id
    instance = Operation(retrying, namespace, instance_id, options, progress, leave_failed)
    with _wrong_requests_first(goal):
        resumed = instance.recover(
            goal=goal.digest,
            promote=goal.promotes,
            cancel=cancel,
            go_on=goal.carry_out,
            described=goal.described,
        )
    if resumed is not None:
        is_done = all(result.state is StepState.DONE for result in resumed.results)
        if resumed.held or (goal.happens_once and is_done):
            return resumed
    with Informer(retrying, goal.scope(), watch_seconds=options.watch_seconds) as informer:
        observed = Observed(retrying, informer)
        retrying.ask_rights(namespace)
        plan = _planned(goal, observed, instance, cancel)
        instance.progress(plan)
        log_remarks(plan)
        results = resumed.results if resumed else ()
        if plan.is_empty:
            instance.tidy(cancel)
        else:
            with instance.begun(goal, plan, informer, cancel) as begun:
                results = (*results, *goal.carry_out(begun))
        return Outcome(
            plan=plan,
            results=results,
            vnfcs=ownership.vnfcs(goal.vdus(), plan.manifests, observed.live),
            restarted=restarted_pods(results, informer),
            requests=cluster.requests - sent_before,
            seconds=time.monotonic() - began,
            **instance.in_history,
        )


def preview(goal: Goal, cluster: Cluster, options: Options = Options()) -> Plan:  # noqa: B008
    """Return the plan that :func:`run` would carry out; write nothing, raise the same errors."""
    retrying = RetryingCluster(cluster, options.retry_seconds)
    instance = Operation(retrying, goal.namespace, goal.instance_id, options)
    with Informer(retrying, goal.scope(), watch_seconds=options.watch_seconds) as informer:
        return _planned(goal, Observed(retrying, informer), instance)


@contextmanager
def _wrong_requests_first(goal: Goal) -> Iterator[None]:
    """Raise the error of a wrong request instead of a ClusterError: no other try would help."""
    try:
        yield
    except ClusterError:
        goal.check()
        raise


def _planned(
    goal: Goal, observed: Observed, instance: Operation, cancel: CancelToken | None = None
) -> Plan:
    with _wrong_requests_first(goal):
        plan = arranged(goal.plan(observed))
    if goal.recorded_in is not None:
        instance.refuse_foreign(plan, goal.described(), goal.recorded_in)
    if goal.asks_server:
        plan = asked(plan, observed.cluster, instance.options)
    if instance.options.pull and not plan.is_empty:
        plan = pulled(plan, observed.cluster, instance.options, cancel)
    return with_change_causes(replace(plan, kind=goal.kind)) if goal.kind else plan


def restarted_pods(
    results: Iterable[StepResult], informer: Informer
) -> dict[ObjectKey, tuple[str, ...]]:
    """Return the pods that each restarted workload has now."""
    restarted = {}
    for result in results:
        key = result.step.key
        live = informer.get(key)
        has_new_pods = result.step.starts_pods or result.step.action is Action.HAND_OVER
        if live is not None and has_new_pods:
            pods = (live,) if known_kind(key).is_pod else informer.pods_of(live)
            restarted[key] = tuple(pod["metadata"]["name"] for pod in pods)
    return restarted
