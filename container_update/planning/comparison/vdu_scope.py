# SPDX-License-Identifier: Apache-2.0
"""Which objects belong to which workload: what it uses, and what points at its pods. Pure.

Source: Kubernetes API reference: PodSpec, Service, HorizontalPodAutoscaler, PodDisruptionBudget,
NetworkPolicy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from container_update.model.objects import Json, Manifest, ObjectKey, get_at
from container_update.planning.release_labels import pod_labels
from container_update.workloads import config_references, pod_template
from container_update.workloads.registry import is_workload
from container_update.workloads.traffic import selects

_SELECTORS = {
    "NetworkPolicy": ("podSelector", "matchLabels"),
    "PodDisruptionBudget": ("selector", "matchLabels"),
    "Service": ("selector",),
}
"""Where the spec of a kind selects pods by their labels."""


def used_only_by_others(
    objects: Sequence[Manifest], is_concerned: Callable[[ObjectKey], bool]
) -> frozenset[ObjectKey]:
    """Return the objects that belong to workloads that are not concerned, and to no others.

    :param objects: of both packages; an object may be there in two versions.
    :param is_concerned: tells whether a workload changes.
    """
    own: set[ObjectKey] = set()
    others: set[ObjectKey] = set()
    for workload in objects:
        if is_workload(workload.key):
            belonging = own if is_concerned(workload.key) else others
            belonging.update(belongs_to(workload, objects))
    return frozenset(others - own)


def belongs_to(workload: Manifest, objects: Sequence[Manifest]) -> Iterator[ObjectKey]:
    """Yield the identities of the objects that belong to a workload."""
    namespace, spec = workload.key.namespace, pod_template.pod_spec(workload.body)
    for use in config_references.uses(spec):
        yield ObjectKey("", use.kind, namespace, use.name)
    for claim in pod_template.claims(workload.body).values():
        yield ObjectKey("", "PersistentVolumeClaim", namespace, claim)
    yield ObjectKey("", "ServiceAccount", namespace, str(spec.get("serviceAccountName")))
    pods = pod_labels(workload.body)
    for manifest in objects:
        if manifest.key.namespace == namespace and _points_at(manifest, workload.key, pods):
            yield manifest.key


def _points_at(manifest: Manifest, workload: ObjectKey, pods: Json) -> bool:
    spec = manifest.body.get("spec")
    if not isinstance(spec, dict):
        return False
    if (path := _SELECTORS.get(manifest.key.kind)) is not None:
        return selects(get_at(spec, path) or {}, pods)
    target = spec.get("scaleTargetRef") or {}
    return (target.get("kind"), target.get("name")) == (workload.kind, workload.name)
