# SPDX-License-Identifier: Apache-2.0
"""Keeps the volume claims of a StatefulSet whose retention policy would delete them.

No undo could bring their data back: what deletes a claim is a step of a plan that says so.
"""

from __future__ import annotations

from functools import partial

from container_update.cluster.waiting import NotReadyError
from container_update.engine.writer import ObjectWriter
from container_update.model.cluster import if_allowed
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.workloads import claim_retention
from container_update.workloads.claim_retention import WHEN_DELETED, WHEN_SCALED
from container_update.workloads.readiness import is_observed

_PAUSE = 0.1
"""Seconds between two looks whether the controller has seen the policy."""


def keep_when_deleted(writer: ObjectWriter, live: Json, deadline: float) -> Json:
    """Make the claims of a workload independent of it; return the workload as it is then.

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
    claims = Collection("", "PersistentVolumeClaim", key.namespace)
    listing = if_allowed(partial(writer.cluster.list, claims), None)
    for claim in listing.items if listing else ():
        if claim_retention.is_owned(claim, uid):
            release = partial(claim_retention.released, uid=uid)
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
