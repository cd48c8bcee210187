# SPDX-License-Identifier: Apache-2.0
"""The live workloads of a VNF in a cluster, by VDU, each with its pods."""

from __future__ import annotations

from collections.abc import Sequence

from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.model.cluster import Cluster
from container_update.model.objects import Collection, Json, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.planning.comparison import live_objects as renames
from container_update.vnfm.lcm.live.instance import Kinds, LiveInstance
from container_update.workloads import ownership, pod_status, pod_template
from container_update.workloads.kind import REPLICA_SET, pods_in
from container_update.workloads.pod_state import Tone, state_of
from container_update.workloads.readiness import Baseline, RolloutState
from container_update.workloads.registry import known_kind

OK, CHANGING, BAD = "ok", "changing", "bad"
"""States of a workload."""


def vdus_of(live: LiveInstance, cluster: Cluster, options: Options) -> list[Json]:
    """Return the VDUs; what belongs to none is under the id ''.

    One request, all at the same time, for each kind of workload in the packages, one for the pods,
    and one for ReplicaSets where there are Deployments; more only where a list has several pages.
    """
    vdus = live.vdus(options)
    names = {name: vdu_id for vdu_id, name in vdus}
    found: dict[str, list[Json]] = {vdu_id: [] for vdu_id, _ in vdus}
    for body, pods in _workloads(live, cluster, live.kinds(options)):
        runs_on = not known_kind(ObjectKey.of(body)).runs_to_completion
        vdu_id = names.get(renames.manifest_name(body), "") if runs_on else ""
        found.setdefault(vdu_id, []).append(_workload(body, pods))
    return [{"vduId": vdu_id, "workloads": workloads} for vdu_id, workloads in found.items()]


def _workloads(
    live: LiveInstance, cluster: Cluster, kinds: Kinds
) -> list[tuple[Json, tuple[Json, ...]]]:
    """Return the workloads with the instance's label, each with its pods, old ones too."""
    namespace = live.record.namespace
    collections = {Collection(*kind, namespace) for kind in kinds}
    for group, kind in kinds:
        collections |= known_kind(ObjectKey(group, kind, namespace, "")).followed(namespace)
    if collections:
        collections.add(pods_in(namespace))
    with Informer(cluster, Scope(instance_id=live.id)) as informer:
        informer.list(collections)
        pods = informer.all(pods_in(namespace))
        replica_sets = informer.all(Collection(*REPLICA_SET, namespace))
        objects = sorted(informer.live.items())
    return [
        (body, ownership.owned_pods(body, pods, replica_sets))
        for key, body in objects
        if (key.group, key.kind) in kinds
        and ownership.controller_uid(body) is None
        and instance_of(body) == live.id
    ]


def _workload(body: Json, pods: Sequence[Json]) -> Json:
    key = ObjectKey.of(body)
    kind = known_kind(key)
    if kind.is_pod:
        desired = 1
    else:
        desired = len(pods) if kind.runs_to_completion else kind.counts(body).desired
    return {
        "object": str(key),
        "state": _state(body, pods),
        "images": _images(body),
        "desired": desired,
        "ready": sum(_serves(pod) for pod in pods),
        "vnfcs": [_vnfc(pod) for pod in pods],
    }


def _state(body: Json, pods: Sequence[Json]) -> str:
    """Return the state: a pod in trouble makes it bad at once, not only where all of them are."""
    verdict = known_kind(ObjectKey.of(body)).readiness(body, pods, Baseline()).state
    active = [pod for pod in pods if pod_status.is_active(pod)]
    is_bad = any(state_of(pod).tone is Tone.BAD for pod in active)
    if is_bad or verdict in (RolloutState.FAILING, RolloutState.FAILED):
        return BAD
    return OK if verdict is RolloutState.DONE else CHANGING


def _serves(pod: Json) -> bool:
    return pod_status.is_ready(pod) or pod_status.phase(pod) == "Succeeded"


def _vnfc(pod: Json) -> Json:
    state, metadata = state_of(pod), pod["metadata"]
    statuses = pod_status.container_statuses(pod)
    return {
        "name": metadata["name"],
        "state": state.word,
        "tone": state.tone.value,
        "problem": state.problem,
        "restarts": sum(int(status.get("restartCount", 0)) for status in statuses),
        "images": _images(pod),
        "started": (pod.get("status") or {}).get("startTime") or metadata["creationTimestamp"],
    }


def _images(workload: Json) -> list[str]:
    """Return the images of the containers that run on, each once."""
    containers = pod_template.containers(pod_template.pod_spec(workload))
    running = (c for group, c in containers if not pod_template.runs_to_its_end(group, c))
    return list(dict.fromkeys(str(container.get("image", "")) for container in running))
