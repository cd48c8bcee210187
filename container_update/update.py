"""The whole story of an update. Start here.

    packages -> manifests -> matching -> live objects -> plan -> execute (or undo) -> outcome

Each line of :func:`update` is a module of that name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from container_update import csar, inventory, manifests, matching
from container_update.config import Options
from container_update.errors import PlanError
from container_update.execute import execute
from container_update.informer import Informer
from container_update.model import (
    Cluster,
    Manifest,
    ObjectKey,
    Outcome,
    Package,
    Plan,
    StepState,
    UpdateRequest,
)
from container_update.plan import collections, make_plan


def update(
    request: UpdateRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
) -> Outcome:
    """Move a running CNF from its old package to the new one, restarting no more than needed.

    :returns: the plan, what became of each step, and the pods of every VDU.
    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the cluster is in no state to be updated; nothing was written.
    :raises ClusterError: the API server cannot be read; nothing was written.
    :raises UpdateFailedError: a workload did not get ready; everything was put back.
    :raises UndoIncompleteError: the same, and something could not be put back.
    """
    began, sent_before = time.monotonic(), cluster.requests
    with _prepared(request, cluster, options) as prepared:
        results = execute(prepared.plan, cluster, prepared.informer, options)
        live = prepared.informer.live
        restarted = {
            result.step.key: tuple(
                pod["metadata"]["name"] for pod in prepared.informer.pods_of(live[result.step.key])
            )
            for result in results
            if result.state is StepState.DONE and result.step.key in live
        }
        return Outcome(
            plan=prepared.plan,
            results=results,
            vnfcs=inventory.vnfcs(prepared.vdus, prepared.plan.manifests, live),
            restarted={key: pods for key, pods in restarted.items() if not key.is_config},
            requests=cluster.requests - sent_before,
            seconds=time.monotonic() - began,
        )


def plan_update(
    request: UpdateRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
) -> Plan:
    """What :func:`update` would do; writes nothing, raises the same errors."""
    with _prepared(request, cluster, options) as prepared:
        return prepared.plan


@dataclass(frozen=True)
class _Prepared:
    plan: Plan
    informer: Informer
    vdus: dict[str, str]


@contextmanager
def _prepared(request: UpdateRequest, cluster: Cluster, options: Options) -> Iterator[_Prepared]:
    """The packages opened, compared with each other and with the cluster."""
    with csar.open_package(request.old) as old, csar.open_package(request.new) as new:
        matched = _match(request, old, new)
        vdus = dict(new.vdus())
        keys = [manifest.key for manifest, _ in matched.pairs]
        keys += [manifest.key for manifest in matched.added]
        with Informer(cluster, watch_seconds=options.watch_seconds) as informer:
            informer.list(collections(keys))
            _refuse_missing_namespaces(keys, cluster, informer)
            plan = make_plan(
                matched,
                informer.live,
                namespace=request.namespace,
                instance_id=request.instance_id,
            )
            yield _Prepared(plan, informer, vdus)


def _match(request: UpdateRequest, old: Package, new: Package) -> matching.Matching:
    """Read the manifests of both packages and find each old object's new one."""
    def_files = request.def_files or tuple(old.manifest_files())
    before = _read(old, def_files, request.namespace)
    listed = _read(new, request.config_paths, request.namespace)
    kept_paths = [path for path in def_files if path not in listed and new.has(path)]
    kept = _read(new, kept_paths, request.namespace)
    others: matching.ByPath = {}
    if matching.unmatched(before, listed, kept):
        paths = [path for path in new.manifest_files() if path not in listed and path not in kept]
        others = _read(new, paths, request.namespace)
    return matching.match(before, listed, kept, others)


def _read(
    package: Package, paths: Sequence[str], namespace: str
) -> dict[str, tuple[Manifest, ...]]:
    return {
        path: tuple(manifests.parse(package.read(path), path, namespace))
        for path in dict.fromkeys(paths)
    }


def _refuse_missing_namespaces(
    keys: Sequence[ObjectKey], cluster: Cluster, informer: Informer
) -> None:
    """The API server lists what is in a namespace that does not exist as nothing at all.

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
