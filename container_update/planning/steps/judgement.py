# SPDX-License-Identifier: Apache-2.0
"""How far a step is, or its undo, as the live objects show it to a reader. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from container_update.model.objects import Json
from container_update.model.plan import Action
from container_update.planning.steps import (
    ConfigStep,
    ObjectStep,
    PodsStep,
    ScaleStep,
    WorkloadStep,
)
from container_update.workloads import pod_status
from container_update.workloads.kinds import pod
from container_update.workloads.pod_template import pod_template
from container_update.workloads.readiness import (
    DONE,
    Baseline,
    Readiness,
    RolloutState,
    abandoned,
    conditions,
)
from container_update.workloads.registry import kind_of


def applied(
    step: ObjectStep, live: Json | None, pods: Sequence[Json], before: frozenset[str]
) -> Readiness | None:
    """Return how far a step is; None where it has not begun.

    :param live: its object; None where there is none.
    :param pods: all that the object owns now.
    :param before: the UIDs of the pods that it had before.
    """
    if step.action in (Action.DELETE, Action.RECREATE_POD):
        return _replaced(step, live)
    own = step.as_it_is(live) if isinstance(step, ConfigStep) else step
    if live is None or not own.is_applied(live):
        return None
    kind = kind_of(step.key)
    if kind is None or not step.starts_pods or step.action is Action.TEMPLATE:
        return DONE
    if step.action is Action.RESTART_CONTAINERS:
        return pod.restarted(live, Baseline.of([step.old], tuple(step.images)))
    baseline = replace(
        _baseline(step, live, before),
        abandoned=abandoned(pods, before),
        conditions=conditions(step.before) if step.before is not None else (),
    )
    return kind.readiness(live, pods, baseline)


def _replaced(step: ObjectStep, live: Json | None) -> Readiness | None:
    """Judge a step that deletes its object, and perhaps creates it again."""
    is_old = live is not None and live["metadata"]["uid"] == step.old["metadata"]["uid"]
    if is_old and live is not None:
        text = f"{step.key} is still being deleted"
        return Readiness(RolloutState.PROGRESSING, text) if pod_status.is_deleting(live) else None
    return DONE if step.action is Action.DELETE else pod.recreated(live, Baseline())


def _baseline(step: ObjectStep, live: Json, before: frozenset[str]) -> Baseline:
    """Return the pods that the step is to replace."""
    if isinstance(step, PodsStep):
        return Baseline(frozenset(uid for _, uid in step.pods))
    if isinstance(step, ScaleStep):
        return Baseline(before, allowed=before)
    if step.before is None or pod_template(step.before) == pod_template(live):
        return Baseline()
    return Baseline(before)


def restored(step: ObjectStep, live: Json | None, pods: Sequence[Json]) -> Readiness | None:
    """Return how far the undo of a step is; None where it has not begun. See :func:`applied`."""
    if step.action is Action.CREATE:
        return DONE if live is None else None
    if step.action is Action.HAND_OVER:
        return None if live is not None and step.is_applied(live) else DONE
    if live is None or pod_status.is_deleting(live) or not step.is_restored(live):
        return None
    kind = kind_of(step.key)
    if kind is None or kind.runs_to_completion:
        return DONE
    changes_pods = isinstance(step, WorkloadStep) and step.action is not Action.DELETE
    new = [owned for owned in pods if changes_pods and step.is_applied(owned)]
    baseline = Baseline(conditions=conditions(live), restores=kind.counts(step.old))
    return kind.readiness(live, pods, baseline.with_old(new))
