# SPDX-License-Identifier: Apache-2.0
"""What became of a plan: the result of each step, and the pods that run now."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from container_update.model.objects import KEEP_ANNOTATION, ObjectKey
from container_update.model.plan import Plan, Step
from container_update.model.scripts import ScriptReport


class StepState(enum.Enum):
    """What became of a step."""

    DONE = "done"
    FAILED = "failed"
    HELD = "waits for a person"
    """The run has ended before it: a promotion lets the operation go on."""
    STOPPED = "stopped"
    """Its own object had no trouble: another step failed, or the operation was cancelled."""
    NOT_STARTED = "not started"
    UNDONE = "undone"
    UNDO_FAILED = "could not be undone"


class Reverted(enum.Enum):
    """What the undo of a step found."""

    RESTORED = "restored"
    DELETED = "deleted"
    """What the step had created."""
    UNCHANGED = "already as before"
    OF_OTHERS = "changed or deleted by another client since: left alone"
    """Nothing of the step is left in the object."""
    KEPT = f"stays: its annotation {KEEP_ANNOTATION} says so"
    """What was created is still there."""
    NOT_EMPTY = "stays: it is not empty"
    """A Namespace that was created, in which something is that does not go with the undo."""
    NOT_READY = "the pods in place of those that were replaced are not ready"
    """Of a workload that stays as it was: there is nothing else to be put back."""


_EXCEPTIONS = (Reverted.KEPT, Reverted.NOT_EMPTY, Reverted.NOT_READY)

CLAIM_STAYS = "stays, it holds data (uninstall --delete-data deletes it)"
"""Of a volume claim whose StatefulSet goes."""

_MOST_LINES, _LONGEST_LINE = 100, 500
"""Of what failing pods reported, where it is kept."""


@dataclass(frozen=True)
class Diagnosis:
    """What a failing pod reported, read before anything was undone.

    >>> Diagnosis(ObjectKey("", "Pod", "cnf", "web-1"), "web", "CrashLoopBackOff").reason
    'CrashLoopBackOff'
    """

    pod: ObjectKey
    container: str
    reason: str
    """'ImagePullBackOff', 'CrashLoopBackOff', ..."""
    events: tuple[str, ...] = ()
    """The newest warnings about the pod, the newest first, that say more than the message."""
    log: tuple[str, ...] = field(default=(), repr=False)
    """The last lines of the container's log; of the run that crashed, if it crashed. They are an
    application's and may be confidential: for the person who runs the operation, and for the
    Secret of its history; never for a log, a database or an answer of a service."""


@dataclass(frozen=True)
class StepResult:
    """What became of a step, in a sentence where there is something to say.

    >>> [result.step.key.name for result in outcome.results]  # doctest: +SKIP
    ['settings', 'web']
    """

    step: Step
    state: StepState
    message: str = ""
    seconds: float = 0.0
    """From its first request until it was done or failed."""
    diagnosis: Diagnosis | None = None
    """Of a step that failed, also when it has been undone; None where no pod has trouble."""
    reverted: Reverted | None = None
    """What its undo found; None where it was not undone."""
    left: tuple[ObjectKey, ...] = ()
    """What its undo has left: the volume claims of a StatefulSet."""
    script: ScriptReport | None = None
    """The report of the script that the step ran."""


@dataclass(frozen=True)
class Vnfc:
    """A pod of a VDU: what the host's vnfcResourceInfo records (SOL003, 5.5.3.5)."""

    vdu_id: str
    pod_name: str
    namespace: str
    workload_kind: str
    """The kind of the VDU's workload: 'Deployment', 'Pod', ..."""
    workload_name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    storages: Mapping[str, str] = field(default_factory=dict)
    """Name of each persistent volume to the id of its storage resource: a PersistentVolumeClaim."""
    incarnation: str = ""
    """Changes when the pod is created anew under its name, or one of its containers restarts."""


@dataclass(frozen=True)
class Outcome:
    """What became of an update.

    >>> outcome = update(request, cluster)  # doctest: +SKIP
    >>> for result in outcome.results:  # doctest: +SKIP
    ...     print(result.step.key, result.state.value)
    ConfigMap cnf/settings done
    Deployment cnf/web done
    """

    plan: Plan
    results: tuple[StepResult, ...] = ()
    vnfcs: tuple[Vnfc, ...] = ()
    """The live pods of every VDU of the VNFD, restarted or not; empty where the update failed."""
    restarted: Mapping[ObjectKey, tuple[str, ...]] = field(default_factory=dict)
    """The names of the pods that each restarted workload has now."""
    requests: int = 0
    """How many requests went to the API server."""
    seconds: float = 0.0
    revision: int | None = None
    """Its number in the history of the instance; None where it is not kept."""
    has_way_back: bool = False
    """The history has the objects before it too."""

    def of_state(self, state: StepState) -> tuple[StepResult, ...]:
        """Return the results with this state."""
        return tuple(result for result in self.results if result.state is state)

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """What the failing pods reported, as lines: of each its newest Events, then its log."""
        diagnoses = [result.diagnosis for result in self.results if result.diagnosis]
        return tuple(
            line[:_LONGEST_LINE]
            for each in dict.fromkeys(diagnoses)
            for line in (
                f"Pod {each.pod.name}, container {each.container}: {each.reason}",
                *(f"  Event: {event}" for event in each.events),
                *(f"  | {text}" for text in each.log),
            )
        )[:_MOST_LINES]

    @property
    def held(self) -> Step | None:
        """The step at which the operation waits for a person; None: it does not wait."""
        return next((result.step for result in self.of_state(StepState.HELD)), None)

    @property
    def left_to_others(self) -> tuple[ObjectKey, ...]:
        """The objects that an undo left alone because another client has changed them since."""
        return self._of_undo(Reverted.OF_OTHERS)

    @property
    def kept(self) -> tuple[ObjectKey, ...]:
        """What was created and an undo left: it is to be kept, or a Namespace that is not empty."""
        return (*self._of_undo(Reverted.KEPT), *self._of_undo(Reverted.NOT_EMPTY))

    @property
    def claims_left(self) -> tuple[ObjectKey, ...]:
        """The volume claims of what an undo has deleted: they stay, with their data."""
        return tuple(key for result in self.results for key in result.left)

    def _of_undo(self, found: Reverted) -> tuple[ObjectKey, ...]:
        keys = (result.step.key for result in self.results if result.reverted is found)
        return tuple(dict.fromkeys(keys))  # a plan may change an object several times

    @property
    def ending(self) -> str:
        """What became of what an operation that failed had begun, as a sentence without its end.

        >>> Outcome(Plan("cnf", None, ())).ending
        'Everything is as before (0 objects looked at)'
        """
        if could_not := self.of_state(StepState.UNDO_FAILED):
            objects = "; ".join(f"{result.step.key}: {result.message}" for result in could_not)
            return f"Not everything could be put back: {objects}"
        undone = self.of_state(StepState.UNDONE)
        if len(undone) + len(self.of_state(StepState.NOT_STARTED)) < len(self.results):
            return "Everything is left as it is"
        objects = f"{len(undone)} object{'' if len(undone) == 1 else 's'}"
        return f"Everything is as before ({objects} looked at{self.exceptions})"

    @property
    def exceptions(self) -> str:
        """What an undo left that was not there before, each part after a semicolon; mostly ''."""
        left = (
            (self.left_to_others, "left as another client changed it"),
            *((self._of_undo(how), how.value) for how in _EXCEPTIONS),
            (self.claims_left, CLAIM_STAYS),
        )
        return "".join(f"; {', '.join(map(str, keys))}: {why}" for keys, why in left if keys)


@dataclass(frozen=True)
class StepWait:
    """What a step that has begun waits for now.

    >>> def show(event: object) -> None:
    ...     if isinstance(event, StepWait):
    ...         print(f"{event.key}: {event.ready}/{event.desired}: {event.message}")
    >>> update(request, cluster, progress=show)  # doctest: +SKIP
    Deployment cnf/web: 1/2: 1 of 2 pods are updated: pod web-5c-x2 is not Ready
    """

    key: ObjectKey
    message: str
    """'7 of 12 pods are ready: pod web-5c-x2 is not Ready'."""
    ready: int = 0
    """New pods of its workload that are ready."""
    desired: int = 0
    """Pods that it should have; both are 0 where it waits for something else."""
    gives_up_in: float | None = None
    """Seconds until this state counts as a failure; None: it may well get better by itself."""
    trouble: str = ""
    """What a new pod has, in a word or two: 'ImagePullBackOff "upf:2"'; '' where none has any."""


@dataclass(frozen=True)
class UndoStarted:
    """The operation is being undone from now on: each of these steps gets another result.

    >>> UndoStarted("Deployment cnf/web failed: ErrImagePull", steps=()).cause
    'Deployment cnf/web failed: ErrImagePull'
    """

    cause: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class ResumeStarted:
    """An operation that was interrupted is being finished from now on.

    >>> ResumeStarted("operation ac70 was interrupted", steps=()).cause
    'operation ac70 was interrupted'
    """

    cause: str
    steps: tuple[Step, ...]


Event = Plan | Step | StepWait | StepResult | UndoStarted | ResumeStarted
"""A plan that was made; a step that begins, that waits for something else than before, that ended;
the begin of an undo, or of the end of an interrupted operation."""


Progress = Callable[[Event], object]
"""Called with each event when it happens; from several threads.

An exception of it is logged once, with its name, and the operation goes on. Only a
ContainerUpdateError at the plan, before anything is written, is raised: a caller that must store
the plan first refuses the operation so.
"""
