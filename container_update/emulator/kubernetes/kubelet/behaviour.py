# SPDX-License-Identifier: Apache-2.0
"""How the emulated nodes and controllers behave: delays and failures for tests and demos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Exit:
    """A rule for containers that exit by themselves. The first rule that matches is used."""

    pod: str = "*"
    """A pattern (fnmatch) for the pod's name, as are the next two."""
    container: str = "*"
    image: str = "*"
    code: int = 1
    """The exit code; 0 is success."""
    after_seconds: float = 0.0
    """How long the container runs before."""
    times: int | None = None
    """How many runs of each container exit; None: every run."""


@dataclass(frozen=True)
class ContainerStart:
    """What a container saw when it started."""

    pod_uid: str
    image: str
    restart_count: int
    env: Mapping[str, str]
    """Its environment, with ConfigMaps and Secrets resolved."""
    files: Mapping[str, bytes]
    """The content of the files in its volumes, by path."""


ContainerKey = tuple[str, str, str]
"""Namespace, pod and container."""


@dataclass
class Behaviour:
    """Delays and failures. The attributes may be set at any time and from any thread.

    A change has no effect on a delay that has started. All patterns are those of fnmatch.
    """

    start_seconds: float = 0.05
    """From a pulled image to a running container."""
    ready_seconds: float = 0.0
    """From running to ready."""
    stop_seconds: float = 0.05
    """From the signal to the exit of a container, which is killed after the grace period."""
    pull_seconds: float = 0.0
    init_seconds: float = 0.0
    """How long an init container runs."""
    backoff_seconds: float = 10.0
    """The first delay before a container is restarted or an image is pulled again; it doubles."""
    backoff_limit_seconds: float = 300.0
    volume_refresh_seconds: float = 60.0
    """From a change of a ConfigMap or Secret to the change of the files mounted from it."""
    definition_seconds: float = 0.3
    """From a new CustomResourceDefinition until its objects are served."""
    bad_images: list[str] = field(default_factory=lambda: ["*missing*"])
    """Patterns of images that cannot be pulled."""
    denied_images: list[str] = field(default_factory=list)
    """Patterns of images that the pull secrets do not give access to."""
    flaky_images: dict[str, int] = field(default_factory=dict)
    """How many pulls fail for each container before one succeeds, by pattern of the image."""
    exits: list[Exit] = field(default_factory=list)
    """Which containers exit by themselves; all others run until they are stopped."""
    never_ready: list[str] = field(default_factory=list)
    """Patterns of pod names or images whose containers run but never become ready."""
    logs: dict[str, str] = field(default_factory=dict)
    """What every run of a container writes to its log, by pattern of its image."""
    _starts: dict[ContainerKey, list[ContainerStart]] = field(default_factory=dict, repr=False)
    _files: dict[ContainerKey, Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    _evict: Callable[[str, str, str], None] | None = field(default=None, repr=False)
    _run_cronjob: Callable[[str, str], None] | None = field(default=None, repr=False)
    _crash: Callable[[str, str, int], None] | None = field(default=None, repr=False)

    def started(self, namespace: str, pod: str, container: str) -> list[ContainerStart]:
        """Return every start of the container, oldest first, for all pods of that name."""
        return list(self._starts.get((namespace, pod, container), ()))

    def files(self, namespace: str, pod: str, container: str) -> dict[str, bytes]:
        """Return the content of the files that the container sees now, by path.

        A mounted ConfigMap or Secret is refreshed after ``volume_refresh_seconds``, one mounted
        with a subPath never.
        """
        return dict(self._files.get((namespace, pod, container), {}))

    def evict_pod(
        self, namespace: str, name: str, message: str = "The node was low on resource: memory."
    ) -> None:
        """Evict a running pod because of its node's resources: phase Failed, reason Evicted.

        Returns before the pod is evicted. Does nothing without such a pod.
        """
        if self._evict is None:
            raise RuntimeError("no cluster runs with this behaviour: start one, then evict")
        self._evict(namespace, name, message)

    def let_crash(self, pattern: str) -> None:
        """Let containers end with exit code 1 as soon as they run: of images or pods like this."""
        self.exits += [Exit(image=pattern), Exit(pod=pattern)]

    def crash_pod(self, namespace: str, name: str, code: int = 1) -> None:
        """Let all running containers of a pod end now, with *code*; they restart as it says.

        Returns before they have ended. Does nothing without such a pod.
        """
        if self._crash is None:
            raise RuntimeError("no cluster runs with this behaviour: start one, then crash a pod")
        self._crash(namespace, name, code)

    def run_cronjob(self, namespace: str, name: str) -> None:
        """Let a CronJob create a Job, unless it is suspended. Returns before the Job exists."""
        if self._run_cronjob is None:
            raise RuntimeError("no cluster runs with this behaviour: start one, then run a CronJob")
        self._run_cronjob(namespace, name)

    def pull_fails(self, image: str, tries: int) -> bool:
        """Return whether a container's pull of *image* fails, after so many *tries* before."""
        if any(fnmatchcase(image, each) for each in (*self.bad_images, *self.denied_images)):
            return True
        return any(
            fnmatchcase(image, pattern) and tries < failures
            for pattern, failures in self.flaky_images.items()
        )

    def is_denied(self, image: str) -> bool:
        """Return whether a pull fails for want of access."""
        return any(fnmatchcase(image, pattern) for pattern in self.denied_images)

    def becomes_ready(self, pod: str, image: str) -> bool:
        """Return whether a container ever becomes ready."""
        return not any(
            fnmatchcase(pod, pattern) or fnmatchcase(image, pattern) for pattern in self.never_ready
        )

    def log_of(self, image: str, exit_code: int) -> str:
        """Return what a run of a container has written."""
        for pattern, text in self.logs.items():
            if fnmatchcase(image, pattern):
                return text
        last = f"fatal: {image} cannot go on, exit code {exit_code}\n" if exit_code else ""
        return f"{image} is starting\n{last}"

    def exit_of(self, pod: str, container: str, image: str, runs: int) -> Exit | None:
        """Return the rule for a container that has run *runs* times before, or None."""
        for rule in self.exits:
            if (
                fnmatchcase(pod, rule.pod)
                and fnmatchcase(container, rule.container)
                and fnmatchcase(image, rule.image)
                and (rule.times is None or runs < rule.times)
            ):
                return rule
        return None

    def backoff(self, failures: int) -> float:
        """Return the delay in seconds after so many consecutive failures."""
        return min(self.backoff_limit_seconds, self.backoff_seconds * 2.0 ** max(0, failures - 1))

    def record_start(self, key: ContainerKey, start: ContainerStart) -> None:
        """Record that a container was started."""
        self._starts.setdefault(key, []).append(start)
        self._files[key] = start.files

    def record_files(self, key: ContainerKey, files: Mapping[str, bytes]) -> None:
        """Record the changed files of a running container."""
        self._files[key] = files

    def connect(
        self,
        *,
        evict: Callable[[str, str, str], None] | None,
        run_cronjob: Callable[[str, str], None] | None,
        crash: Callable[[str, str, int], None] | None,
    ) -> None:
        """Set what the methods of the same names call, from any thread."""
        self._evict, self._run_cronjob, self._crash = evict, run_cronjob, crash
