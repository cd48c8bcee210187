# SPDX-License-Identifier: Apache-2.0
"""A change of the package as the command line asks for it: its job, its goal, the records."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from container_update.engine.goal import Goal
from container_update.engine.goals import change_package
from container_update.engine.goals.change import KubernetesTarget, KubernetesView, PackageChange
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.goals.change_request import ChangeRequest
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.model.outcome import Outcome
from container_update.model.requests import ChangePackageRequest
from container_update.package import csar
from container_update.records.vnf_records import Records

LOG = logging.getLogger(__name__)


@contextmanager
def opened(
    request: ChangePackageRequest, cluster: ReadOnlyCluster, options: Options
) -> Iterator[Goal]:
    """Yield the goal of a request, while its package is open."""
    target = KubernetesView(cluster, **_place(request, cluster))
    with job_of(request, target.vim_type, options) as job:
        scripts = change_package.coordination_of(job, target, CancelToken())
        yield target.change(job, change_package.planner_of(job, target), scripts)


def target_of(request: ChangePackageRequest, cluster: Cluster) -> KubernetesTarget:
    """Return where the VNF of a request runs."""
    return KubernetesTarget(cluster, **_place(request, cluster))


def _place(request: ChangePackageRequest, cluster: ReadOnlyCluster) -> Mapping[str, Any]:
    return {
        "namespace": request.namespace,
        "def_files": request.def_files,
        "access": cluster.access,
        "one_namespace": request.one_namespace,
    }


@contextmanager
def job_of(
    request: ChangePackageRequest, vim_type: str, options: Options, *, leave_failed: bool = False
) -> Iterator[ChangeJob]:
    """Yield the job of a request; a new package that is opened for its id stays open meanwhile."""
    body, opened = request.body, None
    with ExitStack() as stack:
        if "vnfdId" not in body:
            opened = stack.enter_context(csar.open_package(request.new, options=options))
            body = {**body, "vnfdId": opened.vnfd_id or "unknown"}
        yield ChangeJob(
            request=ChangeRequest.of(body, vim_type),
            old=request.old,
            new=request.new,
            instance_id=request.instance_id,
            options=options,
            leave_failed=leave_failed,
            instance=json_file(request.instance) if request.instance else {},
            opened=opened,
        )


def json_file(path: str | Path) -> Mapping[str, Any]:
    """Return the JSON object in a file.

    :raises PackageError: there is none.
    """
    try:
        body = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise PackageError(f"{path}: expected a JSON file: {problem}") from error
    if not isinstance(body, dict):
        raise PackageError(f"{path}: expected a JSON object, found another JSON value")
    return body


def write_records(path: str | Path, records: Records, instance: Mapping[str, Any]) -> None:
    """Write the VnfInstance; the change is done, also where that is not possible."""
    text = json.dumps(records.applied(dict(instance)), indent=2)
    try:
        Path(path).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        LOG.warning("the change is done, but %s cannot be written: %s", path, error.strerror)


def write_records_of(request: ChangePackageRequest, goal: Goal, outcome: Outcome) -> None:
    """Write the VnfInstance of a change that has ended, where the request names a file for it."""
    if request.records and not outcome.held:
        assert isinstance(goal, PackageChange), "of such a request"
        instance = json_file(request.instance) if request.instance else {}
        write_records(request.records, goal.records(), instance)
