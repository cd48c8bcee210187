# SPDX-License-Identifier: Apache-2.0
"""Notes which foreign Services would select no pod any more after a plan. The VNF's own follow
their pods, or the plan is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from container_update.model.cluster import ReadOnlyCluster, items_if_allowed
from container_update.model.objects import Collection, Json, ObjectKey, is_of
from container_update.model.plan import Note, Plan
from container_update.planning.steps import ManifestStep
from container_update.workloads import pod_template
from container_update.workloads.pod_status import is_deleting, is_finished
from container_update.workloads.registry import is_workload
from container_update.workloads.traffic import selects


@dataclass(frozen=True)
class _Pods:
    """The pods of a workload before a step and after it, as far as there are any."""

    workload: ObjectKey
    before: Json | None
    after: Json | None

    @classmethod
    def of(cls, step: ManifestStep) -> _Pods:
        return cls(step.key, _pods_of(step.before), _pods_of(step.content))

    def has(self, pod: Json) -> bool:
        """Tell whether a live pod was made from what the workload is before the step."""
        labels = _labels(self.before)
        return bool(labels) and labels.items() <= _labels(pod).items()


def with_lost_traffic_noted(plan: Plan, cluster: ReadOnlyCluster) -> Plan:
    """Return a plan with a note on each foreign Service whose pods it takes away."""
    steps = [s for s in plan.steps if isinstance(s, ManifestStep) and is_workload(s.key)]
    notes: list[Note] = []
    for namespace in sorted({step.key.namespace for step in steps}):
        here = [_Pods.of(step) for step in steps if step.key.namespace == namespace]
        if _changes_labels(here):
            notes += _notes(plan, here, namespace, cluster)
    return replace(plan, notes=(*plan.notes, *notes)) if notes else plan


def _changes_labels(workloads: Sequence[_Pods]) -> bool:
    before = [_labels(each.before) for each in workloads if each.before]
    after = [_labels(each.after) for each in workloads if each.after]
    return bool(after) and any(labels not in after for labels in before)


def _notes(
    plan: Plan, workloads: Sequence[_Pods], namespace: str, cluster: ReadOnlyCluster
) -> Iterator[Note]:
    own = {manifest.key for manifest in plan.manifests} | {step.key for step in plan.steps}
    for service in items_if_allowed(cluster, Collection("", "Service", namespace)):
        key = ObjectKey("", "Service", namespace, service["metadata"]["name"])
        selector = (service.get("spec") or {}).get("selector") or {}
        before, after = (
            any(body and selects(selector, body) for body in bodies)
            for bodies in zip(*((each.before, each.after) for each in workloads), strict=True)
        )
        if key in own or is_of(plan.instance_id, service) or after or not before:
            continue
        labels = ",".join(f"{name}={value}" for name, value in selector.items())
        pods = items_if_allowed(cluster, Collection("", "Pod", namespace, labels=labels))
        running = (pod for pod in pods if not (is_deleting(pod) or is_finished(pod)))
        owners = [next((w for w in workloads if w.has(pod)), None) for pod in running]
        lost = {str(each.workload) for each in owners if each}
        if lost and None not in owners:
            text = (
                "does not belong to this VNF, and selects none of the new pods of "
                f"{', '.join(sorted(lost))}: all of its pods go, so its "
                "traffic is lost unless its selector is changed too"
            )
            yield Note(key, text)


def _pods_of(body: Json | None) -> Json | None:
    if body is None or body.get("kind") == "Pod":
        return body
    return pod_template.pod_template(body)


def _labels(pods: Json | None) -> Json:
    return ((pods or {}).get("metadata") or {}).get("labels") or {}
