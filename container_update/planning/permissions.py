# SPDX-License-Identifier: Apache-2.0
"""What an account must be allowed to do for a plan, the undo included. Pure.

Asked before the first write: an undo that lacks a right in its middle would leave half an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from container_update.model.cluster import Right
from container_update.model.plan import Action, Plan, Step
from container_update.planning.steps import ObjectStep, WorkloadStep, object_steps
from container_update.workloads import claim_retention
from container_update.workloads.kind import pods_in
from container_update.workloads.registry import kind_of

_WRITES: Mapping[Action, frozenset[str]] = {
    Action.CREATE: frozenset({"create", "delete"}),
    Action.RECREATE: frozenset({"create", "delete", "update"}),
    Action.RECREATE_POD: frozenset({"create", "delete"}),
    Action.RESTART_CONTAINERS: frozenset({"create", "delete", "update"}),
    Action.DELETE: frozenset({"create", "delete"}),
    Action.HAND_OVER: frozenset({"create", "delete", "update"}),
    Action.REPLACE_PODS: frozenset(),
}
"""The verbs that an action and its undo write with; for all others: update. A Pod that was
restarted in place may be gone when it is to be restored."""
_CREATE = "create"
_CLAIM = ("", "PersistentVolumeClaim")


def needed_rights(plan: Plan) -> tuple[Right, ...]:
    """Return the rights for a plan and its undo, not that to delete the lease: it expires."""
    verbs = ("get", _CREATE, "update", "delete")
    secrets = {plan.namespace, *(s.key.namespace for s in plan.steps if s.key.kind == "Secret")}
    journal = {Right(namespace, "", "Secret", verb) for namespace in secrets for verb in verbs}
    lease = {Right(plan.namespace, "coordination.k8s.io", "Lease", verb) for verb in verbs[:-1]}
    of_steps = {right for step in object_steps(plan) for right in of_step(step)}
    return tuple(sorted(journal | lease | of_steps))


def to_release(plan: Plan) -> tuple[Right, ...]:
    """Return the rights to remove the owner that new objects have until the plan has ended."""
    return tuple(
        Right(step.key.namespace, step.key.group, step.key.kind, "update", step.key.name)
        for step in plan.steps
        if step.action in (Action.CREATE, Action.HAND_OVER) and step.key.namespace == plan.namespace
    )


def of_step(step: Step) -> Iterator[Right]:
    """Yield the rights to carry out and to undo a step."""
    verbs = {"get"} | _WRITES.get(step.action, frozenset({"update"}))
    for key, verb in product(step.concerns, verbs):
        # a rule that names its objects cannot allow to create one
        name = "" if verb == _CREATE else key.name
        yield Right(key.namespace, key.group, key.kind, verb, name)
    key = step.key
    removed = step.old if isinstance(step, ObjectStep) and step.is_removal else {}
    if claim_retention.deletes_claims(removed, claim_retention.WHEN_DELETED):
        yield Right(key.namespace, key.group, key.kind, "update", key.name)
        yield from (Right(key.namespace, *_CLAIM, verb) for verb in ("list", "update"))
    kind = kind_of(key)
    if kind is None:
        return
    if kind.runs_to_completion and (
        step.action is not Action.CREATE or not kind.watched_collections("")
    ):
        return  # only one that is created is waited for
    pods = pods_in(key.namespace)
    for followed in kind.watched_collections(key.namespace):
        yield Right(key.namespace, followed.group, followed.kind, "watch")
    if kind.is_pod:
        return
    evicts = isinstance(step, WorkloadStep) and (
        step.digest is not None or Action.EVICT in (step.action, step.way_back)
    )
    if evicts:
        yield Right(key.namespace, pods.group, pods.kind, _CREATE, subresource="eviction")
    if kind.keeps_broken_pods or step.action is Action.REPLACE_PODS:
        yield Right(key.namespace, pods.group, pods.kind, "delete")
