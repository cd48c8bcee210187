# SPDX-License-Identifier: Apache-2.0
"""The work of a kubelet for one pod: volumes, init containers, containers, restarts, termination.

Every step is a timer on the event loop. The status is written once per turn of the loop, so that
two containers that start together are one event, as with a real kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.events import Recorder
from container_update.emulator.kubernetes.kubelet.behaviour import (
    Behaviour,
    ContainerKey,
    ContainerStart,
)
from container_update.emulator.kubernetes.kubelet.cache import ImmutableCache
from container_update.emulator.kubernetes.kubelet.configuration import (
    MissingConfiguration,
    container_of,
    environment,
    mounted_files,
    volume_files,
)
from container_update.emulator.kubernetes.kubelet.status import (
    ContainerState,
    Sandbox,
    evicted_status,
    initial_states,
    pod_status,
    restarts,
    stopped_status,
)
from container_update.emulator.kubernetes.objects import is_deleting, key_of
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.registry import Registry

COMPONENT = "kubelet"
_KILLED = 137
_POD, _VOLUMES = " pod", " volumes"
"""Names of timers and retries for the pod itself; no container can have such a name."""


@dataclass(frozen=True)
class PodContext:
    """What the workers of all pods share."""

    registry: Registry
    loop: asyncio.AbstractEventLoop
    behaviour: Behaviour
    record: Recorder
    cache: ImmutableCache
    new_ip: Callable[[], str]
    """Returns an unused address."""


class PodWorker:
    """Runs one pod from its binding to its removal."""

    def __init__(self, pod: Json, context: PodContext, host_ip: str) -> None:
        self._registry = context.registry
        self._loop = context.loop
        self._behaviour = context.behaviour
        self._record = context.record
        self._lookup = context.cache.lookup(pod)
        self._new_ip = context.new_ip
        self._pod = pod
        self._sandbox = Sandbox(host_ip, stamp(), generation=pod["metadata"]["generation"])
        self._containers = initial_states(pod)
        self._timers = Timers(context.loop)
        self._retries: dict[str, Callable[[], None]] = {}
        self._failures: dict[str, int] = {}
        self._refreshable: dict[str, dict[str, bytes]] = {}
        self._flushing = False
        self._stopping = False
        self._closed = False

    # --- called by the node ---------------------------------------------------------------------

    def begin(self) -> None:
        """Start the pod."""
        if is_deleting(self._pod):
            self._stop()
        elif is_finished(self._pod):
            self._closed = True
        else:
            if any(container.is_init for container in self._containers):
                for container in self._containers:
                    container.wait("PodInitializing")
            self._flush()
            self._mount()

    def take_changed(self, pod: Json) -> None:
        """Handle a changed pod."""
        self._pod = pod
        if self._closed:
            return
        if is_deleting(pod):
            self._stop()
        elif pod["metadata"]["generation"] != self._sandbox.generation:
            self._sandbox.generation = pod["metadata"]["generation"]
            if not self._replace_changed_images():
                self._flush_soon()

    def configuration_changed(self) -> None:
        """Handle a changed ConfigMap or Secret of the namespace."""
        for name, retry in list(self._retries.items()):
            del self._retries[name]
            retry()
        if self._refreshable and not self._timers.is_set(_VOLUMES):
            self._timers.set(_VOLUMES, self._behaviour.volume_refresh_seconds, self._refresh)

    def evict(self, message: str) -> None:
        """Evict the pod: stop all containers for good."""
        if self._closed or self._stopping:
            return
        self.close()
        for container in self._containers:
            if container.is_running:
                container.end(_KILLED, stamp())
        self._record.warning(COMPONENT, self._pod, "Evicted", message)
        self._write(evicted_status(self._pod, self._sandbox, self._containers, message, stamp()))

    def crash(self, code: int) -> None:
        """End all running containers, as if by themselves."""
        for container in self._containers:
            if container.is_running and not self._stopping:
                self._take_exit(container, code)

    def close(self) -> None:
        """Stop working on the pod."""
        self._closed = True
        self._timers.cancel_all()
        self._retries.clear()

    # --- volumes --------------------------------------------------------------------------------

    def _mount(self) -> None:
        """Start the containers if all mounted objects exist."""
        for volume in self._pod["spec"].get("volumes") or []:
            try:
                volume_files(self._pod, volume, self._lookup)
            except MissingConfiguration as missing:
                text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {missing}'
                self._record.warning(COMPONENT, self._pod, "FailedMount", text)
                self._sandbox.volumes_ready = False
                self._retries[_VOLUMES] = self._mount
                self._flush_soon()
                return
        self._sandbox.volumes_ready = True
        self._start_next()

    def _refresh(self) -> None:
        """Refresh mounted files; those of a deleted object stay as they were."""
        for name, fixed in self._refreshable.items():
            try:
                container = container_of(self._pod, name)
                fresh = mounted_files(self._pod, container, self._lookup, fixed=False)
            except MissingConfiguration:
                continue
            self._behaviour.record_files(self._key(name), {**fresh, **fixed})

    # --- starting -------------------------------------------------------------------------------

    def _start_next(self) -> None:
        """Start the next init container, or all containers."""
        for container in self._containers:
            if container.is_init and not container.is_done:
                if not container.runs:
                    self._pull(container)
                return
        for container in self._containers:
            if not container.is_init and not container.runs:
                container.wait("ContainerCreating")
                self._pull(container)

    def _later(
        self, container: ContainerState, seconds: float, act: Callable[[ContainerState], None]
    ) -> None:
        self._timers.set(container.name, seconds, lambda: act(container))

    def _pull(self, container: ContainerState) -> None:
        self._later(container, self._behaviour.pull_seconds, self._take_pulled)

    def _take_pulled(self, container: ContainerState) -> None:
        tries = self._failures.get(container.name, 0)
        if not self._behaviour.pull_fails(container.image, tries):
            self._failures.pop(container.name, None)
            self._report(container, "Pulled", f'Container image "{container.image}" is present')
            self._later(container, self._behaviour.start_seconds, self._start)
            return
        self._failures[container.name] = tries + 1
        self._warn(
            container,
            "Failed",
            f'Failed to pull image "{container.image}": {self._error(container)}',
        )
        container.wait("ErrImagePull", self._error(container))
        self._flush_soon()
        self._later(container, self._behaviour.start_seconds, self._back_off_pull)

    def _error(self, container: ContainerState) -> str:
        """Return how a container runtime words that it cannot pull an image."""
        desc = f'failed to pull and unpack image "{container.image}"'
        if self._behaviour.is_denied(container.image):
            return f"{desc}: 401 Unauthorized"  # the kubelet leaves out the code Unknown
        return f"rpc error: code = NotFound desc = {desc}: not found"

    def _back_off_pull(self, container: ContainerState) -> None:
        text = f'Back-off pulling image "{container.image}"'
        self._warn(container, "BackOff", text)
        container.wait("ImagePullBackOff", f"{text}: ErrImagePull: {self._error(container)}")
        self._flush_soon()
        seconds = self._behaviour.backoff(self._failures.get(container.name, 1))
        self._later(container, seconds, self._pull)

    def _start(self, container: ContainerState) -> None:
        pod, spec = self._pod, container_of(self._pod, container.name)
        try:
            env = environment(pod, spec, self._lookup)
            files = mounted_files(pod, spec, self._lookup, fixed=False)
            fixed = mounted_files(pod, spec, self._lookup, fixed=True)
        except MissingConfiguration as missing:
            self._warn(container, "Failed", f"Error: {missing}")
            container.wait("CreateContainerConfigError", str(missing))
            self._retries[container.name] = lambda: self._start(container)
            self._flush_soon()
            return
        if container.runs:
            container.restarts += 1
        self._sandbox.pod_ip = self._sandbox.pod_ip or self._new_ip()
        container.run(stamp())
        uid = pod["metadata"]["uid"]
        start = ContainerStart(uid, container.image, container.restarts, env, {**files, **fixed})
        self._behaviour.record_start(self._key(container.name), start)
        self._refreshable[container.name] = fixed
        self._report(container, "Started", f"Container {container.name} started")
        self._flush_soon()
        exits_at_once = self._plan_exit(container)
        if (not container.is_init or container.is_sidecar) and not exits_at_once:
            self._plan_readiness(container)
        if container.is_sidecar:
            self._start_next()

    def _plan_readiness(self, container: ContainerState) -> None:
        if not self._behaviour.becomes_ready(self._pod["metadata"]["name"], container.image):
            return
        seconds = self._behaviour.ready_seconds
        if seconds <= 0:
            container.ready = True
        else:
            self._timers.set(
                f"{container.name} ready", seconds, lambda: self._become_ready(container)
            )

    def _become_ready(self, container: ContainerState) -> None:
        container.ready = container.is_running
        self._flush_soon()

    # --- exits and termination ------------------------------------------------------------------

    def _plan_exit(self, container: ContainerState) -> bool:
        """Set the timer for an exit; return whether it exits at once and is never ready."""
        name = self._pod["metadata"]["name"]
        rule = self._behaviour.exit_of(name, container.name, container.image, container.runs - 1)
        if rule is not None:
            code = rule.code
            self._timers.set(
                container.name, rule.after_seconds, lambda: self._take_exit(container, code)
            )
            return rule.after_seconds <= 0
        if container.is_init and not container.is_sidecar:
            self._timers.set(
                container.name, self._behaviour.init_seconds, lambda: self._take_exit(container, 0)
            )
        return False

    def _take_exit(self, container: ContainerState, code: int) -> None:
        """Handle a container that exited by itself."""
        self._timers.cancel(f"{container.name} ready")
        container.end(code, stamp())
        self._flush_soon()
        if container.is_init and not container.is_sidecar and code == 0:
            self._start_next()
        elif restarts(self._pod, container, code):
            failures = self._failures[container.name] = self._failures.get(container.name, 0) + 1
            act = self._restart if failures == 1 else self._back_off
            self._later(container, self._behaviour.start_seconds, act)

    def _back_off(self, container: ContainerState) -> None:
        seconds = self._behaviour.backoff(self._failures[container.name] - 1)
        metadata = self._pod["metadata"]
        pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        text = f"back-off {seconds:g}s restarting failed container={container.name} pod={pod}"
        self._warn(container, "BackOff", f"Back-off restarting failed container {container.name}")
        container.restart(container.image)
        container.wait("CrashLoopBackOff", text)
        self._flush_soon()
        self._later(container, seconds, self._restart)

    def _restart(self, container: ContainerState) -> None:
        container.restart(container.image)
        self._start(container)

    def _replace_changed_images(self) -> bool:
        """Replace containers in place whose image has changed; return whether there is any."""
        replaced = False
        for container in self._containers:
            image = container_of(self._pod, container.name)["image"]
            if image == container.image or (container.is_init and not container.is_sidecar):
                continue
            self._retries.pop(container.name, None)
            self._failures.pop(container.name, None)
            self._timers.cancel(f"{container.name} ready")
            seconds = 0.0
            if container.is_running:
                text = f"Container {container.name} definition changed, will be restarted"
                self._report(container, "Killing", text)
                seconds = self._behaviour.stop_seconds
            self._later(container, seconds, self._replace)
            replaced = True
        return replaced

    def _replace(self, container: ContainerState) -> None:
        if container.is_running:
            container.end(0, stamp())
        container.restart(container_of(self._pod, container.name)["image"])
        container.wait("ContainerCreating")
        self._flush_soon()
        if container.runs or not any(
            other.is_init and not other.is_done for other in self._containers
        ):
            self._pull(container)

    def _stop(self) -> None:
        """Stop the containers of a deleted pod within the grace period."""
        grace = float(self._pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        running = any(container.is_running for container in self._containers)
        seconds = self._behaviour.stop_seconds if running else 0.0
        if not self._stopping:
            self._stopping = True
            self._timers.cancel_all()
            self._retries.clear()
            for container in self._containers:
                if container.is_running:
                    self._report(container, "Killing", f"Stopping container {container.name}")
        code = _KILLED if seconds > grace else 0
        self._timers.set(_POD, min(seconds, grace), lambda: self._take_stop(code))

    def _take_stop(self, code: int) -> None:
        self.close()
        for container in self._containers:
            if container.is_running:
                container.end(code, stamp())
        if not is_finished(self._pod):
            self._write(stopped_status(self._pod, self._sandbox, self._containers, stamp()))
        self._loop.call_soon(self._remove)

    def _remove(self) -> None:
        """Remove the pod from the registry."""
        stored = self._stored_pod()
        if stored is not None:
            uid = stored["metadata"]["uid"]
            self._registry.delete("pods", *key_of(stored), uid=uid, grace_seconds=0)

    # --- writing the status ---------------------------------------------------------------------

    def _flush_soon(self) -> None:
        """Write the status at the end of this turn of the loop."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._flushing = False
        if not self._closed and not self._stopping:
            self._flush()

    def _flush(self) -> None:
        pod = self._stored_pod()
        if pod is not None:
            self._write(pod_status(pod, self._sandbox, self._containers, stamp()))

    def _write(self, status: Json) -> None:
        pod = self._stored_pod()
        if pod is None or pod.get("status") == status:
            return
        body = {**pod, "status": status}
        self._pod = self._registry.update("pods", *key_of(pod), body, subresource="status")

    def _stored_pod(self) -> Json | None:
        """Return the pod as it is stored now, or None."""
        pod = self._registry.get("pods", *key_of(self._pod))
        uid = self._pod["metadata"]["uid"]
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def _key(self, container: str) -> ContainerKey:
        return *key_of(self._pod), container

    def _report(self, container: ContainerState, reason: str, text: str) -> None:
        self._record.normal(COMPONENT, self._pod, reason, text, container.field_path)

    def _warn(self, container: ContainerState, reason: str, text: str) -> None:
        self._record.warning(COMPONENT, self._pod, reason, text, container.field_path)


class Timers:
    """The timers of a pod."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call *act* in *seconds*; replaces the timer of that name."""
        self.cancel(name)

        def due() -> None:
            del self._handles[name]
            act()

        self._handles[name] = self._loop.call_later(seconds, due)

    def is_set(self, name: str) -> bool:
        """Return whether there is a timer of that name."""
        return name in self._handles

    def cancel(self, name: str) -> None:
        """Cancel the timer of that name, if there is one."""
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for name in list(self._handles):
            self.cancel(name)
