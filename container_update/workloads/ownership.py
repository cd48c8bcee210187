"""From live objects to the pods of each VDU, by owner references, never by names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.outcome import Vnfc
from container_update.workloads.pod_status import is_deleting, is_finished

Objects = Iterable[Json]

HASH_LABEL = "pod-template-hash"
"""What the Deployment controller tells the pods of two templates apart by, and ends the name of
each one's ReplicaSet with (API reference)."""


def controller_uid(body: Mapping[str, object]) -> str | None:
    """The UID of the object's managing controller, None where it has none."""
    metadata = body.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return next((str(owner["uid"]) for owner in owners or () if owner.get("controller")), None)


def owned_pods(workload: Json, pods: Objects, replica_sets: Objects) -> tuple[Json, ...]:
    """The pods that a workload controls, through its ReplicaSets for a Deployment; a Pod itself."""
    uid = workload["metadata"]["uid"]
    if workload["kind"] == "Pod":
        return tuple(pod for pod in pods if pod["metadata"]["uid"] == uid)
    owners = {uid}
    if workload["kind"] == "Deployment":
        owners = {rs["metadata"]["uid"] for rs in replica_sets if controller_uid(rs) == uid}
    return tuple(pod for pod in pods if controller_uid(pod) in owners)


def left_behind(workload: ObjectKey, pods: Objects) -> tuple[Json, ...]:
    """The pods of a workload that is gone: its controllers may be gone as well, which are therefore
    known only by what the pods' own references call them. Those being deleted do not count."""
    return tuple(pod for pod in pods if _counts(pod) and _was_of(workload, pod))


def _was_of(workload: ObjectKey, pod: Json) -> bool:
    metadata = pod["metadata"]
    kind, name = workload.kind, workload.name
    if kind == "Deployment":
        kind, name = "ReplicaSet", f"{name}-{(metadata.get('labels') or {}).get(HASH_LABEL)}"
    owners = metadata.get("ownerReferences") or ()
    return metadata["namespace"] == workload.namespace and any(
        owner.get("controller") and (owner["kind"], owner["name"]) == (kind, name)
        for owner in owners
    )


def vnfcs(
    vdus: Mapping[str, str],
    manifests: Sequence[Manifest],
    live: Mapping[ObjectKey, Json],
) -> tuple[Vnfc, ...]:
    """The live pods of every VDU: not being deleted, not ended, by name.

    :param vdus: VDU id to the name of its workload (the VDU node's ``properties.name``).
    :param manifests: the CNF's manifests in force, each under the identity that its object has in
        the cluster.
    :param live: the live objects by identity, Pods and ReplicaSets among them.
    """
    pods = [body for key, body in live.items() if key.kind == "Pod" and not key.group]
    replica_sets = [body for key, body in live.items() if key.kind == "ReplicaSet"]
    records = []
    for vdu_id, name in vdus.items():
        for key in _workloads_named(name, manifests):
            if key in live:
                owned = owned_pods(live[key], pods, replica_sets)
                records += [_vnfc(vdu_id, key, pod) for pod in owned if _counts(pod)]
    return tuple(sorted(records, key=lambda vnfc: (vnfc.vdu_id, vnfc.pod_name)))


def _workloads_named(name: str, manifests: Sequence[Manifest]) -> list[ObjectKey]:
    kept = ("Pod", "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
    return [
        m.key
        for m in manifests
        if m.key.is_workload and m.key.kind in kept and m.body["metadata"]["name"] == name
    ]


def _counts(pod: Json) -> bool:
    return not is_deleting(pod) and not is_finished(pod)


def _vnfc(vdu_id: str, workload: ObjectKey, pod: Json) -> Vnfc:
    metadata = pod["metadata"]
    return Vnfc(
        vdu_id=vdu_id,
        pod_name=metadata["name"],
        namespace=metadata["namespace"],
        workload_kind=workload.kind,
        workload_name=workload.name,
        labels=dict(metadata.get("labels") or {}),
    )
