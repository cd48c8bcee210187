# SPDX-License-Identifier: Apache-2.0
"""Finish or undo the interrupted operation of a stack's VNF, by the journal in its project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_update.engine.goals.change_package import coordination_of
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.job import ChangeJob
from container_update.engine.goals.request_schema import COORDINATE_NEW, COORDINATE_OLD
from container_update.model.cancellation import CancelToken
from container_update.model.errors import PackageError
from container_update.model.outcome import Outcome
from container_update.model.scripts import ScriptReport
from container_update.openstack.change import OpenStackTarget, recover_change
from container_update.openstack.record import StackRecord
from container_update.openstack.stack_instance import StackInstance


def recover_stack(
    instance: StackInstance,
    target: OpenStackTarget,
    cancel: CancelToken,
    request: Mapping[str, Any] | None = None,
    *,
    back: bool,
) -> tuple[Outcome | None, Sequence[ScriptReport]]:
    """Finish or undo what was interrupted. The packages of a change have to be where they were.

    :param request: the change's request again, where its scripts need passwords: the journal holds
        none.
    :param back: undo it.
    :returns: what became of it, None where there was nothing; and the runs of its scripts.
    :raises PackageError: a package is not there, or the request is needed; nothing was done.
    :raises UpdateFailedError: it could not be finished and was undone.
    :raises UndoIncompleteError: it could not be undone.
    :raises NoWayBackError: the old stack is being deleted: the change can only be finished.
    """
    record = instance.read()
    if record is None:
        return None, ()
    if not record.context:  # an operation of the service: its steps say all
        return replace(instance, cancel=cancel).recover(back=back), ()
    job, target = _job(instance, record, target, request)
    scripts = coordination_of(job, target, cancel)
    outcome = recover_change(job, target, scripts, instance.progress, back=back)
    return outcome, scripts.reports


def _job(
    instance: StackInstance,
    record: StackRecord,
    target: OpenStackTarget,
    given: Mapping[str, Any] | None,
) -> tuple[ChangeJob, OpenStackTarget]:
    context, given_params = record.context, (given or {}).get("additionalParams") or {}
    # the journal keeps what came from options of the command line, which the request lacks
    kept = context["request"]
    params = {**given_params, **kept["additionalParams"]}
    if "vdu_params" in given_params:
        params["vdu_params"] = given_params["vdu_params"]
    body = {**(given or {}), **kept, "additionalParams": params}
    has_scripts = params.get(COORDINATE_NEW) or params.get(COORDINATE_OLD)
    if has_scripts and given is None and not context["isComplete"]:
        raise PackageError(
            f"operation {record.operation}: expected the request of this change again: its "
            "coordination scripts read more of it than the journal holds (passwords)"
        )
    job = ChangeJob(
        ChangeRequest.of(body, target.vim_type),
        context["old"],
        context["new"],
        instance.instance_id,
        instance.options,
        instance.leave_failed,
    )
    return job, replace(target, flavour_id=context["flavourId"])
