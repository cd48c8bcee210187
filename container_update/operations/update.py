"""The whole story of an update. Start here.

    packages -> manifests -> matching -> live objects -> plan -> execute (or undo) -> outcome

Each line of :func:`update` is a module of that name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from container_update.cluster import journal
from container_update.cluster.execution.operation import Operation
from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult
from container_update.model.plan import Plan
from container_update.model.requests import UpdateRequest
from container_update.package import csar
from container_update.planning import match, renames
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
    :param progress: called with the plan, with each step that begins, and with each step's result.
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
    cancel = CancelToken() if cancel is None else cancel
    asked = RetryingCluster(cluster, options.retry_seconds)
    packages = _read_packages(request, options)
    instance = Operation(asked, request.namespace, request.instance_id, options, progress)
    resumed = instance.recover(goal=journal.goal_of(packages.in_force), cancel=cancel)
    with _planned(packages, request, asked, options) as (plan, informer):
        progress(plan)
        results = () if plan.is_empty else instance.run(plan, informer, cancel)
        return Outcome(
            plan=plan,
            results=(*(resumed.results if resumed else ()), *results),
            vnfcs=ownership.vnfcs(packages.vdus, plan.manifests, informer.live),
            restarted=_restarted(results, informer),
            requests=cluster.requests - sent_before,
            seconds=time.monotonic() - began,
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
    asked = RetryingCluster(cluster, options.retry_seconds)
    with _planned(_read_packages(request, options), request, asked, options) as (plan, _):
        return plan


@dataclass(frozen=True)
class _Packages:
    """What the two packages say, without a look at the cluster."""

    matched: match.Matching
    vdus: Mapping[str, str]
    in_force: tuple[Manifest, ...]

    @property
    def keys(self) -> list[ObjectKey]:
        """Every object that the update may concern."""
        old = [manifest.key for manifest, _ in self.matched.pairs]
        return old + [manifest.key for manifest in self.matched.added]


def _read_packages(request: UpdateRequest, options: Options) -> _Packages:
    with (
        csar.open_package(request.old, options=options) as old,
        csar.open_package(request.new, options=options) as new,
    ):
        matched = _match(request, old, new)
        return _Packages(matched, dict(new.vdus()), tuple(in_force(matched)))


@contextmanager
def _planned(
    packages: _Packages, request: UpdateRequest, cluster: Cluster, options: Options
) -> Iterator[tuple[Plan, Informer]]:
    """Yield the plan and the informer, which keeps watching while the block runs."""
    with Informer(cluster, watch_seconds=options.watch_seconds) as informer:
        informer.list(collections(packages.keys))
        _refuse_missing_namespaces(packages.keys, cluster, informer)
        plan = make_plan(
            _as_called(packages.matched, informer),
            {**informer.live, **_unknown_workloads(packages, cluster)},
            namespace=request.namespace,
            instance_id=request.instance_id,
        )
        yield plan, informer


def _unknown_workloads(packages: _Packages, cluster: Cluster) -> dict[ObjectKey, Json]:
    """Return the objects of unknown kinds that may use configuration.

    They are live ones, or the package's where the account may not read that kind.
    """
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


def _as_called(matched: match.Matching, informer: Informer) -> match.Matching:
    """Deployments under the names that a Blue-Green change may have given them."""
    called = renames.live_names(informer.live)
    if not called:
        return matched
    pairs = tuple(
        (renames.with_live_name(old, called), new and renames.with_live_name(new, called))
        for old, new in matched.pairs
    )
    return replace(matched, pairs=pairs)


def _restarted(
    results: Sequence[StepResult], informer: Informer
) -> dict[ObjectKey, tuple[str, ...]]:
    """Return the pods that each restarted workload has now."""
    found = {}
    for result in results:
        live = informer.get(result.step.key)
        if live is not None and not result.step.is_config:
            is_pod = known_kind(result.step.key).is_pod
            pods = (live,) if is_pod else informer.pods_of(live)
            found[result.step.key] = tuple(pod["metadata"]["name"] for pod in pods)
    return found


def _match(request: UpdateRequest, old: csar.Csar, new: csar.Csar) -> match.Matching:
    """Read the manifests of both packages and find each old object's new one."""
    def_files = request.def_files or tuple(old.manifest_files())
    before = _read(old, def_files, request)
    listed = _read(new, request.config_paths, request)
    kept_paths = [path for path in def_files if path not in listed and new.has(path)]
    kept = _read(new, kept_paths, request)
    others: match.ByPath = {}
    if match.unmatched(before, listed, kept):
        paths = [path for path in new.manifest_files() if path not in listed and path not in kept]
        others = _read(new, paths, request)
    return match.match(before, listed, kept, others)


def _read(
    package: csar.Csar, paths: Sequence[str], request: UpdateRequest
) -> dict[str, tuple[Manifest, ...]]:
    return {
        path: tuple(
            placed(manifest, request) for manifest in package.manifests(path, request.namespace)
        )
        for path in dict.fromkeys(paths)
    }


def placed(manifest: Manifest, request: UpdateRequest) -> Manifest:
    """Return the manifest with the namespace that its object really has."""
    if not (request.one_namespace and manifest.key.namespace):
        return manifest
    return replace(manifest, key=replace(manifest.key, namespace=request.namespace))


def _refuse_missing_namespaces(
    keys: Sequence[ObjectKey], cluster: Cluster, informer: Informer
) -> None:
    """Raise PlanError for a namespace that does not exist: its lists are empty, not an error.

    Asked only where nothing was found: a namespace in use costs no request.
    """
    for namespace in sorted({key.namespace for key in keys} - {""}):
        if any(key.namespace == namespace for key in informer.live):
            continue
        if cluster.get(ObjectKey("", "Namespace", "", namespace)) is None:
            raise PlanError(
                f"namespace {namespace} does not exist: create it and instantiate the VNF there, "
                "or name the right one"
            )


__all__ = ["Options", "Outcome", "UpdateRequest", "plan_update", "update"]
