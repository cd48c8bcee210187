# SPDX-License-Identifier: Apache-2.0
"""Labels that tell the pods of two releases apart, and references to workloads by name. Pure."""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping
from typing import Any

from container_update.model.objects import Json, ObjectKey, get_at
from container_update.workloads import ownership, pod_template
from container_update.workloads.registry import is_workload
from container_update.workloads.traffic import matches, selects

RELEASE_LABEL = "container-update/release"
"""On pods of a Blue-Green change, in their Deployment's selector and in that of their Service,
where the package's own labels do not distinguish the new pods from the old ones."""


def pod_labels(deployment: Mapping[str, Any]) -> Json:
    """Return what ``traffic.selects`` takes for the pods of a Deployment."""
    return {"metadata": pod_template.pod_template(deployment).get("metadata") or {}}


def selector_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selector of a Service or a Deployment; empty where there is none, or where a
    custom kind has a text or a list there."""
    selector = get_at(body, ("spec", "selector"))
    return dict(selector) if isinstance(selector, dict) else {}


def overlap(one: Json, other: Json) -> bool:
    """Tell whether one of two Deployments selects the other's pods."""
    pairs = (one, other), (other, one)
    return any(matches(selector_of(a), pod_labels(b)) for a, b in pairs)


def loser(
    service: ObjectKey,
    now: Mapping[str, str],
    then: Mapping[str, str],
    live: Mapping[ObjectKey, Json],
    changing: Container[ObjectKey],
) -> ObjectKey | None:
    """Return a workload that stays and loses traffic as a Service's selector changes."""
    for key, body in live.items():
        if key in changing or key.namespace != service.namespace or not is_workload(key):
            continue
        pods = pod_labels(body)
        if not ownership.controller_uid(body) and selects(now, pods) and not selects(then, pods):
            return key
    return None


def release_of(body: Json) -> str:
    """Return the release label in the selector of a Deployment or Service, '' where it has none."""
    path = () if body.get("kind") == "Service" else ("matchLabels",)
    return str(get_at(selector_of(body), (*path, RELEASE_LABEL)) or "")


def without_release(service: Json) -> Json:
    """Return a Service whose selector has no release label; *service* itself where it has none."""
    if not release_of(service):
        return service
    kept = {name: value for name, value in selector_of(service).items() if name != RELEASE_LABEL}
    return {**service, "spec": {**service["spec"], "selector": kept}}


def without_own_marks(old: Json, new: Json) -> Json:
    """Return an old Deployment without what marks its pods as its own: the labels of its selector
    that a new one does not have, and the digest of their configuration."""
    changed = pod_template.with_digest(old, None)
    selector, metadata = selector_of(old), pod_labels(changed)["metadata"]
    names = {*(selector.get("matchLabels") or ())}
    names |= {each.get("key") for each in selector.get("matchExpressions") or ()}
    names -= (pod_labels(new)["metadata"].get("labels") or {}).keys()
    kept = {n: value for n, value in (metadata.get("labels") or {}).items() if n not in names}
    metadata["labels"] = kept
    return changed


def with_release(body: Json, release: str) -> Json:
    """Return a copy whose selector, and pod template, has the release label."""
    changed = copy.deepcopy(body)
    spec = changed["spec"]
    label = {RELEASE_LABEL: release}
    if changed.get("kind") == "Service":
        if spec.get("selector"):
            spec["selector"] = {**spec["selector"], **label}
        return changed
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **label}
    metadata = spec["template"].setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **label}
    return changed


def with_live_limits(body: Json, old: Json, live: Json) -> Json:
    """Return an autoscaler's body with its live limits, where the packages agree on them.

    An operator narrows them to hold the number of pods: they stay in a heal too, and in another
    version of the API.
    """
    if body.get("kind") != "HorizontalPodAutoscaler":
        return body
    changed = copy.deepcopy(body)
    for field in ("minReplicas", "maxReplicas"):
        if field in live["spec"] and body["spec"].get(field) == old["spec"].get(field):
            changed["spec"][field] = live["spec"][field]
    return changed
