# SPDX-License-Identifier: Apache-2.0
"""The nodes: their objects, and a worker for each pod that is bound to one of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.events import Recorder
from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour
from container_update.emulator.kubernetes.kubelet.cache import ImmutableCache
from container_update.emulator.kubernetes.kubelet.configuration import CONFIG_RESOURCES
from container_update.emulator.kubernetes.kubelet.worker import PodContext, PodWorker
from container_update.emulator.kubernetes.objects import new_condition
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.registry import Registry

VERSION = "v1.36.2"


class Kubelet:
    """The kubelets of all nodes."""

    def __init__(
        self,
        registry: Registry,
        loop: asyncio.AbstractEventLoop,
        behaviour: Behaviour,
        record: Recorder,
    ) -> None:
        self._registry = registry
        self._loop = loop
        self._cache = ImmutableCache(registry)
        self._context = PodContext(registry, loop, behaviour, record, self._cache, self._new_ip)
        self._workers: dict[str, PodWorker] = {}
        self._by_namespace: dict[str, dict[str, PodWorker]] = {}
        self._addresses = itertools.count(2)

    def start(self, nodes: int) -> None:
        """Create the nodes: node-1, node-2, ..."""
        for number in range(1, nodes + 1):
            if self._registry.get("nodes", "", f"node-{number}") is None:
                self._registry.create("nodes", "", _node(number))

    def stop(self) -> None:
        """Stop all workers; the pods stay as they are."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def handlers(self) -> dict[str, Callable[[str, Json, Json | None], None]]:
        """Return the handlers of events by resource."""
        return {
            "pods": self._pod_event,
            **dict.fromkeys(CONFIG_RESOURCES.values(), self._configuration_event),
        }

    def evict(self, namespace: str, name: str, message: str) -> None:
        """Evict a running pod from its node."""
        if (worker := self._worker_of(namespace, name)) is not None:
            worker.evict(message)

    def crash(self, namespace: str, name: str, code: int) -> None:
        """End the running containers of a pod."""
        if (worker := self._worker_of(namespace, name)) is not None:
            worker.crash(code)

    def _worker_of(self, namespace: str, name: str) -> PodWorker | None:
        pod = self._registry.get("pods", namespace, name)
        return self._workers.get(pod["metadata"]["uid"]) if pod is not None else None

    def _pod_event(self, event: str, pod: Json, _previous: Json | None) -> None:
        metadata = pod["metadata"]
        uid, namespace = metadata["uid"], metadata["namespace"]
        worker = self._workers.get(uid)
        if worker is not None and (event == "DELETED" or is_finished(pod)):
            self._cache.end(pod)
        if event == "DELETED":
            if worker is not None:
                worker.close()
                del self._workers[uid]
                del self._by_namespace[namespace][uid]
        elif worker is not None:
            worker.take_changed(pod)
        elif pod["spec"].get("nodeName"):
            self._start_worker(pod)

    def _configuration_event(self, event: str, obj: Json, _previous: Json | None) -> None:
        if event != "DELETED":
            namespace = obj["metadata"]["namespace"]
            self._loop.call_soon(self._configuration_changed, namespace)

    def _configuration_changed(self, namespace: str) -> None:
        for worker in list(self._by_namespace.get(namespace, {}).values()):
            worker.configuration_changed()

    def _start_worker(self, pod: Json) -> None:
        metadata = pod["metadata"]
        host_ip = _host_ip(self._registry.get("nodes", "", pod["spec"]["nodeName"]))
        if not is_finished(pod):
            self._cache.begin(pod)
        worker = PodWorker(pod, self._context, host_ip)
        self._workers[metadata["uid"]] = worker
        self._by_namespace.setdefault(metadata["namespace"], {})[metadata["uid"]] = worker
        self._loop.call_soon(worker.begin)

    def _new_ip(self) -> str:
        third, fourth = divmod(next(self._addresses), 250)
        return f"10.244.{third % 250}.{fourth + 2}"


def _host_ip(node: Json | None) -> str:
    for address in (node or {}).get("status", {}).get("addresses", []):
        if address["type"] == "InternalIP":
            return str(address["address"])
    return "10.0.0.1"


def _node(number: int) -> Json:
    """Return a ready node with large capacity."""
    name, now = f"node-{number}", stamp()
    text = "the emulated node is ready"
    ready = new_condition("Ready", "True", "KubeletReady", text, now, lastHeartbeatTime=now)
    capacity = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": f"10.0.0.{number}"},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [ready],
            "nodeInfo": {
                "architecture": "amd64",
                "containerRuntimeVersion": "emulated://1",
                "kernelVersion": "emulated",
                "kubeletVersion": VERSION,
                "operatingSystem": "linux",
                "osImage": "emulated",
            },
        },
    }
