# SPDX-License-Identifier: Apache-2.0
"""A change of the VNF package, from its request to its records. Start here.

request, packages -> planner of the strategy -> plan -> run (or undo) -> records
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from container_update.engine.goals import upgrade_types
from container_update.engine.goals.change import KubernetesTarget, KubernetesView
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.scripts.coordination import Coordination
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.objects import merge_patch
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.scripts import ScriptReport
from container_update.records.vnf_records import Records


def change_package(  # noqa: PLR0913
    request: ChangeRequest | Mapping[str, Any],
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    old: str,
    new: str,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    instance_id: str | None = None,
) -> Outcome:
    """Move a VNF in a cluster to a new package, all of which takes effect.

    A change of the same instance that was interrupted is finished first if it leads to the same
    package, else undone.

    >>> request = ChangeRequest(vnfd_id="vnfd-2", upgrade_type="Blue-Green")
    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = change_package(request, cluster, old="packages/v1", new="packages/v2")

    :param request: a ChangeCurrentVnfPkgRequest (SOL003), as a value or as its JSON.
    :param cluster: where the VNF runs.
    :param cancel: cancels the change from another thread or a signal handler.
    :param progress: called with the plan, with each step that begins, and with each step's result.
    :param old: the package that the VNF runs from, as ``UpdateRequest.old``.
    :param new: the package to move to.
    :param def_files: the instance's def-files; empty: every manifest that *old* lists.
    :param namespace: of the objects whose manifests name none.
    :param one_namespace: all objects are in *namespace*, whatever their manifests say.
    :param instance_id: the VNF instance; objects that bear another one's label are refused.
    :returns: the plan, what became of each step, and the pods of every VDU.
    :raises PackageError: a package or the request is wrong; nothing was written.
    :raises PlanError: the VNF is in no state to be changed this way; nothing was written.
    :raises UpdateInProgressError: another update of this instance runs; nothing was written.
    :raises UpdateFailedError: it failed; everything was put back.
    :raises UndoIncompleteError: the same, and something could not be put back.
    """
    target = KubernetesTarget(cluster, namespace, tuple(def_files), cluster.access, one_namespace)
    job = ChangeJob(_read(request, target), old, new, instance_id, options)
    return run_change(job, target, cancel, progress).outcome


def plan_change(  # noqa: PLR0913
    request: ChangeRequest | Mapping[str, Any],
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    old: str,
    new: str,
    def_files: Sequence[str] = (),
    namespace: str = "default",
    one_namespace: bool = False,
    instance_id: str | None = None,
) -> Plan:
    """Return what :func:`change_package` would do; write nothing, raise the same errors.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     plan = plan_change(request, cluster, old="packages/v1", new="packages/v2")
    """
    target = KubernetesView(cluster, namespace, tuple(def_files), cluster.access, one_namespace)
    return preview_change(ChangeJob(_read(request, target), old, new, instance_id, options), target)


def _read(request: ChangeRequest | Mapping[str, Any], target: View) -> ChangeRequest:
    body = request.body if isinstance(request, ChangeRequest) else request
    return ChangeRequest.of(body, target.vim_type)


# --- wherever the VNF runs ----------------------------------------------------------------------


class Planned(Protocol):
    """A change of the package that is only planned, wherever the VNF runs."""

    def preview(self) -> Plan:
        """Return the plan; write nothing, raise the same errors."""


class AnyChange(Planned, Protocol):
    """A change of the package that can be carried out."""

    def run(self, cancel: CancelToken, progress: Progress) -> Outcome:
        """Recover what an earlier run left, plan, and carry the plan out."""

    def records(self) -> Records:
        """Return what the VNFM has to record."""


class View(Protocol):
    """Where the VNF runs, to plan its change."""

    @property
    def vim_type(self) -> str:
        """Its VIM's type, in Tacker's or SOL003's words."""

    def change(self, job: ChangeJob, planner: Any, scripts: Coordination) -> Planned:
        """Return the change of a job, as a strategy for this VIM plans it."""


class Target(View, Protocol):
    """Where the VNF runs, to change it."""

    def change(self, job: ChangeJob, planner: Any, scripts: Coordination) -> AnyChange:
        """Return the change of a job, which can be carried out."""


@dataclass(frozen=True)
class Changed:
    """What became of a change."""

    outcome: Outcome
    recorded: Records | None
    """What the VNFM has to record; None: the change waits for a person."""
    scripts: tuple[ScriptReport, ...] = ()
    """Every run of a coordination script, in order."""

    @property
    def records(self) -> Records:
        """What the VNFM has to record of a change that has ended."""
        assert self.recorded is not None, "it does not wait for a person"
        return self.recorded


def run_change(
    job: ChangeJob,
    target: Target,
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    scripts: Coordination | None = None,
) -> Changed:
    """Move a VNF from its package to a new one, as :func:`change_package` does.

    :param scripts: runs the coordination scripts; its reports are there also after a failure.
        None: a new one.
    :raises ContainerUpdateError: it failed and was undone, or left as it is where the job says so.
    """
    cancel = CancelToken() if cancel is None else cancel
    scripts = scripts or coordination_of(job, target, cancel)
    change = target.change(job, planner_of(job, target), scripts)
    outcome = change.run(cancel, progress)
    return Changed(outcome, None if outcome.held else change.records(), tuple(scripts.reports))


def preview_change(job: ChangeJob, target: View) -> Plan:
    """Return what :func:`run_change` would do; write nothing, raise the same errors."""
    scripts = coordination_of(job, target, CancelToken())
    return target.change(job, planner_of(job, target), scripts).preview()


def coordination_of(job: ChangeJob, target: View, cancel: CancelToken) -> Coordination:
    """Return the scripts of a job, with what they need to reach the VIM."""
    recorded = job.instance.get("vimConnectionInfo")
    access = {"vim_connection_info": merge_patch(recorded, job.request.vim_connection_info)}
    return Coordination(job, access | dict(getattr(target, "access", {})), cancel)


def planner_of(job: ChangeJob, target: View) -> Any:
    """Return the strategy of a job, for a request that fits the VIM.

    :raises PackageError: it does not, or no such strategy is installed.
    """
    job.request.check_vim(target.vim_type)
    return upgrade_types.find(target.vim_type, job.request.upgrade_type)
