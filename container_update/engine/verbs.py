# SPDX-License-Identifier: Apache-2.0
"""What the library does with a VNF in a cluster: each operation takes a request.

An operation is a request's goal, which :func:`~container_update.engine.run.run` carries out. Those
that begin with a package take a request, or the package with the other fields of the request by
their names. What ends an operation that is under way is in :mod:`.resume`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from container_update.cluster.client import KubernetesCluster
from container_update.engine import saved_plan
from container_update.engine.goal import Goal
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.of_request import goal_of, install_of, with_release
from container_update.engine.run import preview, run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import PlanError
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.requests import (
    ChangePackageRequest,
    HealRequest,
    InstallRequest,
    Request,
    Saveable,
    ScaleRequest,
    TerminateRequest,
    UndoRequest,
    UpdateRequest,
)
from container_update.planning.staying import Included
from container_update.records.instance_file import write_records


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

    For the rest see :func:`~container_update.engine.run.run`.
    """
    return run(goal_of(request, cluster, options), cluster, options, cancel, progress)


def install(  # noqa: PLR0913
    request: InstallRequest | str,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    replicas: Mapping[str, int] = {},
    leave_failed: bool = False,
    **fields: Any,
) -> Outcome:
    """Create everything that a package describes, in the order of its kinds, and wait for it.

    Existing objects of the instance are not changed. If an object does not get Ready, the objects
    that this run created are deleted again.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     install("packages/v1", cluster, namespace="cnf", instance_id="vnf-1")

    :param replicas: a workload's name to its number of pods; without, as its manifest says.
    :returns: its plan has the id of the instance. The other parameters and the errors are those of
        :func:`~container_update.engine.run.run`.
    :raises PlanError: an object exists and is not this instance's; nothing was written.
    """
    given = _build_request(InstallRequest, request, fields)
    goal = install_of(given, cluster, with_release(options, given, cluster), replicas)
    return run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)


def terminate(  # noqa: PLR0913
    request: TerminateRequest | str | None,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    included: Included | None = None,
    leave_failed: bool = False,
    **fields: Any,
) -> Outcome:
    """Delete the objects of a VNF instance, last created first, and wait until they are gone.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     uninstall(TerminateRequest(namespace="cnf", instance_id="vnf-1"), cluster)

    :param included: ``delete_data`` and ``delete_shared`` of the request, where only a package is
        given.

    For the rest see :func:`~container_update.engine.run.run`.
    """
    if included is not None:
        fields |= {"delete_data": included.data, "delete_shared": included.shared}
    given = _build_request(TerminateRequest, request, fields)
    goal = goal_of(given, cluster, options)
    return run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)


def change_package(  # noqa: PLR0913
    request: ChangePackageRequest | ChangeRequest | Mapping[str, Any],
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    leave_failed: bool = False,
    **fields: Any,
) -> Outcome:
    """Move a VNF in a cluster to a new package, all of which takes effect.

    A change of the same instance that was interrupted is finished first if it leads to the same
    package, else undone.

    >>> request = ChangeRequest(vnfd_id="vnfd-2", upgrade_type="Blue-Green")
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = change_package(request, cluster, old="packages/v1", new="packages/v2")

    :param request: its body alone, as a value or as JSON, takes the other fields by their names.

    For the rest see :func:`~container_update.engine.run.run`.

    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the VNF is in no state to be changed this way; nothing was written.
    """
    given = _build_request(ChangePackageRequest, request, fields)
    goal = goal_of(given, cluster, options)
    outcome = run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)
    _write_records(given, goal, outcome)
    return outcome


def heal(
    request: HealRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Replace pods of a VNF, or make all of it what its package says.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     heal(HealRequest("packages/v1", namespace="cnf", instance_id="vnf-1"), cluster)

    For the rest see :func:`~container_update.engine.run.run`.
    """
    return run(goal_of(request, cluster, options), cluster, options, cancel, progress)


def scale(
    request: ScaleRequest,
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Give VDUs other numbers of pods, and wait until so many are Ready and no more are there.

    >>> request = ScaleRequest("packages/v1", {"VDU1": 3}, instance_id="vnf-1")
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = scale(request, cluster)

    For the rest see :func:`~container_update.engine.run.run`.
    """
    return run(goal_of(request, cluster, options), cluster, options, cancel, progress)


def undo(  # noqa: PLR0913
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    revision: int | None = None,
    namespace: str = "default",
    instance_id: str | None = None,
    packages: Sequence[str] = (),
) -> Outcome | None:
    """Undo finished updates: bring the CNF back to where it was before one of them.

    The way back is an update like any other: planned, with a journal, undone itself if it fails.
    Where a change of the package is among them, it is such a change, to what the history has of the
    package before, by the same strategy and with the scripts of both packages.
    An interrupted operation is finished first if it is the same, else undone.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = undo(cluster, namespace="cnf")

    The first parameters and the errors are those of :func:`~container_update.engine.run.run`, the
    others those of an UndoRequest.

    :returns: its outcome; None where there is nothing to undo.
    :raises PackageError: a package is not that of the change, or is missing; nothing was written.
    :raises PlanError: what an update did is not kept, or the cluster's state does not allow it.
    """
    goal = goal_of(UndoRequest(revision, tuple(packages), namespace, instance_id), cluster, options)
    outcome = run(goal, cluster, options, cancel, progress)
    return outcome if outcome.results or goal.intent.undoes is not None else None


# --- their plans --------------------------------------------------------------------------------


def plan_of(
    request: Request,
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
) -> Plan:
    """Return the plan of any request; write nothing, raise the errors of its operation.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_of(InstallRequest("packages/v1", namespace="cnf"), cluster)
    """
    return preview(goal_of(request, cluster, options), cluster, options)


def plan_change(
    request: ChangePackageRequest | ChangeRequest | Mapping[str, Any],
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    **fields: Any,
) -> Plan:
    """Return what :func:`change_package` would do; write nothing, raise the same errors.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_change(request, cluster, old="packages/v1", new="packages/v2")
    """
    return plan_of(_build_request(ChangePackageRequest, request, fields), cluster, options)


def plan_undo(  # noqa: PLR0913
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    revision: int | None = None,
    namespace: str = "default",
    instance_id: str | None = None,
    packages: Sequence[str] = (),
) -> Plan | None:
    """Return what :func:`undo` would do; write nothing, raise the same errors.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_undo(cluster, revision=1, namespace="cnf")

    :returns: None where there is nothing to undo.
    """
    request = UndoRequest(revision, tuple(packages), namespace, instance_id)
    goal = goal_of(request, cluster, options)
    plan = preview(goal, cluster, options)
    return plan if goal.intent.undoes is not None else None


def save_plan(plan: Plan, request: Saveable, cluster: KubernetesCluster, path: str | Path) -> None:
    """Write a plan to a file, for :func:`apply_plan` or ``container-update apply``.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     save_plan(plan_of(request, cluster), request, cluster, "approved.plan")

    :param request: what the plan was made of; its packages are read again when it is carried out.
    """
    saved_plan.save(Path(path), plan, request, cluster.context.server)


def apply_plan(
    path: str | Path,
    cluster: KubernetesCluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Carry out exactly the plan in a file, or nothing.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = apply_plan("approved.plan", cluster)

    For the rest see :func:`~container_update.engine.run.run`.

    :raises PlanError: the file has no plan, or what it was made from is not there any more.
    """
    saved = saved_plan.load(Path(path))
    if saved is None:
        raise PlanError(f"{path}: expected a saved plan, found another file: make it again")
    request = saved_plan.request_of(saved)
    goal = goal_of(request, cluster, options)
    if saved["request"]["server"]:
        goal.intent = replace(goal.intent, asks_server=True)
    checked = saved_plan.refuse_other_plan(progress, saved, cluster.context.server)
    outcome = run(goal, cluster, options, cancel, checked)
    if isinstance(request, ChangePackageRequest):
        _write_records(request, goal, outcome)
    return outcome


def _write_records(request: ChangePackageRequest, goal: Goal, outcome: Outcome) -> None:
    """Write the VnfInstance that a request names, unless the change waits for a person."""
    from container_update.engine.goals.change import PackageChange  # noqa: PLC0415, slow to load

    assert isinstance(goal, PackageChange), "it is of this request"
    if not outcome.held:
        write_records(request, goal.records(outcome))


# --- requests -----------------------------------------------------------------------------------

RequestT = TypeVar("RequestT", InstallRequest, TerminateRequest, ChangePackageRequest)


def _build_request(kind: type[RequestT], given: Any, fields: Mapping[str, Any]) -> RequestT:
    """Return a request that is given, or that has what is given, with the other fields."""
    if isinstance(given, kind):
        return given
    first: Any = given.body if isinstance(given, ChangeRequest) else given
    others: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
    return kind(first, **others)
