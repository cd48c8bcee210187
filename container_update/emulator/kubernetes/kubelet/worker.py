"""One pod's life on its node: volumes, init containers, containers, restarts, the end.

Every step is a timer on the event loop. What changed is written once per turn of the loop, so that
two containers that come up together are one event, as with a real kubelet.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.events import Recorder
from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour, ContainerStart
from container_update.emulator.kubernetes.kubelet.configuration import (
    MissingConfiguration,
    container_of,
    environment,
    mounted_files,
    volume_files,
)
from container_update.emulator.kubernetes.kubelet.status import (
    Run,
    Sandbox,
    evicted_status,
    pod_status,
    runs_of,
    stopped_status,
)
from container_update.emulator.kubernetes.kubelet.timers import Timers
from container_update.emulator.kubernetes.ownership import is_deleting
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.registry import Registry

COMPONENT = "kubelet"
_KILLED = 137
_POD, _VOLUMES = " pod", " volumes"
"""What timers and retries are for that are no container's, in names that no container has."""


@dataclass(frozen=True)
class Surroundings:
    """What all pods of the cluster share."""

    registry: Registry
    loop: asyncio.AbstractEventLoop
    behaviour: Behaviour
    record: Recorder
    new_ip: Callable[[], str]
    """Gives an unused address."""


class PodWorker:
    """Carries one pod from its binding to its end."""

    def __init__(self, pod: Json, around: Surroundings, host_ip: str) -> None:
        self._registry = around.registry
        self._loop = around.loop
        self._behaviour = around.behaviour
        self._record = around.record
        self._new_ip = around.new_ip
        self._pod = pod
        self._sandbox = Sandbox(host_ip, stamp(), generation=pod["metadata"]["generation"])
        self._runs = runs_of(pod)
        self._timers = Timers(around.loop)
        self._retries: dict[str, Callable[[], None]] = {}
        self._failures: dict[str, int] = {}
        self._refreshable: dict[str, dict[str, bytes]] = {}
        self._flushing = False
        self._stopping = False
        self._over = False

    # --- what the node tells it -----------------------------------------------------------------

    def begin(self) -> None:
        """Take the pod up."""
        if is_deleting(self._pod):
            self._stop()
        elif is_finished(self._pod):
            self._over = True
        else:
            if any(run.is_init for run in self._runs):
                for run in self._runs:
                    run.wait("PodInitializing")
            self._flush()
            self._mount()

    def changed(self, pod: Json) -> None:
        """The pod was written by somebody."""
        self._pod = pod
        if self._over:
            return
        if is_deleting(pod):
            self._stop()
        elif pod["metadata"]["generation"] != self._sandbox.generation:
            self._sandbox.generation = pod["metadata"]["generation"]
            if not self._take_new_images():
                self._dirty()

    def configuration_changed(self) -> None:
        """A ConfigMap or Secret of the namespace was written."""
        for name, retry in list(self._retries.items()):
            del self._retries[name]
            retry()
        if self._refreshable and not self._timers.is_set(_VOLUMES):
            self._timers.set(_VOLUMES, self._behaviour.volume_refresh_seconds, self._refresh)

    def evict(self, message: str) -> None:
        """The node runs short: end all containers for good."""
        if self._over or self._stopping:
            return
        self.close()
        for run in self._runs:
            if run.is_running:
                run.end(_KILLED, stamp())
        self._record.warning(COMPONENT, self._pod, "Evicted", message)
        self._write(evicted_status(self._pod, self._sandbox, self._runs, message, stamp()))

    def close(self) -> None:
        """Do nothing more."""
        self._over = True
        self._timers.cancel_all()
        self._retries.clear()

    # --- volumes --------------------------------------------------------------------------------

    def _mount(self) -> None:
        """Go on when everything that is mounted is there."""
        for volume in self._pod["spec"].get("volumes") or []:
            try:
                volume_files(self._pod, volume, self._registry.get)
            except MissingConfiguration as missing:
                text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {missing}'
                self._record.warning(COMPONENT, self._pod, "FailedMount", text)
                self._sandbox.volumes_ready = False
                self._retries[_VOLUMES] = self._mount
                self._dirty()
                return
        self._sandbox.volumes_ready = True
        self._start_next()

    def _refresh(self) -> None:
        """Bring mounted files up to date; what vanished meanwhile stays as it was."""
        for name, fixed in self._refreshable.items():
            try:
                container = container_of(self._pod, name)
                fresh = mounted_files(self._pod, container, self._registry.get, fixed=False)
            except MissingConfiguration:
                continue
            self._behaviour.note_files(self._place(name), {**fresh, **fixed})

    # --- starting -------------------------------------------------------------------------------

    def _start_next(self) -> None:
        """Start the init container whose turn it is, or all others."""
        for run in self._runs:
            if run.is_init and not run.is_done:
                if not run.runs:
                    self._pull(run)
                return
        for run in self._runs:
            if not run.is_init and not run.runs:
                run.wait("ContainerCreating")
                self._pull(run)

    def _pull(self, run: Run) -> None:
        self._timers.set(run.name, self._behaviour.pull_seconds, lambda: self._pulled(run))

    def _pulled(self, run: Run) -> None:
        tries = self._failures.get(run.name, 0)
        if not self._behaviour.pull_fails(run.image, tries):
            self._failures.pop(run.name, None)
            self._tell(run, "Pulled", f'Container image "{run.image}" is present')
            self._timers.set(run.name, self._behaviour.start_seconds, lambda: self._start(run))
            return
        self._failures[run.name] = tries + 1
        text = f'failed to pull image "{run.image}": not found'
        self._warn(run, "Failed", f'Failed to pull image "{run.image}": not found')
        run.wait("ErrImagePull", text)
        self._dirty()
        self._timers.set(run.name, self._behaviour.start_seconds, lambda: self._back_off_pull(run))

    def _back_off_pull(self, run: Run) -> None:
        text = f'Back-off pulling image "{run.image}"'
        self._warn(run, "BackOff", text)
        run.wait("ImagePullBackOff", text)
        self._dirty()
        seconds = self._behaviour.backoff(self._failures.get(run.name, 1))
        self._timers.set(run.name, seconds, lambda: self._pull(run))

    def _start(self, run: Run) -> None:
        container = container_of(self._pod, run.name)
        try:
            env = environment(self._pod, container, self._registry.get)
            files = mounted_files(self._pod, container, self._registry.get, fixed=False)
            fixed = mounted_files(self._pod, container, self._registry.get, fixed=True)
        except MissingConfiguration as missing:
            self._warn(run, "Failed", f"Error: {missing}")
            run.wait("CreateContainerConfigError", str(missing))
            self._retries[run.name] = lambda: self._start(run)
            self._dirty()
            return
        if run.runs:
            run.restarts += 1
        self._sandbox.pod_ip = self._sandbox.pod_ip or self._new_ip()
        run.run(stamp())
        uid = self._pod["metadata"]["uid"]
        start = ContainerStart(uid, run.image, run.restarts, env, {**files, **fixed})
        self._behaviour.note_start(self._place(run.name), start)
        self._refreshable[run.name] = fixed
        self._tell(run, "Started", f"Container {run.name} started")
        self._dirty()
        ends_at_once = self._plan_end(run)
        if (not run.is_init or run.is_sidecar) and not ends_at_once:
            self._plan_readiness(run)
        if run.is_sidecar:
            self._start_next()

    def _plan_readiness(self, run: Run) -> None:
        if not self._behaviour.becomes_ready(self._pod["metadata"]["name"], run.image):
            return
        seconds = self._behaviour.ready_seconds
        if seconds <= 0:
            run.ready = True
        else:
            self._timers.set(f"{run.name} ready", seconds, lambda: self._get_ready(run))

    def _get_ready(self, run: Run) -> None:
        run.ready = run.is_running
        self._dirty()

    # --- ending ---------------------------------------------------------------------------------

    def _plan_end(self, run: Run) -> bool:
        """Whether it ends before a kubelet looks at it again: nobody ever sees it ready."""
        name = self._pod["metadata"]["name"]
        rule = self._behaviour.exit_of(name, run.name, run.image, run.runs - 1)
        if rule is not None:
            code = rule.code
            self._timers.set(run.name, rule.after_seconds, lambda: self._end(run, code))
            return rule.after_seconds <= 0
        if run.is_init and not run.is_sidecar:
            self._timers.set(run.name, self._behaviour.init_seconds, lambda: self._end(run, 0))
        return False

    def _end(self, run: Run, code: int) -> None:
        """A container ended by itself."""
        self._timers.cancel(f"{run.name} ready")
        run.end(code, stamp())
        self._dirty()
        if run.is_init and not run.is_sidecar and code == 0:
            self._start_next()
        elif self._restarts(run, code):
            failures = self._failures[run.name] = self._failures.get(run.name, 0) + 1
            if failures == 1:
                self._timers.set(
                    run.name, self._behaviour.start_seconds, lambda: self._restart(run)
                )
            else:
                self._timers.set(
                    run.name, self._behaviour.start_seconds, lambda: self._back_off(run, failures)
                )

    def _restarts(self, run: Run, code: int) -> bool:
        """Whether the container is started again after it ended with *code*."""
        policy = self._pod["spec"].get("restartPolicy", "Always")
        if run.is_sidecar or (policy == "Always" and not run.is_init):
            return True
        return policy != "Never" and code != 0

    def _back_off(self, run: Run, failures: int) -> None:
        seconds = self._behaviour.backoff(failures - 1)
        metadata = self._pod["metadata"]
        pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        text = f"back-off {seconds:g}s restarting failed container={run.name} pod={pod}"
        self._warn(run, "BackOff", f"Back-off restarting failed container {run.name}")
        run.restart(run.image)
        run.wait("CrashLoopBackOff", text)
        self._dirty()
        self._timers.set(run.name, seconds, lambda: self._restart(run))

    def _restart(self, run: Run) -> None:
        run.restart(run.image)
        self._start(run)

    def _take_new_images(self) -> bool:
        """Replace containers whose image the pod's owner has changed, in place; whether any is."""
        replaced = False
        for run in self._runs:
            image = container_of(self._pod, run.name)["image"]
            if image == run.image or (run.is_init and not run.is_sidecar):
                continue
            self._retries.pop(run.name, None)
            self._failures.pop(run.name, None)
            self._timers.cancel(f"{run.name} ready")
            seconds = 0.0
            if run.is_running:
                text = f"Container {run.name} definition changed, will be restarted"
                self._tell(run, "Killing", text)
                seconds = self._behaviour.stop_seconds
            self._timers.set(run.name, seconds, functools.partial(self._replace, run))
            replaced = True
        return replaced

    def _replace(self, run: Run) -> None:
        if run.is_running:
            run.end(0, stamp())
        run.restart(container_of(self._pod, run.name)["image"])
        run.wait("ContainerCreating")
        self._dirty()
        if run.runs or not any(other.is_init and not other.is_done for other in self._runs):
            self._pull(run)

    def _stop(self) -> None:
        """The pod was deleted: stop within the grace period."""
        grace = float(self._pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        takes = self._behaviour.stop_seconds if self._any_running() else 0.0
        if not self._stopping:
            self._stopping = True
            self._timers.cancel_all()
            self._retries.clear()
            for run in self._runs:
                if run.is_running:
                    self._tell(run, "Killing", f"Stopping container {run.name}")
        self._timers.set(
            _POD, min(takes, grace), lambda: self._stopped(_KILLED if takes > grace else 0)
        )

    def _stopped(self, code: int) -> None:
        self.close()
        for run in self._runs:
            if run.is_running:
                run.end(code, stamp())
        if not is_finished(self._pod):
            self._write(stopped_status(self._pod, self._sandbox, self._runs, stamp()))
        self._loop.call_soon(self._remove)

    def _remove(self) -> None:
        """Tell the API server that nothing of the pod is left."""
        stored = self._stored()
        if stored is not None:
            metadata = stored["metadata"]
            self._registry.delete(
                "pods", metadata["namespace"], metadata["name"],
                uid=metadata["uid"], grace_seconds=0,
            )  # fmt: skip

    # --- writing and waiting --------------------------------------------------------------------

    def _dirty(self) -> None:
        """Write the status at the end of this turn of the loop."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._flushing = False
        if not self._over and not self._stopping:
            self._flush()

    def _flush(self) -> None:
        pod = self._stored()
        if pod is not None:
            self._write(pod_status(pod, self._sandbox, self._runs, stamp()))

    def _write(self, status: Json) -> None:
        pod = self._stored()
        if pod is None or pod.get("status") == status:
            return
        metadata = pod["metadata"]
        self._pod = self._registry.update(
            "pods", metadata["namespace"], metadata["name"], {**pod, "status": status},
            subresource="status",
        )  # fmt: skip

    def _stored(self) -> Json | None:
        """The pod as it is stored now; None where it is gone."""
        metadata = self._pod["metadata"]
        pod = self._registry.get("pods", metadata["namespace"], metadata["name"])
        return pod if pod is not None and pod["metadata"]["uid"] == metadata["uid"] else None

    def _any_running(self) -> bool:
        return any(run.is_running for run in self._runs)

    def _place(self, container: str) -> tuple[str, str, str]:
        metadata = self._pod["metadata"]
        return metadata["namespace"], metadata["name"], container

    def _tell(self, run: Run, reason: str, text: str) -> None:
        self._record.normal(COMPONENT, self._pod, reason, text, run.part)

    def _warn(self, run: Run, reason: str, text: str) -> None:
        self._record.warning(COMPONENT, self._pod, reason, text, run.part)
