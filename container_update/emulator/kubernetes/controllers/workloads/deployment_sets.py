"""A Deployment's ReplicaSets: names, what they inherit, which revision they are. Pure."""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.workloads import rollout
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.ownership import reference_to

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
_OWN_ANNOTATIONS = frozenset(
    {
        REVISION,
        REVISION_HISTORY,
        rollout.DESIRED,
        rollout.MOST,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Annotations of a Deployment that its ReplicaSets do not inherit."""


def name_of(obj: Json) -> str:
    """The object's name."""
    name: str = obj["metadata"]["name"]
    return name


def revision_of(entry: Json) -> int:
    """The number of the ReplicaSet's revision; 0 where it has none."""
    return int((entry["metadata"].get("annotations") or {}).get(REVISION, 0))


def template_without_hash(entry: Json) -> Json:
    """The ReplicaSet's template as the Deployment had it."""
    template = entry["spec"]["template"]
    metadata = template["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def annotated(obj: Json, annotations: Json) -> Json:
    """The object with these annotations and no others."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def is_full(deployment: Json, new: Json) -> bool:
    """The new ReplicaSet has every pod that the Deployment asks for, and they are available."""
    wanted = rollout.replicas(deployment)
    annotations = new["metadata"].get("annotations") or {}
    return (
        annotations.get(rollout.DESIRED) == str(wanted)
        and rollout.replicas(new) == wanted
        and rollout.counted([new], "availableReplicas") == wanted
    )


def is_empty(entry: Json) -> bool:
    """The ReplicaSet asks for no pods, and its controller has seen that there are none."""
    status = entry.get("status", {})
    seen = status.get("observedGeneration", 0) >= entry["metadata"]["generation"]
    return seen and not rollout.replicas(entry) and not status.get("replicas")


def inherited_annotations(deployment: Json, entry: Json, revision: int) -> Json:
    """The ReplicaSet's annotations: the Deployment's, and the revision where it is a new one."""
    have = entry["metadata"].get("annotations") or {}
    given = deployment["metadata"].get("annotations") or {}
    annotations = {
        **have,
        **{key: value for key, value in given.items() if key not in _OWN_ANNOTATIONS},
    }
    before = revision_of(entry)
    if before < revision:
        annotations[REVISION] = str(revision)
        if before:
            history = [*filter(None, have.get(REVISION_HISTORY, "").split(",")), str(before)]
            annotations[REVISION_HISTORY] = ",".join(history)
    return annotations


def new_set(deployment: Json, size: int, revision: int) -> Json:
    """The ReplicaSet for the Deployment's template, as it is created."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    digest = template_hash(template, deployment.get("status", {}).get("collisionCount", 0))
    labels = {**template["metadata"]["labels"], HASH_LABEL: digest}
    selector = spec["selector"]
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key not in _OWN_ANNOTATIONS
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {
                **annotations,
                rollout.DESIRED: str(rollout.replicas(deployment)),
                rollout.MOST: str(rollout.most(deployment)),
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
