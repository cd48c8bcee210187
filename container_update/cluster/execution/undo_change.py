"""Taking back a change of the package: what was created goes, what was deleted comes again.

The order is what matters. Traffic goes back to the old pods before the new ones go; old pods that
are gone already come first, with the configuration they are to read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from container_update.cluster.execution.manifest import Objects
from container_update.cluster.execution.undo import Undo, Undone
from container_update.cluster.waiting import AbortedError
from container_update.model import context_threads
from container_update.model.objects import Json
from container_update.model.outcome import StepResult, StepState
from container_update.model.plan import Action, Stage, Step
from container_update.planning import step_edits
from container_update.workloads.pod_status import is_deleting

LOG = logging.getLogger(__name__)

_STILL_USED = "kept: traffic could not be put back from its pods"
_WAITING = "waits until its configuration is as before"

Round = tuple[Step, ...]


@dataclass(frozen=True)
class ChangeUndo(Undo):
    """The way back for the steps of whole objects; every step of the plan is one."""

    drain_seconds: float = 0.0
    """How long new pods stay after traffic was taken from them."""

    def run(self, steps: Sequence[Step], deadline: float) -> tuple[StepResult, ...]:
        """Put back every step, going on past one that fails unless another depends on it."""
        results: list[StepResult] = []
        for round_ in self._rounds(steps):
            refused = {step.place: why for step in round_ if (why := _obstacle(step, results))}
            results += [
                StepResult(step, StepState.UNDO_FAILED, refused[step.place])
                for step in round_
                if step.place in refused
            ]
            free = [step for step in round_ if step.place not in refused]
            if any(map(_is_new_workload, free)) and any(map(_took_traffic_back, results)):
                self._drain()
            with context_threads.pool(self.workers) as pool:
                results += pool.map(lambda step: self._undo(step, deadline), free)
        return tuple(results)

    def _drain(self) -> None:
        """Let the new pods answer what is still under way."""
        waiter = self.restarter.waiter
        deadline = waiter.clock() + self.drain_seconds
        try:
            while (left := deadline - waiter.clock()) > 0:
                waiter.pause(left)
        except AbortedError:
            LOG.warning("not waited for the new pods' last answers: the lock was lost")

    def _rounds(self, steps: Sequence[Step]) -> Iterator[Round]:
        """The steps in their order on the way back, those of a round at the same time."""
        held = _of(steps, lambda step: step.action is Action.HOLD)
        objects = _of(steps, lambda step: step.stage is Stage.OBJECTS and step not in held)
        workloads = _of(steps, lambda step: step.stage is Stage.WORKLOADS)
        switches = _of(steps, lambda step: step.stage is Stage.SWITCH)
        removed = _of(steps, lambda step: step.stage is Stage.REMOVE)
        things = _of(removed, lambda step: not step.key.is_workload)
        runners = _of(removed, lambda step: step.key.is_workload)
        if any(self.restarter.cluster.get(step.key) is None for step in runners):
            yield from (things, objects, runners, switches)
        else:
            yield from (switches, things, objects, runners)
        yield from (workloads, held)

    def _way_back(self, step: Step) -> Callable[[Step, float], Undone]:
        if step.action is Action.DELETE:
            return self._deleted
        if step.is_config:
            return self._config
        if step.action is Action.CREATE:
            return self._created
        if step.stage is Stage.WORKLOADS:
            return self._workload
        return self._replaced

    def _deleted(self, step: Step, deadline: float) -> Undone:
        assert step.before is not None, "only what was there is deleted"
        objects = Objects(self.restarter)
        uid = step.before["metadata"]["uid"]
        live = self.restarter.cluster.get(step.key)
        if live is not None and is_deleting(live) and step.key.is_workload:
            self.restarter.until_gone(step.key, uid, deadline)
            live = None
        if live is not None and live["metadata"]["uid"] == uid:
            return Undone.ALREADY_RIGHT
        if live is not None and not step_edits.is_restored(_as_whole(step), live):
            return Undone.THEIRS
        undone = Undone.ALREADY_RIGHT
        if live is None:
            body = step_edits.new_object(step.before, step.key.namespace, {})
            live = self.restarter.create(body, lambda _: True)
            undone = Undone.RESTORED
        if step.key.is_workload:
            self.restarter.waiter.informer.observe(live)
            objects.until_ready(step, deadline)
        return undone

    def _created(self, step: Step, deadline: float) -> Undone:
        live = self.restarter.cluster.get(step.key)
        if live is not None and not step_edits.is_ours(step, live):
            return Undone.THEIRS
        uid = live["metadata"]["uid"] if live is not None else ""
        if live is not None:
            self.restarter.cluster.delete(step.key, uid=uid)
        if step.key.is_workload and step.key.kind not in ("Job", "CronJob"):
            self.restarter.until_gone(step.key, uid, deadline)
        return Undone.ALREADY_RIGHT if live is None else Undone.RESTORED

    def _replaced(self, step: Step, deadline: float) -> Undone:
        live = self.restarter.cluster.get(step.key)
        if live is None:
            return Undone.THEIRS
        undone = Undone.ALREADY_RIGHT
        if not step_edits.is_restored(step, live):
            if not step_edits.is_ours(step, live):
                return Undone.THEIRS
            self.restarter.waiter.informer.observe(self._restore(step, live))
            undone = Undone.RESTORED
        if step.key.kind == "Service":
            self.restarter.until_served(step.key, frozenset(), deadline)
        return undone

    def _restore(self, step: Step, live: Json) -> Json:
        return self.restarter.write(step, live, step_edits.restored, step_edits.is_ours)


def _of(steps: Sequence[Step], belongs: Callable[[Step], bool]) -> Round:
    return tuple(step for step in reversed(steps) if belongs(step))


def _is_new_workload(step: Step) -> bool:
    return step.action is Action.CREATE and step.key.is_workload


def _took_traffic_back(result: StepResult) -> bool:
    return result.step.stage is Stage.SWITCH and result.message == Undone.RESTORED.value


def _obstacle(step: Step, results: Sequence[StepResult]) -> str:
    """Why the step cannot be taken back now, '' where it can."""
    failed = [result.step for result in results if result.state is StepState.UNDO_FAILED]
    is_new = _is_new_workload(step)
    if is_new and any(other.stage is Stage.SWITCH for other in failed):
        return _STILL_USED
    if step.digest is not None and not is_new and any(other.is_config for other in failed):
        return _WAITING  # its pods would start with what is still there of the change
    return ""


def _as_whole(step: Step) -> Step:
    """The deletion as a replacement that is to be restored, to compare what is there."""
    return Step(step.key, Action.REPLACE, step.before, content=step.before, whole=True)
