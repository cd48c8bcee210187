"""An update, from its request to its outcome. Start here.

packages -> manifests -> matching -> live objects -> plan -> execute (or undo) -> outcome
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from container_update.cluster.execution.operation import Operation
from container_update.cluster.history.origin import origin_of
from container_update.cluster.history.revision import UPDATE
from container_update.cluster.informer import Informer
from container_update.cluster.record import goal_of
from container_update.cluster.retry import RetryingCluster
from container_update.cluster.scope import Scope
from container_update.model import context_threads
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult
from container_update.model.plan import Plan, Stage
from container_update.model.reporter import reporter
from container_update.model.requests import PackageIdentity, UpdateRequest
from container_update.operations.checks.namespaces import refuse_missing, without_objects
from container_update.operations.progress import log_remarks
from container_update.operations.read_packages import digests_of, read_manifests, stored_images
from container_update.package import csar
from container_update.package.identity import identities_of
from container_update.package.manifests import Known, is_whole
from container_update.planning.change_cause import with_change_causes
from container_update.planning.comparison import match, renames
from container_update.planning.steps.stored_images import unexplained
from container_update.planning.update import collections, in_force, make_plan, unknown_workloads
from container_update.workloads import ownership
from container_update.workloads.registry import known_kind


def update(
    request: UpdateRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Move a running CNF from its old package to the new one, restarting no more than needed.

    >>> request = UpdateRequest(old="packages/v1", new="packages/v2", namespace="cnf")
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = update(request, cluster)

    :param cluster: where the CNF runs.
    :param cancel: cancels the update from another thread or a signal handler.
    :param progress: called with the plan, with each step that begins, and with each step's result;
        see :data:`~container_update.model.outcome.Progress` about its exceptions.
    :returns: the plan, what became of each step, and the pods of every VDU.
    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the cluster is in no state to be updated; nothing was written.
    :raises ClusterError: the API server cannot be read; nothing was written.
    :raises UpdateInProgressError: another update of this instance runs; nothing was written.
    :raises UpdateFailedError: a workload did not get ready; everything was put back.
    :raises UndoIncompleteError: the same, and something could not be put back.
    :raises UpdateInterruptedError: it was cancelled; everything was put back, or left if so asked.
    """
    began, sent_before = time.monotonic(), cluster.requests
    cancel, report = CancelToken() if cancel is None else cancel, reporter(progress)
    retrying = RetryingCluster(cluster, options.retry_seconds)
    read = context_threads.in_background(lambda: _read_packages(request, options))
    instance = Operation(retrying, request.namespace, request.instance_id, options, report)
    with _package_errors_first(read):
        resumed = instance.recover(goal=lambda: read().whole().goal, cancel=cancel)
    packages = read()
    with _planned(packages, request, retrying, options) as (plan, informer):
        report(plan)
        log_remarks(plan)
        results = resumed.results if resumed else ()
        if plan.is_empty:
            instance.tidy(cancel)
        else:
            origin = origin_of(UPDATE, plan.packages)
            results = (*results, *instance.run(plan, informer, cancel, origin=origin))
        return Outcome(
            plan=plan,
            results=results,
            vnfcs=ownership.vnfcs(packages.vdus(), plan.manifests, informer.live),
            restarted=restarted_pods(results, informer),
            requests=cluster.requests - sent_before,
            seconds=time.monotonic() - began,
            revision=instance.revision,
        )


def plan_update(
    request: UpdateRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
) -> Plan:
    """Return what :func:`update` would do; write nothing, raise the same errors.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_update(request, cluster)
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    with _planned(_read_packages(request, options), request, retrying, options) as (plan, _):
        return plan


@dataclass(frozen=True)
class _Packages:
    """What the two packages say, independent of the cluster."""

    matched: match.Matching
    vdus: Callable[[], Mapping[str, str]]
    in_force: tuple[Manifest, ...]
    identities: Callable[[], tuple[PackageIdentity, ...]]

    def whole(self) -> _Packages:
        """Wait until the VNFD is read too: one that is wrong is refused before anything is done."""
        self.vdus()
        return self

    @property
    def goal(self) -> str:
        """A digest of what the new package says."""
        return goal_of(self.in_force)

    @property
    def keys(self) -> list[ObjectKey]:
        """Every object that the update may concern."""
        old = [manifest.key for manifest, _ in self.matched.pairs]
        return old + [manifest.key for manifest in self.matched.added]


def _read_packages(request: UpdateRequest, options: Options) -> _Packages:
    vdus = context_threads.in_background(lambda: _vdus_of(request.new, options))
    identities = identities_of(request.old, request.new, options)
    with (
        csar.open_package(request.old, options=options) as old,
        csar.open_package(request.new, options=options) as new,
    ):
        matched = _match(request, old, new)
        return _Packages(matched, vdus, tuple(in_force(matched)), identities)


@contextmanager
def _package_errors_first(read: Callable[[], _Packages]) -> Iterator[None]:
    """Raise the error of a wrong package instead of a ClusterError: no other try would help."""
    try:
        yield
    except ClusterError:
        read().whole()
        raise


def _vdus_of(package: str, options: Options) -> Mapping[str, str]:
    with csar.open_package(package, options=options) as opened:
        return dict(opened.vdus())


@contextmanager
def _planned(
    packages: _Packages, request: UpdateRequest, cluster: Cluster, options: Options
) -> Iterator[tuple[Plan, Informer]]:
    """Yield the plan and the informer, which keeps watching while the block runs."""
    scope = Scope(packages.keys)
    with Informer(cluster, scope, watch_seconds=options.watch_seconds) as informer:
        with _package_errors_first(lambda: packages):
            informer.list(collections(packages.keys))
        for namespace in without_objects(packages.keys, informer.namespaces):
            refuse_missing(namespace, cluster)
        matched = _with_live_names(packages.matched, informer)
        plan = make_plan(
            matched,
            {**informer.live, **_unknown_workloads(packages, cluster)},
            namespace=request.namespace,
            instance_id=request.instance_id,
            stored=stored_images(cluster, unexplained(matched.pairs, informer.live)),
        )
        yield with_change_causes(replace(plan, packages=packages.whole().identities())), informer


def _unknown_workloads(packages: _Packages, cluster: Cluster) -> dict[ObjectKey, Json]:
    """Return the live objects of unknown kinds that may use configuration; the package's where the
    account may not read that kind."""
    bodies: dict[ObjectKey, Json] = {}
    for manifest in unknown_workloads(old for old, _ in packages.matched.pairs):
        try:
            body = cluster.get(manifest.key)
        except ClusterError as error:
            if error.status not in (403, 404):
                raise
            body = manifest.body if error.status == 403 else None
        if body is not None:
            bodies[manifest.key] = body
    return bodies


def _with_live_names(matched: match.Matching, informer: Informer) -> match.Matching:
    """Return the pairs with the names that a Blue-Green change may have given the Deployments."""
    names = renames.live_names(informer.live)
    if not names:
        return matched
    pairs = tuple(
        (renames.with_live_name(old, names), new and renames.with_live_name(new, names))
        for old, new in matched.pairs
    )
    return replace(matched, pairs=pairs)


def restarted_pods(
    results: Iterable[StepResult], informer: Informer
) -> dict[ObjectKey, tuple[str, ...]]:
    """Return the pods that each restarted workload has now."""
    restarted = {}
    for result in results:
        key = result.step.key
        live = informer.get(key)
        if live is not None and result.step.stage is Stage.WORKLOADS:
            pods = (live,) if known_kind(key).is_pod else informer.pods_of(live)
            restarted[key] = tuple(pod["metadata"]["name"] for pod in pods)
    return restarted


def _match(
    request: UpdateRequest, old: csar.Csar, new: csar.Csar, *, whole: bool = False
) -> match.Matching:
    """Read the manifests of both packages and find each old object's new one.

    :param whole: keep all of a large manifest, though it may be the same in both packages.
    """
    def_files = request.def_files or tuple(old.manifest_files())
    in_both = () if whole else digests_of(new, dict.fromkeys((*request.config_paths, *def_files)))
    known = Known(in_both=frozenset(in_both))
    before = read_manifests(old, def_files, request, known)
    known = Known(known.parts)
    listed = read_manifests(new, request.config_paths, request, known)
    kept_paths = [path for path in def_files if path not in listed and new.has(path)]
    kept = read_manifests(new, kept_paths, request, known)
    others: match.ByPath = {}
    if match.unmatched(before, listed, kept):
        paths = [path for path in new.manifest_files() if path not in listed and path not in kept]
        others = read_manifests(new, paths, request, known)
    matched = match.match(before, listed, kept, others)
    if all(map(_is_comparable, matched.pairs)):
        return matched
    return _match(request, old, new, whole=True)  # of one file the same, of another not


def _is_comparable(pair: tuple[Manifest, Manifest | None]) -> bool:
    before, after = pair
    return after is None or is_whole(before) or before.body is after.body
