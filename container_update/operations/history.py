"""The operations of a VNF instance that have ended, and the way back from finished updates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from container_update.cluster.execution.operation import Operation
from container_update.cluster.history.origin import origin_of
from container_update.cluster.history.revision import UNDO, UPDATES, Result, Revision
from container_update.cluster.history.store import History
from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingCluster
from container_update.cluster.scope import Scope
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import PlanError
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.reporter import reporter
from container_update.model.requests import PackageIdentity
from container_update.operations.checks.namespaces import refuse_if_known_missing
from container_update.operations.progress import log_remarks
from container_update.operations.read_packages import stored_images
from container_update.operations.update import restarted_pods
from container_update.planning.change_cause import with_change_causes
from container_update.planning.going_back import Undoing
from container_update.planning.steps.stored_images import unexplained
from container_update.planning.update import collections, make_plan


def history(
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> tuple[Revision, ...]:
    """Return the operations of an instance that have ended, the newest first.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     for revision in history(cluster, namespace="cnf"):
    ...         print(revision.number, revision.origin.who, revision.result.value)
    2 ann@workstation done
    1 ann@workstation undone

    :param cluster: where the VNF runs.
    :param namespace: of the VNF.
    :param instance_id: the VNF instance, as it was given to its operations.
    :raises ClusterError: the account may not list the namespace's Secrets.
    :raises PlanError: there is no such namespace.
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    revisions = History(retrying, namespace, instance_id).read()
    if not revisions:
        refuse_if_known_missing(namespace, retrying)
    return revisions


def undo(  # noqa: PLR0913
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    revision: int | None = None,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Outcome | None:
    """Undo finished updates: bring the CNF back to where it was before one of them.

    The way back is an update like any other: planned, with a journal, undone itself if it fails.
    An interrupted operation is finished first if it is the same, else undone.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = undo(cluster, namespace="cnf")

    :param cancel: cancels it from another thread or a signal handler.
    :param progress: see :data:`~container_update.model.outcome.Progress`.
    :param revision: the number of the first update to undo; all after it are undone too. None: the
        newest that has not been undone.
    :returns: what became of it; None where there is nothing to undo. The other parameters are those
        of :func:`history`.
    :raises PlanError: what an update did is not kept, or the cluster's state does not allow it.
    :raises UpdateInProgressError: another operation of this instance runs; nothing was written.
    :raises UpdateFailedError: a workload did not get ready; everything was put back.
    """
    began, sent_before = time.monotonic(), cluster.requests
    cancel, report = CancelToken() if cancel is None else cancel, reporter(progress)
    retrying = RetryingCluster(cluster, options.retry_seconds)
    kept = History(retrying, namespace, instance_id)
    instance = Operation(retrying, namespace, instance_id, options, report)
    first = _first(kept.read(), revision)
    goal = f"{UNDO} {first.operation}" if first else UNDO
    resumed = instance.recover(goal=lambda: goal, cancel=cancel)
    undone = _undone(kept.read(), revision)
    if not undone:
        if resumed is None:
            refuse_if_known_missing(namespace, retrying)
        return resumed
    with _planned(undone, retrying, options, namespace, instance_id) as (plan, informer):
        report(plan)
        log_remarks(plan)
        results = resumed.results if resumed else ()
        if not plan.is_empty:
            origin = origin_of(UNDO, plan.packages, undone[0].number)
            results += instance.run(plan, informer, cancel, goal=goal, origin=origin)
        return Outcome(
            plan=plan,
            results=results,
            restarted=restarted_pods(results, informer),
            requests=cluster.requests - sent_before,
            seconds=time.monotonic() - began,
            revision=instance.revision,
        )


def plan_undo(
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    *,
    revision: int | None = None,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Plan | None:
    """Return what :func:`undo` would do; write nothing, raise the same errors.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_undo(cluster, revision=1, namespace="cnf")

    :returns: None where there is nothing to undo.
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    undone = _undone(History(retrying, namespace, instance_id).read(), revision)
    if not undone:
        refuse_if_known_missing(namespace, retrying)
        return None
    with _planned(undone, retrying, options, namespace, instance_id) as (plan, _):
        return plan


# --- which are undone ---------------------------------------------------------------------------


def _undone(revisions: Sequence[Revision], number: int | None) -> tuple[Revision, ...]:
    """Return the revisions to undo, the oldest first.

    :raises PlanError: one of them cannot be undone.
    """
    first = _first(revisions, number)
    if first is None:
        return ()
    done = [each for each in revisions if each.result is Result.DONE]
    undone = tuple(reversed([each for each in done if each.number >= first.number]))
    for each in undone:
        _refuse_unfit(each)
    return undone


def _first(revisions: Sequence[Revision], number: int | None) -> Revision | None:
    """Return the revision of that number; None: the newest that no other one has undone."""
    done = [each for each in revisions if each.result is Result.DONE]
    if number is None:
        newest, before = next(iter(done), None), None
        while newest is not None and newest.origin.undoes is not None:
            before = newest.origin.undoes
            newest = next((each for each in done if each.number < before), None)
        return newest
    for each in done:
        if each.number == number:
            return each
    known = ", ".join(str(each.number) for each in reversed(done)) or "none"
    raise PlanError(
        f"revision {number}: expected a finished operation that is kept (these are: {known}), "
        "found none of this number: name one of them"
    )


def _refuse_unfit(revision: Revision) -> None:
    what = f"revision {revision.number} ({revision.origin.title})"
    if revision.origin.kind not in UPDATES:
        packages = " to ".join(package.source for package in reversed(revision.origin.packages))
        back = f", from {packages}" if packages else ""
        raise PlanError(
            f"{what}: expected an update, found a change of the VNF package, which also created "
            f"and deleted objects: change the package back{back}"
        )
    if not revision.is_kept:
        raise PlanError(
            f"{what}: what was there before it is not kept, because it is too large for a Secret, "
            "or was in a Secret of another namespace: update to the old package"
        )


# --- the plan -----------------------------------------------------------------------------------


@contextmanager
def _planned(
    undone: Sequence[Revision],
    cluster: Cluster,
    options: Options,
    namespace: str,
    instance_id: str | None,
) -> Iterator[tuple[Plan, Informer]]:
    """Yield the plan and the informer, which keeps watching while the block runs."""
    first, last = undone[0], undone[-1]
    undoing = Undoing(
        tuple(step for each in undone for step in each.steps),
        last.objects,
        f"before revision {first.number}",
        last.def_files,
    )
    scope = Scope(undoing.keys)
    with Informer(cluster, scope, watch_seconds=options.watch_seconds) as informer:
        informer.list(collections(undoing.keys))
        live = informer.live
        matched = undoing.matching(live)
        stored = stored_images(cluster, unexplained(matched.pairs, live))
        plan = make_plan(matched, live, namespace=namespace, instance_id=instance_id, stored=stored)
        plan = replace(undoing.completed(plan, live), packages=_packages(first, last))
        yield with_change_causes(plan), informer


def _packages(first: Revision, last: Revision) -> tuple[PackageIdentity, ...]:
    """Return the package that runs, and the one that ran before."""
    old, new = first.origin.packages[:1], last.origin.packages[1:]
    return (*new, *old) if old and new else ()
