"""What an interrupted operation left behind: resume it, roll it back, or show its status.

The journal in the cluster says whether it was an update or a change of the package.
"""

from __future__ import annotations

from container_update.cluster.execution.operation import Operation
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.operation import Status
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.operations.change_package import coordination_of, resume_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.checks.namespaces import refuse_if_known_missing
from container_update.operations.strategies.kubernetes import KubernetesTarget
from container_update.operations.strategies.strategy import ChangeJob


def resume(  # noqa: PLR0913
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Outcome | None:
    """Finish the operation that was interrupted.

    A change whose coordination scripts have not all been run needs its new package in the place
    where it was: the journal has its path.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = resume(cluster, namespace="cnf", instance_id="vnf-1")

    :param cluster: where the VNF runs.
    :param cancel: cancels it from another thread or a signal handler.
    :param progress: called with each step that begins and with each step's result.
    :param namespace: of the VNF.
    :param instance_id: the VNF instance, as it was given to the interrupted operation.
    :returns: what became of it; None where no operation was interrupted.
    :raises PackageError: the new package is not there; nothing was done.
    :raises PlanError: there is no such namespace.
    :raises UpdateInProgressError: the operation is still running.
    :raises UpdateFailedError: it could not be finished and was undone.
    """
    cancel = CancelToken() if cancel is None else cancel
    instance = _instance(cluster, options, progress, namespace, instance_id)
    record = instance.journal.read()
    if record is None or not record.context:
        return _of_something(instance, instance.recover(cancel=cancel))
    context = record.context
    def_files, one_namespace = tuple(context["defFiles"]), context["oneNamespace"]
    target = KubernetesTarget(cluster, namespace, def_files, cluster.access, one_namespace)
    job = ChangeJob(
        ChangeRequest.of(context["request"], target.vim_type),
        context["old"],
        context["new"],
        record.instance_id,
        options,
        instance=context["instance"],
    )
    return resume_change(job, target, cancel, progress, coordination_of(job, target, cancel))


def rollback(  # noqa: PLR0913
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Outcome | None:
    """Undo the operation that was interrupted.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = rollback(cluster, namespace="cnf", instance_id="vnf-1")

    :returns: what became of it; None where no operation was interrupted. The parameters are those
        of :func:`resume`.
    :raises PlanError: there is no such namespace.
    :raises UpdateInProgressError: the operation is still running.
    :raises UndoIncompleteError: something could not be put back.
    """
    instance = _instance(cluster, options, progress, namespace, instance_id)
    return _of_something(instance, instance.recover(back=True, cancel=cancel))


def status(
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Status:
    """Return what is under way for an instance: its journal, and who holds its lease.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     print(status(cluster, namespace="cnf", instance_id="vnf-1"))
    No update is under way.

    :param cluster: where the VNF runs.
    :param namespace: of the VNF.
    :param instance_id: the VNF instance.
    :raises PlanError: there is no such namespace.
    """
    instance = _instance(cluster, options, lambda _: None, namespace, instance_id)
    found = instance.status()
    if not (found.record or found.holder or found.leftovers):
        refuse_if_known_missing(namespace, instance.cluster)
    return found


def _of_something(instance: Operation, outcome: Outcome | None) -> Outcome | None:
    """Return the outcome; "nothing to do" only of a namespace that exists."""
    if outcome is None:
        refuse_if_known_missing(instance.namespace, instance.cluster)
    return outcome


def _instance(
    cluster: Cluster,
    options: Options,
    progress: Progress,
    namespace: str,
    instance_id: str | None,
) -> Operation:
    retrying = RetryingCluster(cluster, options.retry_seconds)
    return Operation(retrying, namespace, instance_id, options, progress)
