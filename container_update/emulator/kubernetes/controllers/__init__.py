# SPDX-License-Identifier: Apache-2.0
"""The controllers of the embedded cluster; :func:`start` starts them all."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Context, Controller, Handler
from container_update.emulator.kubernetes.controllers.definitions import CustomDefinitions
from container_update.emulator.kubernetes.controllers.disruption import DisruptionBudgets
from container_update.emulator.kubernetes.controllers.endpoints import EndpointSlices
from container_update.emulator.kubernetes.controllers.garbage import GarbageCollector
from container_update.emulator.kubernetes.controllers.index import Index
from container_update.emulator.kubernetes.controllers.namespaces import Namespaces
from container_update.emulator.kubernetes.controllers.quotas import Quotas
from container_update.emulator.kubernetes.controllers.scheduler import Scheduler
from container_update.emulator.kubernetes.controllers.volumes import VolumeClaims, Volumes
from container_update.emulator.kubernetes.controllers.workloads.cronjob import CronJobs
from container_update.emulator.kubernetes.controllers.workloads.daemonset import DaemonSets
from container_update.emulator.kubernetes.controllers.workloads.deployment import Deployments
from container_update.emulator.kubernetes.controllers.workloads.job import Jobs
from container_update.emulator.kubernetes.controllers.workloads.replicaset import ReplicaSets
from container_update.emulator.kubernetes.controllers.workloads.statefulset import StatefulSets
from container_update.emulator.kubernetes.events import Recorder
from container_update.emulator.kubernetes.kubelet import Behaviour, Kubelet
from container_update.emulator.kubernetes.registry import Registry

_KINDS: tuple[type[Controller], ...] = (
    Namespaces,
    CustomDefinitions,
    Deployments,
    ReplicaSets,
    DaemonSets,
    StatefulSets,
    Jobs,
    DisruptionBudgets,
    EndpointSlices,
    GarbageCollector,
    VolumeClaims,
    Volumes,
    Quotas,
    Scheduler,
)


class Controllers:
    """The running controllers and nodes of a registry."""

    def __init__(
        self,
        registry: Registry,
        loop: asyncio.AbstractEventLoop,
        behaviour: Behaviour,
        more: Iterable[type[Controller]] = (),
    ) -> None:
        self._loop = loop
        self._behaviour = behaviour
        self._index = Index()
        self._record = Recorder(registry)
        context = Context(registry, loop, self._index, self._record, behaviour)
        self._cronjobs = CronJobs(context)
        self._controllers = [*(kind(context) for kind in (*_KINDS, *more)), self._cronjobs]
        self._kubelet = Kubelet(registry, loop, behaviour, self._record)
        self._handlers = self._all_handlers()
        self._stopped = False

    def start_nodes(self, nodes: int) -> None:
        """Start the nodes, and carry out what ``Behaviour`` requests from now on."""
        self._kubelet.start(nodes)
        self._behaviour.connect(evict=self._evict, run_cronjob=self._run_cronjob, crash=self._crash)

    def handle(self, event: str, resource: str, obj: Json, previous: Json | None) -> None:
        """Handle one event of the registry."""
        if self._stopped:
            return
        self._index.apply(event, resource, obj, previous)
        if event == "DELETED":
            self._record.forget(obj["metadata"]["uid"])
        for handler in (*self._handlers.get(resource, ()), *self._handlers["*"]):
            handler(event, obj, previous)

    def stop(self) -> None:
        """Stop all controllers and nodes; the objects stay as they are."""
        self._stopped = True
        self._behaviour.connect(evict=None, run_cronjob=None, crash=None)
        for controller in self._controllers:
            controller.stop()
        self._kubelet.stop()

    def _all_handlers(self) -> defaultdict[str, list[Handler]]:
        """Return the handlers of events by resource ('*' for all)."""
        handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        sources = [controller.handlers() for controller in self._controllers]
        for source in (*sources, self._kubelet.handlers()):
            for resource, handler in source.items():
                handlers[resource].append(handler)
        return handlers

    def _evict(self, namespace: str, name: str, message: str) -> None:
        self._loop.call_soon_threadsafe(self._kubelet.evict, namespace, name, message)

    def _crash(self, namespace: str, name: str, code: int) -> None:
        self._loop.call_soon_threadsafe(self._kubelet.crash, namespace, name, code)

    def _run_cronjob(self, namespace: str, name: str) -> None:
        self._loop.call_soon_threadsafe(self._cronjobs.run, namespace, name)


def start(
    registry: Registry,
    loop: asyncio.AbstractEventLoop,
    behaviour: Behaviour,
    nodes: int,
    more: Iterable[type[Controller]] = (),
) -> Controllers:
    """Start controllers, scheduler and nodes. Call it on the thread of *loop*, which runs them.

    :param nodes: how many nodes there are.
    :param more: controllers beside the built-in ones.
    """
    running = Controllers(registry, loop, behaviour, more)
    registry.subscribe(running.handle)
    for resource in list(registry.catalogue):
        for obj in registry.list(resource.key):
            running.handle("ADDED", resource.key, obj, None)
    running.start_nodes(nodes)
    return running
