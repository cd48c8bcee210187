# SPDX-License-Identifier: Apache-2.0
"""What a saved plan asks for, as a goal; saved plans in the library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from container_update.cli import saved_plan
from container_update.cluster.client import KubernetesCluster
from container_update.engine.goal import Goal
from container_update.engine.goals import update
from container_update.engine.goals.go_back import GoBack
from container_update.engine.goals.install import Install
from container_update.engine.goals.uninstall import Uninstall
from container_update.engine.run import run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import PlanError
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.requests import UpdateRequest
from container_update.planning.comparison.package_pair import Placing
from container_update.planning.uninstall import Included


def save_plan(
    plan: Plan, request: UpdateRequest, cluster: KubernetesCluster, path: str | Path
) -> None:
    """Write the plan of an update to a file, for :func:`apply_plan` or ``container-update apply``.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     save_plan(plan_update(request, cluster), request, cluster, "approved.plan")

    :param request: what the plan was made of; its packages are read again when it is carried out.
    """
    saved_plan.refuse_standard_input(request.old, request.new)
    wanted = {**saved_plan.update_request(request), "server": plan.writes > 0}
    saved_plan.save(Path(path), plan, wanted, cluster.context.server)


def apply_plan(
    path: str | Path,
    cluster: KubernetesCluster,
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Carry out exactly the plan in a file, or nothing: any but that of a change of the package.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     outcome = apply_plan("approved.plan", cluster)

    The other parameters, what is returned and the errors are those of
    :func:`~container_update.engine.run.run`.

    :raises PlanError: the file has no such plan, or what it was made from is not there any more.
    """
    saved = saved_plan.load(Path(path))
    if saved is None or saved["request"]["verb"] == saved_plan.CHANGE:
        found = "no saved plan" if saved is None else "one of a change of the package"
        raise PlanError(f"{path}: expected a saved plan, found {found}: make it anew")
    goal = goal_of(saved["request"], cluster, options)
    goal.asks_server = goal.asks_server or saved["request"]["server"]
    checked = saved_plan.checked(progress, saved, cluster.context.server)
    return run(goal, cluster, options, cancel, checked)


def goal_of(request: Mapping[str, Any], cluster: Cluster, options: Options) -> Goal:
    """Return the goal that a request asks for, which is in the words of a saved plan."""
    verb, namespace, instance_id = (request[name] for name in ("verb", "namespace", "instanceId"))
    def_files = tuple(request["defFiles"])
    if verb == "undo":
        return GoBack(
            cluster, options, request["revision"], namespace, instance_id, request["packages"]
        )
    if verb == saved_plan.UPDATE:
        wanted = UpdateRequest(
            old=request["old"],
            new=request["new"],
            def_files=def_files,
            config_paths=tuple(request["configPaths"]),
            namespace=namespace,
            instance_id=instance_id,
        )
        return update.goal_of(wanted, cluster, options)
    placing = Placing(def_files, namespace)
    if verb == "install":
        goal = Install(request["package"], placing, instance_id, options)
        if instance_id is None:
            goal.refuse_taken(cluster)
        return goal
    included = Included(data=request["deleteData"], shared=request["deleteShared"])
    return Uninstall(request["package"], placing, instance_id, options, included)
