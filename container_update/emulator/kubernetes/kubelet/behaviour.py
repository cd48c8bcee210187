"""How the emulated nodes behave: the delays and failures that a test or a demo asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Exit:
    """Containers that end by themselves. The first rule that fits a container holds."""

    pod: str = "*"
    """A pattern for the pod's name (fnmatch, as in all of these)."""
    container: str = "*"
    image: str = "*"
    code: int = 1
    """The exit code; 0 is success."""
    after_seconds: float = 0.0
    """How long the container runs first."""
    times: int | None = None
    """Only the first so many runs of each container end; None: every run."""


@dataclass(frozen=True)
class ContainerStart:
    """What a container saw when it was started."""

    pod_uid: str
    image: str
    restart_count: int
    env: Mapping[str, str]
    """Its environment, ConfigMaps and Secrets resolved."""
    files: Mapping[str, bytes]
    """Path to content of every file that its volumes held."""


Place = tuple[str, str, str]
"""Namespace, pod and container."""


@dataclass
class Behaviour:
    """Set the attributes at any time, from any thread: they are read when they are needed.

    A change has no effect on what is under way, as with a real node.
    """

    start_seconds: float = 0.05
    """From a pulled image to a running container."""
    ready_seconds: float = 0.0
    """From running to ready."""
    stop_seconds: float = 0.05
    """From the signal to the end of a container; a longer one is killed after the grace period."""
    pull_seconds: float = 0.0
    init_seconds: float = 0.0
    """How long an init container runs."""
    backoff_seconds: float = 10.0
    """The first wait before a container is restarted or an image is pulled again; doubles."""
    backoff_limit_seconds: float = 300.0
    volume_refresh_seconds: float = 60.0
    """From a change of a ConfigMap or Secret to the change of the files mounted from it."""
    bad_images: list[str] = field(default_factory=lambda: ["*missing*"])
    """Patterns of images that cannot be pulled."""
    flaky_images: dict[str, int] = field(default_factory=dict)
    """Pattern of an image to how many pulls for each container fail before one succeeds."""
    exits: list[Exit] = field(default_factory=list)
    """Which containers end by themselves; all others run for ever. With a restart policy this is
    a crash loop, for the pods of a Job it is how they come to their end."""
    never_ready: list[str] = field(default_factory=list)
    """Patterns of pod names or images: these containers run and never become ready."""
    _starts: dict[Place, list[ContainerStart]] = field(default_factory=dict, repr=False)
    _files: dict[Place, Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    _evict: Callable[[str, str, str], None] | None = field(default=None, repr=False)
    _run_cronjob: Callable[[str, str], None] | None = field(default=None, repr=False)

    def started(self, namespace: str, pod: str, container: str) -> list[ContainerStart]:
        """Every start of the container, oldest first; pods of one name after each other count."""
        return list(self._starts.get((namespace, pod, container), ()))

    def files(self, namespace: str, pod: str, container: str) -> dict[str, bytes]:
        """The files that the container sees now: those of a volume follow their ConfigMap or
        Secret after ``volume_refresh_seconds``, those mounted with a subPath never do."""
        return dict(self._files.get((namespace, pod, container), {}))

    def evict_pod(
        self, namespace: str, name: str, message: str = "The node was low on resource: memory."
    ) -> None:
        """Let the pod's node run short and evict it: phase Failed, reason Evicted. Takes effect
        soon; a pod that is not there or has ended is left alone."""
        if self._evict is None:
            raise RuntimeError("no cluster runs with this behaviour: start one, then evict")
        self._evict(namespace, name, message)

    def run_cronjob(self, namespace: str, name: str) -> None:
        """Let the hour of a CronJob strike: it makes a Job. Takes effect soon; one that is not
        there or is suspended makes none."""
        if self._run_cronjob is None:
            raise RuntimeError("no cluster runs with this behaviour: start one, then run a CronJob")
        self._run_cronjob(namespace, name)

    # --- what the kubelet asks and notes --------------------------------------------------------

    def pull_fails(self, image: str, tries: int) -> bool:
        """Whether a container's pull of *image* fails after *tries* before it."""
        if any(fnmatchcase(image, pattern) for pattern in self.bad_images):
            return True
        return any(
            fnmatchcase(image, pattern) and tries < failures
            for pattern, failures in self.flaky_images.items()
        )

    def becomes_ready(self, pod: str, image: str) -> bool:
        """Whether a container ever gets ready."""
        return not any(
            fnmatchcase(pod, pattern) or fnmatchcase(image, pattern) for pattern in self.never_ready
        )

    def exit_of(self, pod: str, container: str, image: str, runs: int) -> Exit | None:
        """The rule by which a container ends that has run *runs* times before."""
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
        """How long to wait after so many failures in a row."""
        return min(self.backoff_limit_seconds, self.backoff_seconds * 2.0 ** max(0, failures - 1))

    def note_start(self, place: Place, start: ContainerStart) -> None:
        """A container was started."""
        self._starts.setdefault(place, []).append(start)
        self._files[place] = start.files

    def note_files(self, place: Place, files: Mapping[str, bytes]) -> None:
        """The files of a running container changed."""
        self._files[place] = files

    def obey(
        self,
        *,
        evict: Callable[[str, str, str], None] | None,
        run_cronjob: Callable[[str, str], None] | None,
    ) -> None:
        """From now on these do what is asked for; they may be called from any thread."""
        self._evict, self._run_cronjob = evict, run_cronjob
