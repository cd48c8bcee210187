# SPDX-License-Identifier: Apache-2.0
"""What a user asks for, as a goal; plans of it that are saved and carried out later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from container_update.cli import saved_plan
from container_update.cluster.client import KubernetesCluster
from container_update.engine.run import preview, run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import PlanError
from container_update.model.options import ChartOptions, Options, Release
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.requests import (
    ChangePackageRequest,
    InstallRequest,
    Request,
    UndoRequest,
    UpdateRequest,
)
from container_update.package import rendering
from container_update.planning.comparison.package_pair import Placing

if TYPE_CHECKING:
    from container_update.engine.goal import Goal


def plan_of(
    request: Request,
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
) -> Plan:
    """Return the plan of any request; write nothing, raise the errors of its operation.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_of(InstallRequest("packages/v1", namespace="cnf"), cluster)
    """
    with _opened(request, cluster, options) as goal:
        return preview(goal, cluster, options)


def save_plan(plan: Plan, request: Request, cluster: KubernetesCluster, path: str | Path) -> None:
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

    The other parameters, what is returned and the errors are those of
    :func:`~container_update.engine.run.run`.

    :raises PlanError: the file has no plan, or what it was made from is not there any more.
    """
    saved = saved_plan.load(Path(path))
    if saved is None:
        raise PlanError(f"{path}: expected a saved plan, found another file: make it anew")
    request = saved_plan.request_of(saved)
    checked = saved_plan.checked(progress, saved, cluster.context.server)
    with _opened(request, cluster, options) as goal:
        goal.asks_server = goal.asks_server or saved["request"]["server"]
        outcome = run(goal, cluster, options, cancel, checked)
        if isinstance(request, ChangePackageRequest):
            from container_update.cli import package_changes  # noqa: PLC0415, slow to load

            package_changes.write_records_of(request, goal, outcome)
    return outcome


@contextmanager
def _opened(request: Request, cluster: ReadOnlyCluster, options: Options) -> Iterator[Goal]:
    """Yield the goal of a request; of a change of the package too, while its package is open."""
    if not isinstance(request, ChangePackageRequest):
        yield goal_of(request, cluster, options)
        return
    from container_update.cli import package_changes  # noqa: PLC0415, slow to load

    options = with_release(options, request, cluster)
    with package_changes.opened(request, cluster, options) as goal:
        yield goal


def goal_of(request: Request, cluster: ReadOnlyCluster, options: Options) -> Goal:
    """Return the goal of a request, other than for a change of the package.

    What one goal needs is half of what all of them need: it is loaded alone.
    """
    namespace, instance_id = request.namespace, request.instance_id
    options = with_release(options, request, cluster)
    if isinstance(request, UpdateRequest):
        from container_update.engine.goals import update  # noqa: PLC0415, slow to load

        return update.goal_of(request, cluster, options)
    if isinstance(request, UndoRequest):
        from container_update.engine.goals.go_back import GoBack  # noqa: PLC0415, slow to load

        revision, packages = request.revision, request.packages
        return GoBack(cluster, options, revision, namespace, instance_id, packages)
    assert not isinstance(request, ChangePackageRequest), "it has a job"
    placing = Placing(request.def_files, namespace, request.one_namespace)
    if isinstance(request, InstallRequest):
        from container_update.engine.goals.install import Install  # noqa: PLC0415, slow to load

        name = instance_id or _name_of_chart(request.package, options)
        goal = Install(request.package, placing, name, options)
        if instance_id is None:
            goal.refuse_taken(cluster)
        return goal
    from container_update.engine.goals.uninstall import Uninstall  # noqa: PLC0415, slow to load
    from container_update.planning.staying import Included  # noqa: PLC0415, slow to load

    included = Included(data=request.delete_data, shared=request.delete_shared)
    return Uninstall(request.package, placing, instance_id, options, included)


def with_release(options: Options, request: Request, cluster: ReadOnlyCluster) -> Options:
    """Return the options, with what its charts are rendered for where a request names one.

    The cluster is asked for its version and kinds only then.
    """
    named = (getattr(request, name, None) for name in ("package", "old", "new"))
    packages = (*named, *getattr(request, "packages", ()))
    return for_charts(options, request.namespace, request.instance_id, packages, cluster)


def for_charts(
    options: Options,
    namespace: str,
    instance_id: str | None,
    packages: Iterable[str | None],
    cluster: ReadOnlyCluster,
) -> Options:
    """Return the options, with what the charts among these packages are rendered for."""
    folders = map(Path, filter(None, packages))
    if not (options.render and any(map(rendering.is_chart, folders))):
        return options
    release = Release(namespace, instance_id or "")
    if isinstance(cluster, KubernetesCluster):
        served = cluster.api_versions()
        release = replace(release, kube_version=cluster.version(), api_versions=served)
    settings = {each.name: getattr(options, each.name) for each in fields(Options)}
    return ChartOptions(**settings, release=release)


def _name_of_chart(package: str, options: Options) -> str | None:
    is_chart = options.render and rendering.is_chart(Path(package))
    return rendering.name_of(package, options) if is_chart else None
