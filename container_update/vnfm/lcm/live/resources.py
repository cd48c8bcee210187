# SPDX-License-Identifier: Apache-2.0
"""The live resources of a VNF instance: VDUs, their workloads, their VNFCs, as they are right now.

They are asked for again and again while a user looks: few requests, a short time limit, and what
the packages say is read once. What is in a cloud is in :mod:`.servers`, which needs an extra.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from sqlalchemy import select

from container_update.cluster.informer import Informer
from container_update.cluster.scope import Scope
from container_update.drivers.vim import connect_to
from container_update.engine.diagnosis import hidden_words, redact
from container_update.engine.read_packages import described_by
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.objects import Collection, Json, Manifest, ObjectKey, instance_of
from container_update.model.options import Options
from container_update.model.requests import InstallRequest
from container_update.package import csar
from container_update.planning.comparison import live_objects
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.lcm.operation_context import VnfRecord, known_flavour
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.rows import Instance, OperationRow, Package
from container_update.workloads import ownership, pod_status, pod_template
from container_update.workloads.kind import REPLICA_SET, pods_in
from container_update.workloads.pod_events import event_text, event_time
from container_update.workloads.pod_state import Tone, state_of
from container_update.workloads.readiness import Baseline, RolloutState, is_observed
from container_update.workloads.registry import is_workload, known_kind

_PACKAGES_KEPT = 256


@dataclass(frozen=True)
class LiveInstance:
    """An instance, for one look at it."""

    id: str
    record: VnfRecord = field(repr=False)
    connection: Json = field(repr=False)
    """Its VIM, with credentials."""
    folders: Mapping[str, Path]
    """Its packages by VNFD: that of an unsettled operation, then the recorded one."""
    is_settled: bool = True
    """No operation is under way, or waits for a decision."""

    def vdus(self, options: Options) -> tuple[tuple[str, str], ...]:
        """Return each VDU with the name of its workload or server, by the recorded package last;
        a VDU whose workload gets another name is there twice."""
        flavour_id = self.record.flavour_id
        by_package = (_vdus(folder, flavour_id, options) for folder in self.folders.values())
        return tuple(dict.fromkeys(itertools.chain.from_iterable(by_package)))

    def workloads(self, options: Options) -> tuple[Manifest, ...]:
        """Return the workloads that its packages describe."""
        recorded = {self.record.vnfd_id: self.record.def_files}
        by_package = (
            _described_workloads(folder, recorded.get(vnfd_id, ()), options)
            for vnfd_id, folder in self.folders.items()
        )
        return tuple(itertools.chain.from_iterable(by_package))


def _read(service: ServiceContext, instance_id: str) -> LiveInstance:
    """Read an instance; one that is not instantiated has no VIM and no packages."""
    with service.database.reading() as session:
        row = session.get(Instance, instance_id)
        if row is None:
            raise ProblemError(
                404, f"VNF instance {instance_id[:64]!r}: there is none with this id"
            )
        recorded = instances.vims_of(service, row)
        record = VnfRecord.of(row, recorded)
        if not row.instantiated:
            return LiveInstance(row.id, record, {}, {})
        unsettled = (OperationRow.instance_id == row.id, OperationRow.state.in_(UNSETTLED))
        targets = session.scalars(select(OperationRow.vnfd_id).where(*unsettled)).all()
        folders = {
            vnfd_id: packages.unpack(service, package_id)
            for vnfd_id in dict.fromkeys(filter(None, (*targets, row.vnfd_id)))
            for package_id in session.scalars(select(Package.id).where(Package.vnfd_id == vnfd_id))
        }
        connection = vims.connection(service, session, recorded)
        return LiveInstance(row.id, record, connection, folders, not targets)


# --- what a package says: it stays as it is once it is onboarded --------------------------------


@lru_cache(_PACKAGES_KEPT)
def _vdus(folder: Path, flavour_id: str | None, options: Options) -> tuple[tuple[str, str], ...]:
    with csar.open_package(str(folder), options=options) as package:
        return tuple(package.vdus(known_flavour(package, flavour_id)).items())


@lru_cache(_PACKAGES_KEPT)
def _described_workloads(
    folder: Path, def_files: tuple[str, ...], options: Options
) -> tuple[Manifest, ...]:
    request = InstallRequest(str(folder), def_files=def_files, one_namespace=True)
    described = described_by(request, options)
    return tuple(manifest for manifest in described if is_workload(manifest.key))


# --- the tree -----------------------------------------------------------------------------------


def resources_of(service: ServiceContext, instance_id: str) -> Json:
    """Return the live tree of an instance; without VDUs unless it is instantiated.

    :raises ProblemError: 404: there is none; 422: a package or the VIM's description is wrong;
        502: the VIM does not answer, or refuses.
    """
    with vims.explain_failures(service):
        live = _read(service, instance_id)
        if not live.record.instantiated:
            return {"vimType": None, "namespace": None, "vdus": []}
        options = vims.impatient(service.options)
        kind = vims.kind_of(live.connection)
        return (_in_openstack if kind == vims.OPENSTACK else _in_kubernetes)(live, options)


def _in_kubernetes(live: LiveInstance, options: Options) -> Json:
    with closing(connect_to(live.connection, options)) as cluster:
        vdus = vdus_of(live, cluster, options)
    return {"vimType": vims.KUBERNETES, "namespace": live.record.namespace, "vdus": vdus}


def _in_openstack(live: LiveInstance, options: Options) -> Json:
    from container_update.vnfm.lcm.live import servers as live_servers  # noqa: PLC0415, an extra

    described = dict(live.vdus(options))
    with vims.heat(live.connection, options) as heat:
        stack, vdus = live_servers.vdus_of(live.id, live.record, described, heat)
    return {"vimType": vims.OPENSTACK, "namespace": None, "stack": stack, "vdus": vdus}


# --- in a cluster: workloads by VDU, each with its pods -----------------------------------------

OK, CHANGING, BAD, MISSING = "ok", "changing", "bad", "missing"
"""States of a workload; missing: the package describes it, the cluster does not have it, and no
operation is under way."""


def vdus_of(live: LiveInstance, cluster: ReadOnlyCluster, options: Options) -> list[Json]:
    """Return the VDUs; what belongs to none is under the id ''.

    One request, all at the same time, for each kind of workload in the packages, one for the pods,
    and one for ReplicaSets where there are Deployments; more only where a list has several pages.
    """
    vdus, described = live.vdus(options), live.workloads(options)
    names = {name: vdu_id for vdu_id, name in vdus}
    by_vdu: dict[str, list[Json]] = {vdu_id: [] for vdu_id, _ in vdus}
    found: set[tuple[str, str, str]] = set()
    for body, pods in _workloads(live, cluster, described):
        key, name = ObjectKey.of(body), live_objects.manifest_name(body)
        found.add((key.group, key.kind, name))
        vdu_id = "" if known_kind(key).runs_to_completion else names.get(name, "")
        by_vdu.setdefault(vdu_id, []).append(_workload(body, pods))
    is_known = live.is_settled and live.record.def_files  # what has to be there
    for manifest in described if is_known else ():
        key = manifest.key
        if (key.group, key.kind, key.name) in found or known_kind(key).runs_to_completion:
            continue
        named = {"object": str(replace(key, namespace=live.record.namespace))}
        missing = _workload(manifest.body, (), MISSING) | named
        by_vdu.setdefault(names.get(key.name, ""), []).append(missing)
    return [{"vduId": vdu_id, "workloads": workloads} for vdu_id, workloads in by_vdu.items()]


def _workloads(
    live: LiveInstance, cluster: ReadOnlyCluster, described: Sequence[Manifest]
) -> list[tuple[Json, tuple[Json, ...]]]:
    """Return the workloads of the described kinds with the instance's label, each with its pods,
    old ones too."""
    namespace = live.record.namespace
    kinds = {(manifest.key.group, manifest.key.kind) for manifest in described}
    collections = {Collection(*kind, namespace) for kind in kinds}
    for group, kind in kinds:
        collections |= known_kind(ObjectKey(group, kind, namespace, "")).watched_collections(
            namespace
        )
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


def _workload(body: Json, pods: Sequence[Json], state: str = "") -> Json:
    key = ObjectKey.of(body)
    kind = known_kind(key)
    if kind.is_pod:
        desired = 1
    else:
        desired = len(pods) if kind.runs_to_completion else kind.counts(body).desired
    ready = [p for p in pods if pod_status.is_ready(p) or pod_status.phase(p) == "Succeeded"]
    new = min(_current(body, pods), sum(_is_new(pod, body, pods) for pod in ready))
    return {
        "object": str(key),
        "state": state or _state(body, pods),
        "images": _images(body),
        "desired": desired,
        "ready": new,
        "readyOld": len(ready) - new,
        "vnfcs": [_vnfc(pod) for pod in pods],
    }


def _current(body: Json, pods: Sequence[Json]) -> int:
    """Return how many pods can be of the present template, by the controller's own status."""
    kind = known_kind(ObjectKey.of(body))
    if kind.is_pod or kind.runs_to_completion:
        return len(pods)
    return kind.counts(body).updated if is_observed(body) else 0


def _is_new(pod: Json, body: Json, pods: Sequence[Json]) -> bool:
    """Tell whether a pod has the revision of the newest pod that is not being deleted."""
    label = known_kind(ObjectKey.of(body)).replica_set_label or "controller-revision-hash"

    def revision(pod: Json) -> object:
        return (pod["metadata"].get("labels") or {}).get(label) or _images(pod)

    def age(pod: Json) -> tuple[str, bool]:  # of two from one second, one with the new images
        return pod["metadata"]["creationTimestamp"], _images(pod) == _images(body)

    active = [pod for pod in pods if pod_status.is_active(pod)]
    return not active or revision(pod) == revision(max(active, key=age))


def _state(body: Json, pods: Sequence[Json]) -> str:
    """Return the state: a pod in trouble makes it bad at once, not only where all of them are."""
    verdict = known_kind(ObjectKey.of(body)).readiness(body, pods, Baseline()).state
    active = [pod for pod in pods if pod_status.is_active(pod)]
    is_bad = any(state_of(pod).tone is Tone.BAD for pod in active)
    if is_bad or verdict in (RolloutState.FAILING, RolloutState.FAILED):
        return BAD
    return OK if verdict is RolloutState.DONE else CHANGING


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


# --- what an operator asks next about a pod -----------------------------------------------------

_EVENTS, _LINES, _BYTES = 10, 100, 64 * 1024
"""The last Events of a pod, and the end of its containers' logs."""


def details_of(service: ServiceContext, instance_id: str, name: str) -> Json:
    """Return Events, the newest first, and logs of a pod, without values of Secrets.

    :raises ProblemError: 404: the instance has no such pod; see :func:`.vims.explain_failures`.
    """
    with vims.explain_failures(service):
        live = _read(service, instance_id)
        options = vims.impatient(service.options)
        if live.record.instantiated and vims.kind_of(live.connection) == vims.KUBERNETES:
            with closing(connect_to(live.connection, options)) as cluster:
                names = {
                    vnfc["name"]
                    for vdu in vdus_of(live, cluster, options)
                    for workload in vdu["workloads"]
                    for vnfc in workload["vnfcs"]
                }
                if name in names:
                    return _details(live, cluster, name)
    raise ProblemError(404, f"VNF instance {instance_id}: it has no pod {name[:64]!r} (any more)")


def _details(live: LiveInstance, cluster: ReadOnlyCluster, name: str) -> Json:
    namespace = live.record.namespace
    key = ObjectKey("", "Pod", namespace, name)
    pod = cluster.get(key) or {"metadata": {}}
    about = f"involvedObject.uid={pod['metadata'].get('uid', '')}"
    events = cluster.list(Collection("", "Event", namespace, about)).items
    newest = sorted(events, key=event_time, reverse=True)[:_EVENTS]
    hidden = hidden_words(cluster.list(Collection("", "Secret", namespace)).items)
    return {
        "events": [
            {"time": event_time(event), "isWarning": event.get("type") == "Warning", "text": text}
            for event, text in zip(newest, redact(map(event_text, newest), hidden), strict=True)
        ],
        "logs": list(_logs(key, pod, cluster, hidden)),
    }


def _logs(
    key: ObjectKey, pod: Json, cluster: ReadOnlyCluster, hidden: Sequence[str]
) -> Iterator[Json]:
    """Yield the end of the log of each container that ever ran; of its last run if it waits."""
    for status in filter(pod_status.was_started, pod_status.container_statuses(pod)):
        previous = "waiting" in status.get("state", {}) and bool(status.get("lastState"))
        text = cluster.log(key, status["name"], previous=previous, lines=_LINES, limit=_BYTES)
        yield {"container": status["name"], "lines": list(redact(text.splitlines(), hidden))}
