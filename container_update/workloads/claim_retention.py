# SPDX-License-Identifier: Apache-2.0
"""When the server deletes the volume claims of a StatefulSet, and how they are kept. Pure.

Source: Kubernetes documentation, "StatefulSets", PersistentVolumeClaim retention: claims that are
to go with their StatefulSet have it as an owner.
"""

from __future__ import annotations

from container_update.model.objects import Json

WHEN_DELETED, WHEN_SCALED = "whenDeleted", "whenScaled"
_POLICY = "persistentVolumeClaimRetentionPolicy"


def deletes_claims(body: Json, when: str) -> bool:
    """Tell whether the claims of a StatefulSet go :data:`WHEN_DELETED` or :data:`WHEN_SCALED`."""
    spec = body.get("spec") or {}
    return bool(spec.get("volumeClaimTemplates")) and _policy(body).get(when) == "Delete"


def keeping_claims(body: Json, when: str) -> Json:
    """Return a StatefulSet with its claims kept; *body* itself where they are kept already."""
    return _with_policy(body, {**_policy(body), when: "Retain"}) if _policy(body) else body


def with_policy_of(body: Json, other: Json) -> Json:
    """Return a StatefulSet that keeps its claims as another one does."""
    return _with_policy(body, _policy(other)) if _policy(other) else body


def _policy(body: Json) -> Json:
    policy: Json = (body.get("spec") or {}).get(_POLICY) or {}
    return policy


def _with_policy(body: Json, policy: Json) -> Json:
    if _policy(body) == policy:
        return body
    return {**body, "spec": {**body["spec"], _POLICY: policy}}


def is_owned(claim: Json, uid: str) -> bool:
    """Tell whether a claim goes with the object of this UID."""
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners)


def without_owner(claim: Json, uid: str) -> Json:
    """Return a claim without that owner; *claim* itself where it is none."""
    if not is_owned(claim, uid):
        return claim
    owners = [each for each in claim["metadata"]["ownerReferences"] if each.get("uid") != uid]
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}}
