# SPDX-License-Identifier: Apache-2.0
"""What a modify operation does to the CNF: an update, or a change of the VNF package.

Tacker 16 refuses every upgrade type but RollingUpdate in its change_vnfpkg, and runs no Mgmt Driver
in place of its own code there; in a modify operation it does. So the additionalParams of a
ChangeCurrentVnfPkgRequest are also understood in the metadata of a modify request, if an
``upgrade_type`` is among them. Tacker's v1 API stores texts only in metadata: there a list or an
object is given as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_update.drivers import vim
from container_update.engine.goal import Goal
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import FromVnfm
from container_update.engine.goals.request_schema import COORDINATE_NEW, COORDINATE_OLD
from container_update.engine.run import run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import NextStep, PackageError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.requests import (
    CONFIG_PATHS,
    DEF_FILES,
    UPGRADE_TYPE,
    ChangePackageRequest,
    UpdateRequest,
)
from container_update.model.schema import similar_names
from container_update.records.vnf_records import Records

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


Modification = UpdateRequest | ChangePackageRequest
"""What a modify request does to the CNF."""


def modification(request: UpdateRequest, change: Json | None) -> Modification:
    """Return what a modify request does to the CNF.

    :param change: the ChangeCurrentVnfPkgRequest that it stands for; None: it is an update.
    """
    if change is None:
        return request
    return ChangePackageRequest(change, request.old, request.new, **request.placing)


def goal_of(
    request: Modification,
    cluster: ReadOnlyCluster,
    options: Options,
    connection: Json,
    instance: Mapping[str, Any],
) -> Goal:
    """Return the goal of a modification.

    :param connection: the VIM, with its credentials, for coordination scripts.
    :param instance: the VnfInstance, for them.
    :raises PackageError: says where in the metadata the request is wrong.
    """
    from container_update.engine.goals.update import Update  # noqa: PLC0415 (heavy)

    if isinstance(request, UpdateRequest):
        return Update(request, options)
    vnfm = FromVnfm(instance, access=vim.script_access(connection))
    try:
        return PackageChange(request, cluster, options, vnfm)
    except PackageError as error:
        raise error.below("metadata") from None


def carry_out(  # noqa: PLR0913, PLR0917
    request: Modification,
    cluster: Cluster,
    options: Options,
    connection: Json,
    instance: Mapping[str, Any],
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    why: str = "",
) -> tuple[Outcome, Records]:
    """Do it; a failure is undone at once. Return its outcome, and what to record.

    :param why: the reason that the user gave, one line.

    The other parameters and the errors are those of :func:`goal_of` and of
    :func:`~container_update.engine.run.run`.
    """
    goal = goal_of(request, cluster, options, connection, instance)
    if why:
        goal.intent = replace(goal.intent, why=why)
    outcome = run(goal, cluster, options, cancel, progress)
    if not isinstance(goal, PackageChange):
        return outcome, Records.of_update(outcome)
    manifests = outcome.plan.manifests
    records = goal.records(outcome)
    return outcome, replace(records, vnfd_id=None, named_by_pods=True, manifests=manifests)


def request_of(  # noqa: PLR0913
    instance_id: str,
    def_files: Sequence[str] | None,
    namespace: str | None,
    *,
    old: str,
    new: str,
    config_paths: Sequence[str] | None = None,
    place: str,
) -> UpdateRequest:
    """Return the update of an instance from the package at *old* to the one at *new*.

    :param place: where its record has the def-files, for people.
    :raises PackageError: the instance was not created from def-files, but from a Helm chart.
    """
    if not def_files:
        raise PackageError(
            f"VNF instance {instance_id}: expected {DEF_FILES} in {place}, found none. Only an"
            " instance made from such files can be moved to another package: instantiate it again"
            " with them",
            next_step=NextStep.FIX_TARGET,
        )
    return UpdateRequest(
        old=old,
        new=new,
        def_files=tuple(def_files),
        config_paths=tuple(config_paths or ()),
        namespace=namespace or "default",
        one_namespace=True,
        instance_id=instance_id,
    )


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
