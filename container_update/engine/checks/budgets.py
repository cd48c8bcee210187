# SPDX-License-Identifier: Apache-2.0
"""Disruption budgets that forbid the evictions of a plan, which would wait for its time limit.

Only where a plan is shown: what a run waits for, it reports itself.

Sources: Kubernetes documentation, "Specifying a Disruption Budget for your Application" and
"API-initiated Eviction".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from container_update.cluster.informer import Informer
from container_update.model.cluster import ReadOnlyCluster, items_if_allowed
from container_update.model.objects import Collection, Json
from container_update.model.plan import Action, Obstacle, Plan
from container_update.planning.steps import ManifestStep, object_steps
from container_update.workloads.pod_status import is_deleting, is_finished, is_ready
from container_update.workloads.traffic import matches

_KIND = "PodDisruptionBudget"
_END = "the operation waits until its time limit, then undoes everything"


def with_budgets_noted(plan: Plan, cluster: ReadOnlyCluster, informer: Informer) -> Plan:
    """Return a plan with the budgets that forbid its evictions, as far as they can be listed."""
    steps = [step for step in object_steps(plan) if step.action is Action.EVICT]
    spaces = {step.key.namespace for step in steps}
    budgets = {space: _budgets_in(space, plan, cluster) for space in spaces}
    obstacles = (
        Obstacle(step.key, text)
        for step in steps
        for text in _texts(budgets[step.key.namespace], informer.pods_of(step.old))
    )
    return replace(plan, notes=(*plan.notes, *obstacles))


def _budgets_in(namespace: str, plan: Plan, cluster: ReadOnlyCluster) -> Sequence[Json]:
    """Return the budgets as they are when the plan evicts: it writes those that it has before."""
    every = items_if_allowed(cluster, Collection("policy", _KIND, namespace), if_missing=True)
    budgets = {body["metadata"]["name"]: body for body in every}
    for step in object_steps(plan):
        is_budget = (step.key.kind, step.key.namespace) == (_KIND, namespace)
        if is_budget and isinstance(step, ManifestStep) and step.content is not None:
            body = step.with_change(step.before) if step.before else step.content
            counts = {**(body.get("status") or {}), "conditions": ()}  # they were about the old one
            budgets[step.key.name] = {**body, "status": counts}
    return tuple(budgets.values())


def _texts(budgets: Sequence[Json], pods: Sequence[Json]) -> Iterator[str]:
    """Yield why pods of a workload cannot be evicted."""
    evicted = [pod for pod in pods if not (is_deleting(pod) or is_finished(pod))]
    selected: dict[str, list[Json]] = {}
    for pod in evicted:
        names = [
            each["metadata"]["name"]
            for each in budgets
            if matches((each.get("spec") or {}).get("selector"), pod)
        ]
        for name in names:
            selected.setdefault(name, []).append(pod)
        if len(names) > 1:
            yield (
                f"{len(names)} budgets select its pods ({', '.join(sorted(names))}), and the API "
                f"server evicts none of more than one {_KIND}: {_END}; leave one of them"
            )
            return
    for budget in budgets:
        name = budget["metadata"]["name"]
        if name in selected and (why := _refusal(budget, selected[name])):
            yield f"{_KIND} {name} allows no eviction of its pods: {why}"


def _refusal(budget: Json, pods: Sequence[Json]) -> str:
    """Return why a budget lets none of these pods go, and what to do; '' where it does."""
    spec, status = budget.get("spec") or {}, budget.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "SyncFailed":
            why = f"its controller cannot count them ({condition.get('message')})"
            return f"{why}: {_END}; give it a whole number as minAvailable"
    ready = sum(map(is_ready, pods))
    pods_of_all = status.get("expectedPods") or len(pods)
    healthy = status.get("currentHealthy") or ready
    needed = _least_healthy(spec, pods_of_all)
    if healthy + len(pods) - ready > needed:
        return ""  # those that are not Ready are replaced first, without an eviction
    least = f"{needed} of {pods_of_all} pods have to be healthy, {healthy} are: {_END}"
    lower = "lower its minAvailable, or raise its maxUnavailable, for the update"
    if needed >= pods_of_all:
        return f"{least}; {lower}, or scale up first"
    return f"{least}; see why the others are not, or {lower}"


def _least_healthy(spec: Json, pods: int) -> int:
    """Return how many of so many pods a budget wants to stay healthy."""
    if spec.get("maxUnavailable") is not None:
        return pods - _number(spec["maxUnavailable"], pods)
    return _number(spec.get("minAvailable", 1), pods)


def _number(value: object, pods: int) -> int:
    """Return a number of pods, or a percentage, which is rounded up."""
    digits, percent, _ = str(value).partition("%")
    return -(-int(digits) * pods // 100) if percent else int(digits)
