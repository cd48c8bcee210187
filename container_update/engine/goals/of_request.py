# SPDX-License-Identifier: Apache-2.0
"""The goal of each request, and the options that its packages are read with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from container_update.cluster.client import KubernetesCluster
from container_update.cluster.history import History
from container_update.cluster.retry import RetryingReader
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import InstalledError
from container_update.model.options import ChartOptions, Options, Release
from container_update.model.requests import (
    ChangePackageRequest,
    HealRequest,
    InstallRequest,
    Request,
    ScaleRequest,
    TerminateRequest,
    UndoRequest,
)
from container_update.package import rendering

if TYPE_CHECKING:
    from container_update.engine.goal import Goal
    from container_update.engine.goals.change import PackageChange
    from container_update.engine.goals.install import Install


def goal_of(request: Request, cluster: ReadOnlyCluster, options: Options) -> Goal:
    """Return the goal of a request.

    What one goal needs is half of what all of them need: it is loaded alone.

    :raises PackageError: the request, or a package that says what it is about, is wrong.
    :raises PlanError: the request relies on a record that is not there.
    """
    options = with_release(options, request, cluster)
    if isinstance(request, ChangePackageRequest):
        return _change_of(request, cluster, options)
    if isinstance(request, UndoRequest):
        from container_update.engine.goals.go_back import GoBack  # noqa: PLC0415, slow to load

        return GoBack(request, cluster, options)
    if isinstance(request, InstallRequest):
        return install_of(request, cluster, options)
    if isinstance(request, TerminateRequest):
        from container_update.engine.goals.uninstall import Uninstall  # noqa: PLC0415, slow to load

        return Uninstall(request, options)
    if isinstance(request, HealRequest | ScaleRequest):
        from container_update.engine.goals.upkeep import upkeep_of  # noqa: PLC0415, slow to load

        return upkeep_of(request, options)
    from container_update.engine.goals.update import Update  # noqa: PLC0415, slow to load

    return Update.of(request, cluster, options)


def install_of(
    request: InstallRequest,
    cluster: ReadOnlyCluster,
    options: Options,
    replicas: Mapping[str, int] = {},
) -> Install:
    """Return the installation that a request asks for.

    :param replicas: a workload's name to its number of pods; without, as its manifest says.
    :raises PlanError: the request has no id, and another instance has the name of the product.
    """
    from container_update.engine.goals.install import Install  # noqa: PLC0415, slow to load

    is_chart = options.render and rendering.is_chart(Path(request.package))
    name = rendering.name_of(request.package, options) if is_chart else None
    name = request.instance_id or name
    goal = Install(replace(request, instance_id=name), options, replicas)
    where = goal.intent.where
    taken = None
    if request.instance_id is None:
        taken = History(RetryingReader(cluster, options.retry_seconds), *where).instance()
    if taken is not None:
        raise InstalledError(
            f"namespace {where[0]} already has VNF instance {where[1]}, which runs from "
            f"{taken.package}: update it, or choose another instance id for a second instance; "
            "with this id, the installation adds only missing objects"
        )
    return goal


def _change_of(
    request: ChangePackageRequest, cluster: ReadOnlyCluster, options: Options
) -> PackageChange:
    from container_update.engine.goals.change import PackageChange  # noqa: PLC0415, slow to load
    from container_update.engine.goals.change_request import FromVnfm  # noqa: PLC0415, as above
    from container_update.records.instance_file import json_file  # noqa: PLC0415, as above

    instance = json_file(request.instance) if request.instance else {}
    return PackageChange(request, cluster, options, FromVnfm(instance))


# --- charts -------------------------------------------------------------------------------------


def with_release(options: Options, request: Request, cluster: ReadOnlyCluster) -> Options:
    """Return the options, with what charts of a request are rendered for, if it names any."""
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
