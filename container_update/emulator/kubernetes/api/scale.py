# SPDX-License-Identifier: Apache-2.0
"""The scale subresource: a workload's number of replicas as an object of its own."""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import invalid, invalid_value
from container_update.emulator.kubernetes.registry import Own, Registry

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def of(workload: Json) -> Json:
    """Return the Scale of a stored workload."""
    metadata, spec = workload["metadata"], workload["spec"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {
            "replicas": workload.get("status", {}).get("replicas", 0),
            "selector": selectors.text_of(spec.get("selector")),
        },
    }


def write(
    registry: Registry, target: RequestTarget, scale: Json, own: Own, *, dry_run: bool
) -> Json:
    """Store the replicas of *scale* and return the new Scale; 409 for an old resourceVersion."""
    workload = registry.require(target.resource.key, target.space, target.name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        why = "must be greater than or equal to 0"
        error = invalid_value("spec.replicas", replicas, why)
        raise invalid("autoscaling", "Scale", target.name, [error])
    metadata = dict(workload["metadata"])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    spec = {**workload["spec"], "replicas": replicas}
    body = {**workload, "metadata": metadata, "spec": spec}
    key = target.resource.key
    return of(registry.update(key, target.space, target.name, body, own=own, dry_run=dry_run))
