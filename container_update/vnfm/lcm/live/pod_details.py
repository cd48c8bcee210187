# SPDX-License-Identifier: Apache-2.0
"""What an operator asks next about a pod: its last Events, and the end of its containers' logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from container_update.drivers.vim import connect_to
from container_update.engine.diagnosis import (
    event_text,
    event_time,
    hidden_words,
    shown,
)
from container_update.model.cluster import Cluster
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.vnfm import vim_clients, vims
from container_update.vnfm.lcm.live import instance as live_instance
from container_update.vnfm.lcm.live import pods as live_pods
from container_update.vnfm.lcm.live.instance import LiveInstance
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance
from container_update.workloads.pod_status import container_statuses, was_started

_EVENTS, _LINES, _BYTES = 10, 100, 64 * 1024


def details_of(service: ServiceContext, instance: Instance, name: str) -> Json:
    """Return Events, the newest first, and logs of a pod, without values of Secrets.

    :raises ProblemError: 404: the instance has no such pod; see :func:`.vim_clients.answered`.
    """
    with vim_clients.answered(service):
        live = live_instance.read(service, instance)
        options = vim_clients.impatient(service.options)
        if live.record.instantiated and vims.kind_of(live.connection) == vims.KUBERNETES:
            with closing(connect_to(live.connection, options)) as cluster:
                vdus = live_pods.vdus_of(live, cluster, options)
                names = {
                    vnfc["name"]
                    for vdu in vdus
                    for workload in vdu["workloads"]
                    for vnfc in workload["vnfcs"]
                }
                if name in names:
                    return _details(live, cluster, name)
    raise ProblemError(404, f"VNF instance {instance.id}: it has no pod {name[:64]!r} (any more)")


def _details(live: LiveInstance, cluster: Cluster, name: str) -> Json:
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
            for event, text in zip(newest, shown(map(event_text, newest), hidden), strict=True)
        ],
        "logs": list(_logs(key, pod, cluster, hidden)),
    }


def _logs(key: ObjectKey, pod: Json, cluster: Cluster, hidden: Sequence[str]) -> Iterator[Json]:
    """Yield the end of the log of each container that ever ran; of its last run if it waits."""
    for status in filter(was_started, container_statuses(pod)):
        previous = "waiting" in status.get("state", {}) and bool(status.get("lastState"))
        text = cluster.log(key, status["name"], previous=previous, lines=_LINES, limit=_BYTES)
        yield {"container": status["name"], "lines": list(shown(text.splitlines(), hidden))}
