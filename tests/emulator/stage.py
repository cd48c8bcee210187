# SPDX-License-Identifier: Apache-2.0
"""A registry with all controllers and one node, on an event loop of its own, without HTTP.

A test is a coroutine over a :class:`Stage`; :func:`on_stage` runs it. Nothing sleeps: a test waits
for a condition (:meth:`Stage.until`), which is checked after every write and periodically.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from container_update.emulator.kubernetes import controllers
from container_update.emulator.kubernetes.eviction import evict
from container_update.emulator.kubernetes.kubelet import Behaviour
from container_update.emulator.kubernetes.registry import Registry
from tests.emulator import virtual_time
from tests.emulator.watchfacts import differences
from tests.internals.core import Json

DEADLINE_SECONDS = 5.0
CHECK_SECONDS = 0.02
"""The period of checking conditions that become true without a write."""
NAMESPACE = "rec"


class Event(NamedTuple):
    """One event of the registry."""

    type: str
    resource: str
    object: Json


class Stage:
    """The cluster of one test."""

    def __init__(self, behaviour: Behaviour, nodes: int) -> None:
        self.behaviour = behaviour
        self.registry = Registry()
        self.events: list[Event] = []
        self._written = asyncio.Event()
        self.registry.subscribe(self._note)
        self.running = controllers.start(
            self.registry, asyncio.get_running_loop(), behaviour, nodes
        )

    def create(self, resource: str, body: Json, namespace: str = NAMESPACE) -> Json:
        """Create an object in the test's namespace."""
        return self.registry.create(resource, namespace, copy.deepcopy(body))

    def get(self, resource: str, name: str, namespace: str = NAMESPACE) -> Json:
        """Return the object; the test fails if it does not exist."""
        stored = self.registry.get(resource, namespace, name)
        assert stored is not None, f"{resource} {name} is gone"
        return stored

    def stored(self, resource: str, prefix: str = "") -> list[Json]:
        """Return the objects in the test's namespace with this prefix of their names."""
        objects = self.registry.list(resource, NAMESPACE)
        return [obj for obj in objects if obj["metadata"]["name"].startswith(prefix)]

    def change(self, resource: str, name: str, *changes: Callable[[Json], Any]) -> Json:
        """Apply *changes* to a copy of the object and write it."""
        body = copy.deepcopy(self.get(resource, name))
        for change in changes:
            change(body)
        return self.registry.update(resource, NAMESPACE, name, body)

    def delete(self, resource: str, name: str, **options: Any) -> Json:
        """Delete an object of the test's namespace."""
        return self.registry.delete(resource, NAMESPACE, name, **options)

    def evict(self, pod: Json) -> Json:
        """Request the pod's eviction."""
        metadata = pod["metadata"]
        return evict(self.registry, metadata["namespace"], metadata["name"], {})

    async def until(self, condition: Callable[[], Any], description: str = "") -> None:
        """Wait until *condition* holds; fail after the deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DEADLINE_SECONDS
        while not condition():
            assert loop.time() < deadline, f"timed out: {description or condition}"
            self._written.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._written.wait(), CHECK_SECONDS)

    def mark(self) -> int:
        """Return a point in time for :meth:`since`."""
        return len(self.events)

    def since(self, mark: int, resource: str) -> list[tuple[str, Json]]:
        """Return the events of a resource after a mark."""
        return [
            (event.type, event.object) for event in self.events[mark:] if event.resource == resource
        ]

    async def shows(
        self, mark: int, resource: str, expected: list[tuple[str, Json]], **tolerance: int
    ) -> None:
        """Wait until the events since *mark* are the recorded ones, and are not followed by more.

        :param tolerance: see :func:`~tests.emulator.watchfacts.differences`.
        """

        def problems() -> list[str]:
            return differences(expected, self.since(mark, resource), **tolerance)

        with contextlib.suppress(AssertionError):
            await self.until(lambda: not problems(), "the recorded events")
            await self.settle()
        assert not problems(), "\n".join(problems())

    async def settle(self) -> None:
        """Run everything that is due now."""
        for _ in range(50):
            await asyncio.sleep(0)

    def status(self, resource: str, name: str) -> Json:
        """Return the object's status."""
        status: Json = self.get(resource, name).get("status", {})
        return status

    def is_rolled_out(self, resource: str, name: str) -> bool:
        """Return whether all pods are new and ready and there are no others."""
        obj, pods = self.get(resource, name), self.owned_pods(resource, name)
        status = obj["status"]
        if status.get("observedGeneration") != obj["metadata"]["generation"]:
            return False
        if resource == "daemonsets":
            desired = status["desiredNumberScheduled"]
            updated = desired and status.get("updatedNumberScheduled", 0) == desired
            return bool(updated and status.get("numberAvailable") == desired == len(pods))
        desired = obj["spec"]["replicas"]
        counts = ["readyReplicas", "availableReplicas"]
        if resource != "replicasets":
            counts.append("updatedReplicas")
        return len(pods) == desired and all(status.get(name, 0) == desired for name in counts)

    def owned_pods(self, resource: str, name: str) -> list[Json]:
        """Return the pods of a workload, by its selector."""
        labels = self.get(resource, name)["spec"]["selector"]["matchLabels"].items()
        return [
            pod
            for pod in self.stored("pods")
            if labels <= pod["metadata"].get("labels", {}).items()
        ]

    def _note(self, event: str, resource: str, obj: Json, _previous: Json | None) -> None:
        self.events.append(Event(event, resource, obj))
        self._written.set()


def quick() -> Behaviour:
    """Return short delays: a pod stops before its successor runs, as in the recordings."""
    return Behaviour(start_seconds=0.03, stop_seconds=0.01, backoff_seconds=0.02)


Scenario = Callable[[Stage], Awaitable[None]]


def on_stage(scenario: Scenario) -> Callable[[], None]:
    """Make a test of a coroutine over a Stage with one node and short delays."""
    return on_stage_with()(scenario)


def on_stage_with(
    behaviour: Callable[[], Behaviour] = quick, *, nodes: int = 1
) -> Callable[[Scenario], Callable[[], None]]:
    """Make a test of a coroutine over a Stage of that kind."""

    def decorate(scenario: Scenario) -> Callable[[], None]:
        # No functools.wraps: pytest would take the coroutine's parameter for a fixture.
        def test() -> None:
            virtual_time.run(_run(scenario, behaviour(), nodes))

        functools.update_wrapper(test, scenario)
        del test.__wrapped__  # type: ignore[attr-defined]
        return test

    return decorate


async def _run(scenario: Scenario, behaviour: Behaviour, nodes: int) -> None:
    stage = Stage(behaviour, nodes)
    stage.registry.create("namespaces", "", {"metadata": {"name": NAMESPACE}})
    await stage.until(lambda: stage.stored("configmaps") and stage.stored("serviceaccounts"))
    stage.create("configmaps", {"metadata": {"name": "cfg"}, "data": {"k": "v", "other": "w"}})
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(repr(context)))
    try:
        await scenario(stage)
    finally:
        stage.running.stop()
    assert not failures, failures


def workload(kind: str, name: str, replicas: int | None = 2, **spec: Any) -> Json:
    """Return a workload of the recordings: one container with one key of ConfigMap cfg."""
    body: Json = {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
            **({} if replicas is None else {"replicas": replicas}),
            **({"serviceName": name} if kind == "statefulsets" else {}),
            **spec,
        },
    }
    return body


def pod_spec(image: str = "app:1", **more: Any) -> Json:
    """Return a pod of one container that uses key k of ConfigMap cfg."""
    reference = {"configMapKeyRef": {"name": "cfg", "key": "k"}}
    container = {"name": "a", "image": image, "env": [{"name": "E", "valueFrom": reference}]}
    return {"containers": [{**container, **more}]}


def image(value: str) -> Callable[[Json], None]:
    """Return a change of the first container's image."""

    def change(body: Json) -> None:
        spec = body["spec"].get("template", body)["spec"]
        spec["containers"][0]["image"] = value

    return change


def digest(value: str) -> Callable[[Json], None]:
    """Return a change of an annotation of the pod template."""

    def change(body: Json) -> None:
        body["spec"]["template"]["metadata"].setdefault("annotations", {})["x/digest"] = value

    return change


def scale(replicas: int) -> Callable[[Json], None]:
    """Return a change of the number of replicas."""

    def change(body: Json) -> None:
        body["spec"]["replicas"] = replicas

    return change
