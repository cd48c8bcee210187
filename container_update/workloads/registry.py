# SPDX-License-Identifier: Apache-2.0
"""Which kinds of workload there are: Kubernetes' own, and those of installed plugins.

A plugin is an entry point in the group ``container_update.workloads`` that names a subclass of
:class:`WorkloadKind`. Plugins are loaded once, at the first lookup of a kind that is none of
Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from container_update.model.errors import ContainerUpdateError, PlanError
from container_update.model.objects import Manifest, ObjectKey
from container_update.workloads.api_resources import has_known_url
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.kinds.cronjob import CronJob
from container_update.workloads.kinds.daemonset import DaemonSet
from container_update.workloads.kinds.deployment import Deployment
from container_update.workloads.kinds.job import Job
from container_update.workloads.kinds.pod import Pod
from container_update.workloads.kinds.replicaset import ReplicaSet
from container_update.workloads.kinds.statefulset import StatefulSet

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "container_update.workloads"

_BUILT_IN: Mapping[tuple[str, str], WorkloadKind] = {
    (cls.group, cls.kind): cls()
    for cls in (CronJob, DaemonSet, Deployment, Job, Pod, ReplicaSet, StatefulSet)
}


def kind_of(key: ObjectKey) -> WorkloadKind | None:
    """Return the rules of the object's kind; None where it is no known kind of workload.

    :raises ContainerUpdateError: a plugin cannot be loaded.
    """
    return _find(key.group, key.kind)


def kind_of_body(body: Mapping[str, Any]) -> WorkloadKind | None:
    """Return the kind of a manifest or a live object, as :func:`kind_of`."""
    group, _, _ = str(body.get("apiVersion", "")).rpartition("/")
    return _find(group, str(body.get("kind")))


def is_workload(key: ObjectKey) -> bool:
    """Return whether the object is of a known kind that runs containers."""
    return kind_of(key) is not None


def known_kind(key: ObjectKey) -> WorkloadKind:
    """Return the kind of an object that a plan has as a workload.

    :raises PlanError: the plan was made where a plugin is installed that is not installed here.
    """
    kind = kind_of(key)
    if kind is None:
        raise PlanError(
            f"{key}: expected a known kind of workload, found {key.kind} of the API group "
            f"{key.group or 'core'}: install the plugin for {ENTRY_POINTS} that the plan was made "
            "with"
        )
    return kind


def refuse_idle(manifest: Manifest) -> None:
    """Raise PlanError where no pod of a workload would start."""
    kind = kind_of(manifest.key)
    if kind is not None and (why := kind.never_starts(manifest.body)) is not None:
        raise PlanError(f"{manifest.key} ({manifest.source}): {why}")


def _find(group: str, kind: str) -> WorkloadKind | None:
    if (found := _BUILT_IN.get((group, kind))) or has_known_url(group, kind):
        return found  # no plugin is looked for: to load them takes a tenth of an update's time
    return installed_kinds().get((group, kind))


@cache
def installed_kinds() -> Mapping[tuple[str, str], WorkloadKind]:
    """Return every kind by (group, kind), with those of plugins.

    :raises ContainerUpdateError: a plugin cannot be loaded, or is for a kind that is known already.
    """
    from stevedore import ExtensionManager  # noqa: PLC0415, slow to load

    kinds = dict(_BUILT_IN)
    plugins: ExtensionManager[Any] = ExtensionManager(
        ENTRY_POINTS, on_load_failure_callback=_refuse
    )
    for plugin in plugins:
        kind = _instance(plugin.plugin, plugin.entry_point)
        if kinds.setdefault((kind.group, kind.kind), kind) is not kind:
            raise ContainerUpdateError(
                f"{plugin.entry_point}: expected a kind that is not known yet, found "
                f"{kind.kind} of the API group {kind.group or 'core'}: uninstall this plugin of "
                f"{ENTRY_POINTS} or the other one"
            )
    return kinds


def _refuse(_: object, entry_point: EntryPoint, error: BaseException) -> None:
    raise ContainerUpdateError(f"{entry_point} cannot be loaded: {error}") from error


def _instance(plugin: object, entry_point: EntryPoint) -> WorkloadKind:
    if not (isinstance(plugin, type) and issubclass(plugin, WorkloadKind)):
        raise ContainerUpdateError(
            f"{entry_point}: expected a subclass of {WorkloadKind.__module__}."
            f"{WorkloadKind.__name__}, found {plugin!r}"
        )
    return plugin()
