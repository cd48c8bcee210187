"""Create what a package describes and wait until it is Ready: what a VNFM does before an update.

For the demo, the tests and small sites; Tacker instantiates by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from container_update.cluster.execution.rollout import ready_pods
from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import INSTANCE_LABEL, Manifest, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.outcome import Progress, StepResult, StepState, StepWait
from container_update.model.plan import Action, Plan
from container_update.model.reporter import Reporter, reporter
from container_update.operations.read_packages import read_manifests
from container_update.package import csar
from container_update.planning.comparison.package_pair import Placing
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.new_objects import new_object
from container_update.planning.update import collections
from container_update.workloads.readiness import Baseline, Readiness, State, with_replicas
from container_update.workloads.registry import is_workload, kind_of, known_kind


def install(  # noqa: PLR0913
    package: str,
    cluster: Cluster,
    *,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    instance_id: str | None = None,
    options: Options = Options(),  # noqa: B008
    replicas: Mapping[str, int] = {},
    created: Callable[[ObjectKey], object] = lambda _: None,
    progress: Progress = lambda _: None,
) -> tuple[Manifest, ...]:
    """Create every object that a package describes, in its order, and wait for the workloads.

    What an earlier try of the same instance created stays as it is.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     install("packages/v1", cluster, namespace="cnf", instance_id="vnf-1")

    :param package: a folder, a CSAR zip, or an unpacked package.
    :param cluster: where to create them.
    :param def_files: paths in the package; empty: every manifest that it lists.
    :param namespace: of the objects whose manifests name none.
    :param one_namespace: all objects go to *namespace*, whatever their manifests say.
    :param instance_id: the VNF instance; becomes the label that Tacker puts on what it creates.
    :param replicas: a workload's name to its number of pods; without, as its manifest says. For a
        kind that is not scaled (Pod, DaemonSet) it is not looked at.
    :param created: called with each object's key once it exists.
    :param progress: called with the plan, with each step that begins, waits or has ended; see
        :data:`~container_update.model.outcome.Progress`.
    :returns: the manifests of the objects.
    :raises PackageError: the package is wrong; nothing was written.
    :raises ClusterError: an object could not be created, for example because it exists.
    :raises PlanError: a workload did not get ready.
    """
    described = described_by(
        package, def_files, namespace, one_namespace=one_namespace, options=options
    )
    described = tuple(_with_replicas(manifest, replicas) for manifest in described)
    report = reporter(progress)
    steps = [ManifestStep(each.key, Action.CREATE, None, each.body) for each in described]
    report(Plan(namespace, instance_id, tuple(steps), manifests=described))
    for manifest, step in zip(described, steps, strict=True):
        report(step)
        _create(manifest, cluster, instance_id)
        created(manifest.key)
        if not is_workload(manifest.key):
            report(StepResult(step, StepState.DONE))
    _wait(cluster, [step for step in steps if is_workload(step.key)], options, report)
    return described


def described_by(
    package: str,
    def_files: Sequence[str],
    namespace: str,
    *,
    one_namespace: bool,
    options: Options,
) -> tuple[Manifest, ...]:
    """Return every object of the def-files, in their order, under its identity in the cluster.

    :raises PackageError: the package is wrong.
    """
    placing = Placing(tuple(def_files), namespace, one_namespace)
    with csar.open_package(package, options=options) as opened:
        by_path = read_manifests(opened, def_files or opened.manifest_files(), placing)
    return tuple(manifest for manifests in by_path.values() for manifest in manifests)


def _with_replicas(manifest: Manifest, replicas: Mapping[str, int]) -> Manifest:
    kind, number = kind_of(manifest.key), replicas.get(manifest.key.name)
    if number is None or kind is None or not kind.is_scaled:
        return manifest
    return replace(manifest, body=with_replicas(manifest.body, number))


def _create(manifest: Manifest, cluster: Cluster, instance_id: str | None) -> None:
    labels = {INSTANCE_LABEL: instance_id} if instance_id else {}
    try:
        cluster.create(new_object(manifest.body, manifest.key.namespace, labels))
    except ClusterError as error:
        live = cluster.get(manifest.key) if error.status == 409 and instance_id else None
        if live is None or instance_of(live) != instance_id:
            raise


def _wait(
    cluster: Cluster, steps: Sequence[ManifestStep], options: Options, report: Reporter
) -> None:
    keys = [step.key for step in steps]
    followed = collections(keys)
    began = time.monotonic()
    with Informer(cluster, Scope(keys), watch_seconds=options.watch_seconds) as informer:
        informer.list(followed)
        informer.watch(followed)
        waiter = Waiter(informer, options.grace_period)
        for step in steps:
            key = step.key

            def show(verdict: Readiness, gives_up_in: float | None, key: ObjectKey = key) -> None:
                report(StepWait(key, verdict.message, *ready_pods(informer, key), gives_up_in))

            try:
                judge = partial(_judge, informer, key)
                waiter.until_done(judge, began + options.timeout, followed, show)
            except NotReadyError as error:
                seconds = time.monotonic() - began
                report(StepResult(step, StepState.FAILED, str(error), seconds))
                raise PlanError(f"{key}: not Ready after instantiation: {error}") from error
            report(StepResult(step, StepState.DONE, seconds=time.monotonic() - began))


def _judge(informer: Informer, key: ObjectKey) -> Readiness:
    live = informer.get(key)
    if live is None:
        return Readiness(State.PROGRESSING, f"{key} is not there yet")
    return known_kind(key).readiness(live, informer.pods_of(live), Baseline())
