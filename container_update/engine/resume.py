# SPDX-License-Identifier: Apache-2.0
"""Resume an interrupted operation, roll it back, or show its status.

The journal in the cluster says whether it was an update or a change of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from container_update.cluster.history import History
from container_update.cluster.operation import Operation
from container_update.cluster.operation_schema import CONTEXT
from container_update.cluster.retry import RetryingCluster, RetryingReader
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.engine.cluster_instance import ClusterInstance, restarted_pods
from container_update.engine.cluster_view import ClusterView
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import ChangeRequest, FromVnfm
from container_update.engine.read_packages import described_in
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError, PlanError
from container_update.model.objects import Manifest
from container_update.model.operation import Status
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.requests import (
    ChangePackageRequest,
    PackageIdentity,
    Placing,
    names,
)
from container_update.model.scripts import NEW, OLD
from container_update.package import csar
from container_update.workloads import ownership


class Verb:
    """A way to end an operation that was interrupted, or that waits for a person.

    :param way: returns whether the verb goes back, and the hold that is over; it gives the verb its
        docstring.
    """

    def __init__(self, way: Callable[[ClusterInstance], tuple[bool, str]]) -> None:
        self._way = way
        self.__doc__, self.__name__ = way.__doc__, way.__name__

    def __call__(  # noqa: PLR0913
        self,
        cluster: Cluster,
        options: Options = Options(),  # noqa: B008
        cancel: CancelToken | None = None,
        progress: Progress = lambda _: None,
        *,
        namespace: str = "default",
        instance_id: str | None = None,
        packages: Sequence[str] = (),
        why: str = "",
    ) -> Outcome | None:
        """End the operation."""
        retrying = RetryingCluster(cluster, options.retry_seconds)
        instance = ClusterInstance(retrying, namespace, instance_id, options, progress, why=why)
        instance.cancel = CancelToken() if cancel is None else cancel
        back, promote = self._way(instance)
        record, go_on = None if back else instance.journal.read(), None
        if record is not None and record.context:  # a change is finished by its request
            change, named = recorded_change(record, instance, packages)
            go_on = change.carry_out
        else:
            named = Named.read(packages, namespace, options)
        outcome = instance.recover(
            back=back, promote=promote, go_on=go_on, described=named.read_manifests
        )
        if outcome is None:  # "nothing to do" only of a namespace that exists
            refuse_if_known_missing(namespace, instance.cluster)
            return None
        return _with_pods(instance, outcome)


@Verb
def resume(_: ClusterInstance) -> tuple[bool, str]:
    """Finish the operation that was interrupted.

    An unsigned journal is trusted about the instance's own namespace and objects with its label
    alone; *packages* describe its other objects. A change of the package with coordination scripts
    needs both: nothing that a journal names is executed.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = resume(cluster, namespace="cnf", instance_id="vnf-1")

    :param cluster: where the VNF runs.
    :param cancel: cancels it from another thread or a signal handler.
    :param progress: called with each step that begins and with each step's result.
    :param namespace: of the VNF.
    :param instance_id: the VNF instance, as it was given to the interrupted operation.
    :param packages: those of the interrupted operation, in any order.
    :param why: the reason, one line; the history shows it after that of the operation.
    :returns: its outcome, and the pods of every VDU that is recorded; None where no operation
        was interrupted.
    :raises PackageError: a package is not the operation's, or is missing; nothing was done.
    :raises PlanError: there is no such namespace.
    :raises ClusterError: the account lacks a right; nothing was written.
    :raises UpdateInProgressError: the operation is still running.
    :raises UpdateFailedError: it could not be finished and was undone.
    """
    return False, ""


@Verb
def rollback(_: ClusterInstance) -> tuple[bool, str]:
    """Undo the operation that was interrupted.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = rollback(cluster, namespace="cnf", instance_id="vnf-1")

    :returns: its outcome; None where no operation was interrupted. The parameters and the
        other errors are those of :func:`resume`.
    :raises UndoIncompleteError: something could not be put back.
    """
    return True, ""


@Verb
def promote(instance: ClusterInstance) -> tuple[bool, str]:
    """Let the operation go on that waits for a person.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = promote(cluster, namespace="cnf", instance_id="vnf-1")

    :returns: its outcome; it may wait again. The parameters and the other errors are those of
        :func:`resume`.
    :raises PlanError: no operation waits for a person.
    :raises UpdateInProgressError: another client promotes or aborts it at this time.
    """
    return False, _hold_of(instance)


@Verb
def abort(instance: ClusterInstance) -> tuple[bool, str]:
    """Undo the operation that waits for a person.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = abort(cluster, namespace="cnf", instance_id="vnf-1")

    :returns: its outcome. The parameters and the other errors are those of :func:`resume`.
    :raises PlanError: no operation waits for a person.
    :raises UndoIncompleteError: something could not be put back.
    """
    _hold_of(instance)
    return True, ""


def _with_pods(instance: ClusterInstance, outcome: Outcome) -> Outcome:
    """Return the outcome with the pods of what the instance runs from now."""
    record = History(instance.cluster, instance.namespace, instance.instance_id).instance()
    manifests = record.manifests if record else ()
    informer = instance.informer
    assert informer is not None, "an operation was recovered"
    return replace(
        outcome,
        vnfcs=ownership.vnfcs(record.vdus if record else {}, manifests, informer.live),
        restarted=restarted_pods(outcome.results, informer),
    )


def _hold_of(instance: ClusterInstance) -> str:
    """Return the name of the hold at which the operation waits for a person, or refuse."""
    record = instance.journal.read()
    if record is None or record.held_at is None:
        state = "none under way" if record is None else f"one that is {record.progress()}"
        raise PlanError(
            f"VNF instance {instance.instance_id or 'without an id'} in {instance.namespace}: "
            f"expected an operation that waits for a person, found {state}"
        )
    return record.held_at.key.name


def recorded_change(
    record: Operation, instance: ClusterView, packages: Sequence[str]
) -> tuple[PackageChange, Named]:
    """Return the change of the package that a journal holds, and its packages.

    :param packages: the packages that the caller names; where there are none and the journal is
        signed, those that the journal names.
    :raises PackageError: a package is not the change's, or is missing.
    """
    cluster, namespace, options = instance.cluster, instance.namespace, instance.options
    context = dict(record.context)
    if (wrong := CONTEXT.first_violation(context)) is not None:
        raise ContainerUpdateError(
            f"{instance.journal.key}: the journal is damaged: {wrong}: undo the operation, "
            "for which this is not needed",
            next_step=NextStep.RESUME_OR_ROLLBACK,
        )
    change = ChangeRequest.of(context["request"], "kubernetes")
    if not packages and cluster.journal_key and change.runs_scripts:  # then it is signed
        packages = (context["old"], context["new"])
    named = Named.read(packages, namespace, options)
    old, new = of_operation(named, record.origin.packages, change)
    request = ChangePackageRequest(
        context["request"],
        old,
        new,
        def_files=tuple(context["defFiles"]),
        namespace=namespace,
        one_namespace=context["oneNamespace"],
        instance_id=record.instance_id,
    )
    vnfm = FromVnfm(instance=context["instance"])
    return PackageChange(request, cluster, options, vnfm), named


def status(
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Status:
    """Return the operation under way of an instance: its journal, and the holder of its lease.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     print(status(cluster, namespace="cnf", instance_id="vnf-1"))
    No operation is under way.

    :param cluster: where the VNF runs.
    :param namespace: of the VNF.
    :param instance_id: the VNF view.
    :raises PlanError: there is no such namespace.
    """
    retrying = RetryingReader(cluster, options.retry_seconds)
    view = ClusterView(retrying, namespace, instance_id, options)
    current = view.status()
    if not (current.record or current.holder or current.leftovers):
        refuse_if_known_missing(namespace, view.cluster)
    return current


@dataclass(frozen=True)
class Named:
    """The packages that the caller names, each opened once."""

    paths: Mapping[str, str]
    """SHA-256 to the path."""
    manifests: tuple[Manifest, ...]
    """What they describe, in the namespace of the manifest and in the VNF's."""

    @classmethod
    def read(cls, packages: Iterable[str], here: str, options: Options) -> Named:
        """Open these packages; *here*: the VNF's namespace."""
        paths, manifests = dict[str, str](), list[Manifest]()
        for path in filter(None, packages):
            with csar.open_package(path, options=options) as package:
                paths[package.sha256()] = path
                by_path = described_in(package, Placing(namespace=here))
            for manifest in chain.from_iterable(by_path.values()):
                moved = replace(manifest.key, namespace=here) if manifest.key.namespace else None
                manifests += [manifest, *([replace(manifest, key=moved)] if moved else [])]
        return cls(paths, tuple(manifests))

    def read_manifests(self) -> tuple[Manifest, ...] | None:
        """See :meth:`.ClusterInstance.recover`."""
        return self.manifests or None


def of_operation(
    named: Named, noted: Sequence[PackageIdentity], request: ChangeRequest
) -> tuple[str, str]:
    """Return the paths of the old and the new package of a change; '' for one that is not needed.

    :param noted: the packages by the journal.
    :raises PackageError: the change runs scripts, and one of its packages is missing or changed.
    """
    both = [named.paths.get(each.sha256, "") for each in noted]
    old, new = both if len(both) == len((OLD, NEW)) else ("", "")
    if request.runs_scripts and not (old and new):
        expected = names(noted) or "its packages, which the journal does not identify"
        raise PackageError(
            f"the change runs scripts: expected its packages, {expected} "
            f"(sha256 {', '.join(each.sha256[:12] for each in noted) or 'not known'}), "
            f"unchanged, found {', '.join(named.paths.values()) or 'none named'}: name both; a "
            "rollback of an interrupted change needs none"
        )
    return old, new
