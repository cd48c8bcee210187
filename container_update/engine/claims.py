# SPDX-License-Identifier: Apache-2.0
"""The volume claims of StatefulSets: keeps those that a retention policy would delete, says whose
those are that stay, and which of them a new StatefulSet takes over.

No undo could bring their data back: what deletes a claim is a step of a plan that says so.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from container_update.cluster.waiting import NotReadyError
from container_update.engine.writer import ChangedByAnotherError, ObjectWriter
from container_update.model.cluster import ReadOnlyCluster, if_allowed, items_if_allowed
from container_update.model.objects import Collection, Json, ObjectKey, get_at, instance_of
from container_update.model.outcome import CLAIM_STAYS
from container_update.model.plan import Action, Note, Plan
from container_update.planning.lifecycle import claims_of
from container_update.planning.steps import ManifestStep
from container_update.workloads import claim_retention
from container_update.workloads.claim_retention import WHEN_DELETED, WHEN_SCALED, is_owned
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.readiness import is_observed

LOG = logging.getLogger(__name__)

_CLAIM = ("", "PersistentVolumeClaim")
_SIZE = ("spec", "resources", "requests", "storage")
_PAUSE = 0.1
"""Seconds between two looks whether the controller has seen the policy."""


def claims_of_set(cluster: ReadOnlyCluster, live: Json, namespace: str) -> tuple[Json, ...]:
    """Return the claims that the controller of a StatefulSet has created, or would take; none where
    the account may not list them.

    :param live: the StatefulSet, or its manifest.
    """
    if not (live.get("spec") or {}).get("volumeClaimTemplates"):
        return ()
    claims = items_if_allowed(cluster, Collection(*_CLAIM, namespace))
    by_name = {claim["metadata"]["name"]: claim for claim in claims}
    names, uid = {*claims_of(live, by_name)}, live["metadata"].get("uid", "")
    names |= {name for name, claim in by_name.items() if uid and is_owned(claim, uid)}
    return tuple(by_name[name] for name in sorted(names))


def label_left(
    writer: ObjectWriter, live: Json, *, only_new: bool = False
) -> tuple[ObjectKey, ...]:
    """Put the instance's label on the claims of a StatefulSet that is gone, where the account may:
    an uninstallation with its data finds them. Return them.

    :param only_new: leave out those that were there before the StatefulSet.
    """
    claims = claims_of_set(writer.cluster, live, live["metadata"].get("namespace", ""))
    left = [
        each
        for each in claims
        if not (is_deleting(each) or (only_new and _was_there_before(live, each)))
    ]
    for key, claim in ((ObjectKey.of(each), each) for each in left):
        try:
            if_allowed(partial(writer.edit, key, claim, writer.with_label), None)
        except ChangedByAnotherError as error:
            LOG.info("%s is not labelled: %s", key, error)
    return tuple(map(ObjectKey.of, left))


def _was_there_before(live: Json, claim: Json) -> bool:
    """Tell whether a claim is older than its StatefulSet.

    The server's times are whole seconds. Of the same second are those that an uninstallation has
    left a moment ago, which have the instance's label: the controller sets none.
    """
    when, created = (str(body["metadata"].get("creationTimestamp", "")) for body in (live, claim))
    return created < when or bool(instance_of(claim))


def with_claims_noted(plan: Plan, cluster: ReadOnlyCluster) -> Plan:
    """Return a plan with notes on the claims that it takes over, and on those that stay."""
    known, notes = {*plan.unchanged, *(step.key for step in plan.steps)}, []
    for step in plan.steps:
        if not isinstance(step, ManifestStep):
            continue
        if step.action is Action.CREATE and step.content:
            claims = claims_of_set(cluster, step.content, step.key.namespace)
            notes += [Note(ObjectKey.of(claim), _taken_over(claim, step)) for claim in claims]
        elif step.action is Action.DELETE and step.before:
            left = claims_of_set(cluster, step.before, step.key.namespace)
            keyed = ((ObjectKey.of(claim), instance_of(claim)) for claim in left)
            notes += [
                Note(key, CLAIM_STAYS if owner in (None, plan.instance_id) else _whose(owner))
                for key, owner in keyed
                if key not in known
            ]
    return replace(plan, notes=(*plan.notes, *notes)) if notes else plan


def _whose(owner: str | None) -> str:
    return f"stays, it is VNF instance {owner}'s: the uninstallation of that one can delete it"


def _taken_over(claim: Json, step: ManifestStep) -> str:
    size, owner = get_at(claim, _SIZE), instance_of(claim)
    whose = f", VNF instance {owner}'s" if owner else ""
    return (
        f"already exists{whose}, with {size}: {step.key} starts with the data on its volume; "
        "to start without it, delete the claim first"
    )


def keep_when_deleted(writer: ObjectWriter, live: Json, deadline: float) -> Json:
    """Make the claims of a workload independent of it; return the changed workload.

    The controller takes the owner from the claims of the pods that are there, and from no others.

    :param deadline: by the waiter's clock.
    :raises NotReadyError: its controller has not seen the policy in time.
    """
    if not claim_retention.deletes_claims(live, WHEN_DELETED):
        return live
    key, uid = ObjectKey.of(live), live["metadata"]["uid"]
    kept = writer.edit(key, live, partial(claim_retention.keeping_claims, when=WHEN_DELETED))
    while not is_observed(kept):
        if writer.waiter.clock() >= deadline:
            raise NotReadyError(
                f"{key}: its controller has not seen in time that its volume claims are to stay: "
                "it is not deleted"
            )
        writer.waiter.sleep(_PAUSE)
        kept = writer.cluster.get(key) or kept
    release = partial(claim_retention.without_owner, uid=uid)
    for claim in claims_of_set(writer.cluster, kept, key.namespace):
        writer.edit(ObjectKey.of(claim), claim, release)
    return kept


def keep_when_scaled(writer: ObjectWriter, live: Json) -> Json:
    """Let the claims of the pods that a scale-in takes away stay; return the workload."""
    if not claim_retention.deletes_claims(live, WHEN_SCALED):
        return live
    keeping = partial(claim_retention.keeping_claims, when=WHEN_SCALED)
    return writer.edit(ObjectKey.of(live), live, keeping)


def restore_policy(writer: ObjectWriter, live: Json, before: Json) -> bool:
    """Give a workload its policy of before again; tell whether it had another one."""
    restored = partial(claim_retention.with_policy_of, other=before)
    if restored(live) is live:
        return False
    writer.edit(ObjectKey.of(live), live, restored)
    return True
