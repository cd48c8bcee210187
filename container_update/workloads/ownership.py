# SPDX-License-Identifier: Apache-2.0
"""From live objects to the pods of each VDU, by owner references, never by names. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from container_update.model.objects import Json, Manifest, ObjectKey, get_at
from container_update.model.outcome import Vnfc
from container_update.workloads import pod_status, pod_template
from container_update.workloads.api_resources import is_built_in
from container_update.workloads.kind import POD, REPLICA_SET
from container_update.workloads.readiness import is_observed
from container_update.workloads.registry import kind_of, known_kind

Objects = Iterable[Json]


def controller(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the reference to the object's managing controller; empty where it has none."""
    for owner in (body.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return owner  # type: ignore[no-any-return]
    return {}


def controller_uid(body: Mapping[str, Any]) -> str | None:
    """Return the UID of the object's managing controller, None where it has none."""
    return controller(body).get("uid")


def owned_pods(workload: Json, pods: Objects, replica_sets: Objects) -> tuple[Json, ...]:
    """Return the pods that a workload controls, by itself or through ReplicaSets; a Pod itself."""
    uid, kind = workload["metadata"]["uid"], known_kind(ObjectKey.of(workload))
    if kind.is_pod:
        return tuple(pod for pod in pods if pod["metadata"]["uid"] == uid)
    owners = {uid}
    if kind.replica_set_label is not None:
        owners = {rs["metadata"]["uid"] for rs in replica_sets if controller_uid(rs) == uid}
    return tuple(pod for pod in pods if controller_uid(pod) in owners)


_REVISION = ("metadata", "labels", "controller-revision-hash")
"""On the pods of a StatefulSet or DaemonSet: the revision of its template that they are of."""


def up_to_date(workload: Json, pods: Objects, replica_sets: Objects) -> frozenset[str]:
    """Return the UIDs of those pods that show that they are of the workload's present template: its
    controller keeps them, where a roll to another one did not end.

    Source: Kubernetes API reference, StatefulSetStatus; "Deployments", "Rollover" (a ReplicaSet
    that has the template is used again).
    """
    kind = known_kind(ObjectKey.of(workload))
    label = kind.replica_set_label
    if label is not None:
        return _owned_by_sets(workload, pods, replica_sets, label, present=True)
    if not is_observed(workload):
        return frozenset()
    revisions = {pod["metadata"]["uid"]: get_at(pod, _REVISION) for pod in pods}
    wanted = (workload.get("status") or {}).get("updateRevision")
    counts = kind.counts(workload)
    # the status of a DaemonSet does not name it, but counts the pods that have it
    if not wanted and counts.updated >= counts.desired and len({*revisions.values()}) == 1:
        wanted = next(iter(revisions.values()))
    return frozenset(uid for uid, revision in revisions.items() if wanted and revision == wanted)


def outdated_pods(workload: Json, pods: Objects, replica_sets: Objects) -> frozenset[str]:
    """Return the UIDs of those pods of a Deployment that show that they are of another template
    than its present one; none of other kinds.

    Its controller creates pods of the template before until it has seen the present one: they are
    no new ones. A custom resource that has ReplicaSets tells nothing: the server puts defaults into
    their templates, and none into its own.
    """
    key = ObjectKey.of(workload)
    label = known_kind(key).replica_set_label
    if label is None or not is_built_in(key.group):
        return frozenset()
    return _owned_by_sets(workload, pods, replica_sets, label, present=False)


def _owned_by_sets(
    workload: Json, pods: Objects, replica_sets: Objects, label: str, *, present: bool
) -> frozenset[str]:
    """Return the UIDs of the pods of ReplicaSets with, or without, the present template."""
    owning, uid = {controller_uid(pod) for pod in pods}, workload["metadata"]["uid"]
    sets = [rs for rs in replica_sets if rs["metadata"]["uid"] in owning]
    sets = [rs for rs in sets if controller_uid(rs) == uid]
    template = _without_label(workload, label)
    owners = {
        rs["metadata"]["uid"] for rs in sets if (_without_label(rs, label) == template) is present
    }
    return frozenset(pod["metadata"]["uid"] for pod in pods if controller_uid(pod) in owners)


def _without_label(body: Json, label: str) -> Json:
    template = pod_template.pod_template(body)
    labels = (template.get("metadata") or {}).get("labels") or {}
    own = {name: value for name, value in labels.items() if name != label}
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": own}}


def left_behind(
    workload: ObjectKey, pods: Objects, known: Container[str] = frozenset()
) -> tuple[Json, ...]:
    """Return the active pods of a workload that is gone.

    Its controllers may be gone as well: only the pods' references name them.

    :param known: UIDs of its pods: a ReplicaSet that was handed over has another one's name.
    """
    return tuple(
        pod
        for pod in pods
        if pod_status.is_active(pod)
        and (_was_of(workload, pod) or (controller(pod) and pod["metadata"].get("uid") in known))
    )


def _was_of(workload: ObjectKey, pod: Json) -> bool:
    owner, metadata, kind = controller(pod), pod["metadata"], known_kind(workload)
    of_its_pods = kind.controller_of_pods(workload.name, metadata.get("labels") or {})
    same_namespace = metadata["namespace"] == workload.namespace
    return same_namespace and (owner.get("kind"), owner.get("name")) == of_its_pods


def vnfcs(
    vdus: Mapping[str, str], manifests: Sequence[Manifest], live: Mapping[ObjectKey, Json]
) -> tuple[Vnfc, ...]:
    """Return the active pods of every VDU, by name.

    :param vdus: VDU id to the name of its workload (the VDU node's ``properties.name``).
    :param manifests: the CNF's manifests in force, with the identities of the live objects.
    :param live: the live objects by identity, Pods and ReplicaSets among them.
    """
    pods = [body for key, body in live.items() if (key.group, key.kind) == POD]
    replica_sets = [body for key, body in live.items() if (key.group, key.kind) == REPLICA_SET]
    records = []
    for vdu_id, name in vdus.items():
        for key in _workloads_named(name, manifests):
            if key in live:
                owned = owned_pods(live[key], pods, replica_sets)
                records += [_vnfc(vdu_id, key, pod) for pod in owned if pod_status.is_active(pod)]
    return tuple(sorted(records, key=lambda vnfc: (vnfc.vdu_id, vnfc.pod_name)))


def _workloads_named(name: str, manifests: Sequence[Manifest]) -> list[ObjectKey]:
    return [
        manifest.key
        for manifest in manifests
        if manifest.body["metadata"]["name"] == name
        and (kind := kind_of(manifest.key)) is not None
        and not kind.runs_to_completion
    ]


def _vnfc(vdu_id: str, workload: ObjectKey, pod: Json) -> Vnfc:
    metadata = pod["metadata"]
    return Vnfc(
        vdu_id=vdu_id,
        pod_name=metadata["name"],
        namespace=metadata["namespace"],
        workload_kind=workload.kind,
        workload_name=workload.name,
        labels=dict(metadata.get("labels") or {}),
        storages=pod_template.claims(pod),
        incarnation=pod_status.incarnation(pod),
    )
