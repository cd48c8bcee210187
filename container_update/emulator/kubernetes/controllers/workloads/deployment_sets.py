# SPDX-License-Identifier: Apache-2.0
"""A Deployment's ReplicaSets: names, annotations, revisions. Pure."""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.workloads import rollout
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.objects import annotations_of, reference_to

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
_OWN_ANNOTATIONS = frozenset(
    {
        REVISION,
        REVISION_HISTORY,
        rollout.DESIRED,
        rollout.MAX,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Annotations of a Deployment that its ReplicaSets do not inherit."""


def name_of(obj: Json) -> str:
    """Return the object's name."""
    return str(obj["metadata"]["name"])


def revision_of(entry: Json) -> int:
    """Return the number of the ReplicaSet's revision; 0 if it has none."""
    return int(annotations_of(entry).get(REVISION, 0))


def template_without_hash(entry: Json) -> Json:
    """Return the ReplicaSet's template as it was in the Deployment."""
    template = entry["spec"]["template"]
    metadata = template["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def annotate(obj: Json, annotations: Json) -> Json:
    """Return the object with these annotations and no others."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def is_full(deployment: Json, new: Json) -> bool:
    """Return whether the new ReplicaSet has all the Deployment's pods, and they are available."""
    desired = rollout.replicas(deployment)
    return (
        annotations_of(new).get(rollout.DESIRED) == str(desired)
        and rollout.replicas(new) == desired
        and rollout.total_status([new], "availableReplicas") == desired
    )


def is_empty(entry: Json) -> bool:
    """Return whether the ReplicaSet asks for no pods and its controller has counted none."""
    status = entry.get("status", {})
    observed = status.get("observedGeneration", 0) >= entry["metadata"]["generation"]
    return observed and not rollout.replicas(entry) and not status.get("replicas")


def inherited_annotations(deployment: Json, entry: Json, revision: int) -> Json:
    """Return the ReplicaSet's annotations with those of the Deployment and a new revision."""
    existing = annotations_of(entry)
    annotations = {**existing, **_inherited_annotations(deployment)}
    before = revision_of(entry)
    if before < revision:
        annotations[REVISION] = str(revision)
        if before:
            history = [*filter(None, existing.get(REVISION_HISTORY, "").split(",")), str(before)]
            annotations[REVISION_HISTORY] = ",".join(history)
    return annotations


def new_set(deployment: Json, size: int, revision: int) -> Json:
    """Return the new ReplicaSet for the Deployment's template."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    digest = template_hash(template, deployment.get("status", {}).get("collisionCount", 0))
    labels = {**template["metadata"]["labels"], HASH_LABEL: digest}
    selector = spec["selector"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {
                **_inherited_annotations(deployment),
                rollout.DESIRED: str(rollout.replicas(deployment)),
                rollout.MAX: str(rollout.max_replicas(deployment)),
                REVISION: str(revision),
            },
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {
            "replicas": size,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest},
            },
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _inherited_annotations(deployment: Json) -> dict[str, str]:
    annotations = annotations_of(deployment)
    return {key: value for key, value in annotations.items() if key not in _OWN_ANNOTATIONS}
