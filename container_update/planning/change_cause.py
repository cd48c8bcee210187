# SPDX-License-Identifier: Apache-2.0
"""Why a workload was changed last, in the annotation of ``kubectl rollout history``. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

from container_update.model.plan import (
    INSTALL,
    Action,
    ConfigUse,
    FieldChange,
    ImageChange,
    Plan,
    Step,
)
from container_update.model.requests import names
from container_update.planning.steps import ManifestStep, RestartStep
from container_update.planning.steps.workload import CHANGE_CAUSE

_KINDS = frozenset({"DaemonSet", "Deployment", "StatefulSet"})
"""Those whose controllers keep revisions."""


def with_change_causes(plan: Plan) -> Plan:
    """Return the plan of an operation that ends in the history, with the cause of each change; what
    an installation creates has not been changed."""
    if plan.kind == INSTALL:
        return plan
    return replace(plan, steps=tuple(_with_cause(plan, step) for step in plan.steps))


def _with_cause(plan: Plan, step: Step) -> Step:
    if step.key.kind not in _KINDS or step.action is Action.DELETE:
        return step
    cause = f"{names(plan.packages) or 'update'}: {', '.join(dict.fromkeys(_words(step)))}"
    if isinstance(step, RestartStep):
        return replace(step, change_cause=cause)
    if isinstance(step, ManifestStep) and step.content is not None:
        content = copy.deepcopy(step.content)
        annotations = content["metadata"].get("annotations") or {}
        content["metadata"]["annotations"] = {**annotations, CHANGE_CAUSE: cause}
        return replace(step, content=content)
    return step


def _words(step: Step) -> Iterator[str]:
    """Yield what changed: 'image', 'ConfigMap settings'; 'create' where that is all."""
    causes = [reason.cause for reason in step.reasons]
    if step.images or any(isinstance(cause, ImageChange) for cause in causes):
        yield "image"
    is_new = step.action is Action.CREATE
    if any(isinstance(cause, FieldChange | None) for cause in causes) and not is_new:
        yield "manifest"
    for cause in causes:
        if isinstance(cause, ConfigUse):
            yield f"{cause.object.kind} {cause.object.name}"
    if is_new:
        yield "created"
