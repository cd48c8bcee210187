"""Sends every write of a plan to the API server as a dry run, to see what it would refuse.

Admission, quotas and validation take part in a dry run, controllers do not (Kubernetes API
concepts, "Dry-run").
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.cluster.retry import RetryingCluster
from container_update.model import context_threads
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import INSTANCE_LABEL, Json, ObjectKey
from container_update.model.options import Options
from container_update.model.plan import Action, Plan
from container_update.planning.order import DEFINITION
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep, object_steps
from container_update.planning.steps.new_objects import new_object

_DELETIONS = frozenset({Action.DELETE, Action.RECREATE, Action.RECREATE_POD})
"""What is created anew cannot be tried while the old one has its name."""


def check_on_server(plan: Plan, cluster: Cluster, options: Options) -> int:
    """Send each write of a plan as a dry run.

    :returns: how many there were.
    :raises ClusterError: the server refuses some; the message has all of them.
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    labels = {INSTANCE_LABEL: plan.instance_id} if plan.instance_id else {}
    steps = [step for step in object_steps(plan) if step.action is not Action.REPLACE_PODS]
    steps = [step for step in steps if not _needs_another(step, steps)]

    def refusal(step: ObjectStep) -> ClusterError | None:
        try:
            _try(step, retrying, labels)
        except ClusterError as error:
            return error
        return None

    with context_threads.pool(options.workers) as pool:
        refusals = [error for error in pool.map(refusal, steps) if error is not None]
    if refusals:
        texts = "; ".join(map(str, refusals))
        first = refusals[0]
        raise ClusterError(
            f"the API server would refuse {len(refusals)} of {len(steps)} writes: {texts}",
            status=first.status,
            reason=first.reason,
        )
    return len(steps)


def _needs_another(step: ObjectStep, steps: Sequence[ObjectStep]) -> bool:
    """Tell whether another step makes it possible: it creates the kind, or the namespace."""
    return any(
        other.action is Action.CREATE and _makes(other, step.key)
        for other in steps
        if other is not step
    )


def _makes(step: ObjectStep, key: ObjectKey) -> bool:
    if (step.key.group, step.key.kind) == ("", "Namespace"):
        return step.key.name == key.namespace
    if (step.key.group, step.key.kind) != DEFINITION:
        return False
    spec = _content(step)["spec"]
    return (spec["group"], spec["names"]["kind"]) == (key.group, key.kind)


def _try(step: ObjectStep, cluster: RetryingCluster, labels: dict[str, str]) -> None:
    if step.before is None:
        cluster.create(new_object(_content(step), step.key.namespace, labels), dry_run=True)
    elif step.action in _DELETIONS:
        cluster.delete(step.key, uid=step.before["metadata"]["uid"], dry_run=True)
    else:
        cluster.replace(step.desired(step.before), dry_run=True)


def _content(step: ObjectStep) -> Json:
    content = step.content if isinstance(step, ConfigStep | ManifestStep) else None
    assert content is not None, "what is created has its manifest"
    return content
