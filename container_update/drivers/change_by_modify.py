# SPDX-License-Identifier: Apache-2.0
"""A change of the VNF package that is requested by a modify operation: how it is read, and run.

Tacker 16 refuses every upgrade type but RollingUpdate in its change_vnfpkg, and runs no Mgmt Driver
in place of its own code there; in a modify operation it does. So the additionalParams of a
ChangeCurrentVnfPkgRequest are also understood in the metadata of a modify request, if an
``upgrade_type`` is among them. Tacker's v1 API stores texts only in metadata: there a list or an
object is given as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from container_update.drivers import vim
from container_update.engine.goals.change import KubernetesTarget
from container_update.engine.goals.change_package import (
    Changed,
    coordination_of,
    preview_change,
    run_change,
)
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.job import ChangeJob
from container_update.engine.goals.request_schema import COORDINATE_NEW, COORDINATE_OLD
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Progress
from container_update.model.plan import Plan
from container_update.model.requests import CONFIG_PATHS, DEF_FILES, UPGRADE_TYPE, UpdateRequest
from container_update.model.schema import similar_names

PARAMETERS = frozenset(
    {
        UPGRADE_TYPE,
        COORDINATE_NEW,
        f"{COORDINATE_NEW}-class",
        COORDINATE_OLD,
        f"{COORDINATE_OLD}-class",
        "vdu_params",
        "external_lb_param",
        DEF_FILES,
    }
)
"""The names that are taken from the metadata, and never stored there."""

_OF_A_CHANGE = PARAMETERS - {DEF_FILES}
"""Metadata of these names concern nothing but a change of the package."""


def requested_change(vnfd_id: str | None, metadata: Mapping[str, Any] | None) -> Json | None:
    """Return the ChangeCurrentVnfPkgRequest that a modify request stands for; None: for none.

    :param vnfd_id: the request's.
    :param metadata: the request's; or the instance's, which Tacker has merged it into.
    :raises PackageError: a parameter is misspelt, or comes without what it belongs to.
    """
    given = {name: value for name, value in (metadata or {}).items() if value is not None}
    for wrong in similar_names(given.keys() - PARAMETERS, _OF_A_CHANGE, ("metadata",)):
        raise PackageError(str(wrong))
    if UPGRADE_TYPE not in given:
        if _OF_A_CHANGE & given.keys():
            names = ", ".join(sorted(_OF_A_CHANGE & given.keys()))
            raise PackageError(
                f"metadata.{UPGRADE_TYPE}: expected the way to change the package, Blue-Green for"
                f" example, because {names} belongs to it, found nothing"
            )
        return None
    if not vnfd_id:
        raise PackageError(
            f"vnfdId: expected the VNFD to change to, because metadata.{UPGRADE_TYPE} is there,"
            " found nothing"
        )
    if CONFIG_PATHS in given:
        raise PackageError(
            f"metadata.{CONFIG_PATHS}: leave it out where metadata.{UPGRADE_TYPE} is there: all"
            " of the new package takes effect"
        )
    params = {name: _value(name, given[name]) for name in sorted(PARAMETERS & given.keys())}
    return {"vnfdId": vnfd_id, "additionalParams": params}


def without_parameters(metadata: Mapping[str, Any] | None) -> Json:
    """Return metadata without the parameters of a change, which may hold passwords."""
    return {name: value for name, value in (metadata or {}).items() if name not in PARAMETERS}


def run(  # noqa: PLR0913
    body: Json,
    request: UpdateRequest,
    cluster: Cluster,
    connection: Json,
    options: Options,
    *,
    instance: Mapping[str, Any],
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Changed:
    """Change the package of an instance; a failure is undone at once.

    :param body: the ChangeCurrentVnfPkgRequest (:func:`requested_change`).
    :param request: the packages, the instance's def-files and its namespace.
    :param connection: the VIM, with its credentials, for the coordination scripts.
    :param instance: the VnfInstance, for the scripts.
    :raises ContainerUpdateError: as
        :func:`~container_update.engine.goals.change_package.run_change` does.
    """
    job, target = _job_of(body, request, cluster, connection, options, instance)
    cancel = CancelToken() if cancel is None else cancel
    scripts = coordination_of(job, target, cancel)
    return run_change(job, target, cancel, progress, scripts)


def preview(  # noqa: PLR0913
    body: Json,
    request: UpdateRequest,
    cluster: Cluster,
    connection: Json,
    options: Options,
    *,
    instance: Mapping[str, Any],
) -> Plan:
    """Return what :func:`run` would do; write nothing, raise the same errors."""
    return preview_change(*_job_of(body, request, cluster, connection, options, instance))


def _job_of(  # noqa: PLR0913, PLR0917
    body: Json,
    request: UpdateRequest,
    cluster: Cluster,
    connection: Json,
    options: Options,
    instance: Mapping[str, Any],
) -> tuple[ChangeJob, KubernetesTarget]:
    vim_type = str(connection.get("vimType") or "kubernetes")
    target = KubernetesTarget(
        cluster,
        request.namespace,
        request.def_files,
        vim.script_access(connection),
        one_namespace=request.one_namespace,
        vim_type=vim_type,
    )
    job = ChangeJob(
        _parsed(body, vim_type),
        request.old,
        request.new,
        request.instance_id,
        options,
        instance=instance,
    )
    return job, target


def _parsed(body: Json, vim_type: str) -> ChangeRequest:
    """Parse the request; a message says where in the metadata something is wrong."""
    try:
        return ChangeRequest.of(body, vim_type)
    except PackageError as error:
        raise PackageError(str(error).replace("additionalParams", "metadata")) from None


def _value(name: str, given: Any) -> Any:
    """Return a parameter; a list or an object may be written as JSON."""
    if not (isinstance(given, str) and given.lstrip()[:1] in ("[", "{")):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise PackageError(
            f"metadata.{name}: expected a list or an object as JSON, found a text that is none"
        ) from None
