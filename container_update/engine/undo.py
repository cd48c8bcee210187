# SPDX-License-Identifier: Apache-2.0
"""Undoes a plan: reverts its steps in the order that keeps traffic and configuration right.

Traffic returns to the old pods before the new ones are deleted, and configuration is restored
before the workloads that read it as they start. Old pods that are gone already are created first of
all, with their configuration. What was created goes last, when nothing uses it any more; but first
of all goes what may refuse the other writes, quotas and admission webhooks, and the configuration
without which the old pods start too. What a controller has to let go (by its finalizers) goes
before the workloads that were created, of which the controller may be one. A quota that allows more
now gets its old limits when the pods are back, which may need the room. Every object is read again,
so that reverting what was never done, or twice, is safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby

from container_update.cluster.waiting import AbortedError, NotReadyError
from container_update.engine.context import ExecutionContext, StepExecutor
from container_update.engine.executors.table import executor_of
from container_update.engine.writer import ChangedByAnotherError, OverwrittenError
from container_update.model import context_threads
from container_update.model.errors import ClusterError, LeaseLostError
from container_update.model.objects import DEFINITION, Json, ObjectKey
from container_update.model.outcome import Diagnosis, Reverted, StepResult, StepState
from container_update.model.plan import Action, Step
from container_update.model.reporter import REPORTED
from container_update.planning import order
from container_update.planning.configuration import starts_without
from container_update.planning.steps import ObjectStep, WorkloadStep
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.registry import is_workload

LOG = logging.getLogger(__name__)

_WAITING = "waits until its configuration is as before"
_STILL_USED = "kept: it serves in place of the old pods, which are not back"
_NAME_TAKEN = "waits until the new pods, which serve, are handed back"

_ATTEMPTS = 3
_PAUSE = 0.2
"""Seconds between two attempts at a step, where the API server refused."""


@dataclass(frozen=True)
class Undo:
    """The way back for the steps of one plan."""

    context: ExecutionContext
    workers: int
    drain_seconds: float
    """How long new pods stay after traffic was taken from them."""
    report: Callable[[StepResult], object] = lambda _: None
    """Called with the result of each step."""
    diagnose: Callable[[ObjectStep, Exception], Diagnosis | None] = lambda *_: None
    """Returns what the failing pod of a step reports."""

    def run(self, steps: Sequence[ObjectStep], deadline: float) -> tuple[StepResult, ...]:
        """Revert every step, going on past one that fails unless another depends on it.

        :param steps: those that were begun, in the order of the plan.
        :param deadline: by the waiter's clock, for all of them together.
        """
        results: list[StepResult] = []
        for round_ in self._rounds(steps):
            obstacles = [(step, _obstacle(step, results)) for step in round_]
            free = [step for step, obstacle in obstacles if not obstacle]
            blocked = [
                StepResult(step, StepState.UNDO_FAILED, text) for step, text in obstacles if text
            ]
            for result in blocked:
                self.report(result)
            results += blocked
            took_traffic_back = any(
                result.step.is_switch and result.reverted is Reverted.RESTORED for result in results
            )
            if took_traffic_back and any(map(_is_new_workload, free)):
                self._drain()
            until = self._until(free, deadline)
            with context_threads.pool(self.workers) as pool:
                results += pool.map(partial(self._revert, deadline=until), free)
        return tuple(results)

    def _rounds(self, steps: Sequence[ObjectStep]) -> Iterator[list[ObjectStep]]:
        """Yield the steps in their order on the way back, those of a round at the same time."""
        created = [s for s in steps if s.action is Action.CREATE and not s.starts_pods]
        optional = starts_without({s.key: s.before for s in steps if s.before is not None})
        # it may refuse the writes that follow, or be read by the old pods when they start again
        first = [s for s in created if order.hinders(s.key) or s.key in optional]
        yield first
        steps = _without(steps, created)
        handed = [step for step in steps if step.action is Action.HAND_OVER]
        yield handed  # the removed Deployments have their names again
        held = [step for step in reversed(steps) if step.action is Action.HOLD]
        limits = [step for step in reversed(steps) if order.lifts_a_limit(step)]
        back = _without(reversed(steps), handed, held, limits)
        switches = [step for step in back if step.is_switch]
        removed = [step for step in back if step.is_removal]
        workloads = [step for step in _without(back, switches) if step.starts_pods]
        objects = _without(back, switches, removed, workloads)
        definitions = [s for s in objects if (s.key.group, s.key.kind) == DEFINITION]
        yield definitions  # their objects are restored in the versions that these serve
        objects = _without(objects, definitions)
        removed_objects = [step for step in removed if not is_workload(step.key)]
        removed_workloads = [step for step in removed if is_workload(step.key)]
        if any(self._is_gone(step.key) for step in removed_workloads):
            # no pod is there to take the traffic back before these are Ready, with what they read
            yield from (*_together(removed_objects), objects, removed_workloads, switches)
        else:  # the old pods can serve at once, and the new ones are perhaps the fault
            yield from (switches, *_together(removed_objects), objects, removed_workloads)
        waiting = list(filter(self._has_finalizers, _without(created, first)))
        made = [step for step in workloads if waiting and step.action is Action.CREATE]
        yield from _together(_without(workloads, made))
        yield waiting  # for a controller that may be one of those that are deleted next
        yield from _together(made)
        # limits: the pods are back. Holds: a Service's own selector takes in the new pods too,
        # which are gone by now
        yield [*limits, *held]
        yield from _together(_without(reversed(created), first, waiting))

    def _is_gone(self, key: ObjectKey) -> bool:
        """Tell whether an old workload has to be created again, as where it cannot be read."""
        live = self._read(key)
        return live is None or is_deleting(live)

    def _until(self, steps: Sequence[ObjectStep], deadline: float) -> float:
        """Return until when to wait: half of the time is left to what follows objects that are
        deleted when a controller lets them go, which may be what has failed."""
        now = self.context.rollout.waiter.clock()
        waits = any(
            order.rank(s.key) == order.REST
            if s.action is Action.CREATE
            else s.is_removal and order.has_finalizers(s.old)
            for s in steps
        )
        return (now + deadline) / 2 if waits and now < deadline else deadline

    def _has_finalizers(self, step: ObjectStep) -> bool:
        """Tell whether a created object has a finalizer, which its controller has to remove."""
        live = self._read(step.key) if order.rank(step.key) == order.REST else None
        return live is not None and order.has_finalizers(live)

    def _read(self, key: ObjectKey) -> Json | None:
        try:
            return self.context.writer.cluster.get(key)
        except ClusterError as error:
            LOG.warning("%s cannot be read: %s", key, error)
            return None

    def _drain(self) -> None:
        try:
            self.context.rollout.waiter.sleep(self.drain_seconds)
        except AbortedError:
            LOG.warning("the new pods are not drained: the lease was lost")

    def _revert(self, step: ObjectStep, deadline: float) -> StepResult:
        clock = self.context.rollout.waiter.clock
        began, reverted, diagnosis = clock(), None, None
        try:
            reverted = self._insist(step, deadline)
            state, message = StepState.UNDONE, reverted.value
        except OverwrittenError as error:
            LOG.warning("%s was put back: %s", step.key, error)
            reverted = Reverted.OF_OTHERS
            state, message = StepState.UNDONE, reverted.value
        except (ClusterError, ChangedByAnotherError, NotReadyError) as error:
            LOG.error("%s could not be put back: %s", step.key, error, extra=REPORTED)
            state, message = StepState.UNDO_FAILED, str(error)
            diagnosis = self.diagnose(step, error)
        except (AbortedError, LeaseLostError):
            state, message = StepState.UNDO_FAILED, "the lease was lost"
        left = self.context.left.get(step.key, ())
        result = StepResult(step, state, message, clock() - began, diagnosis, reverted, left=left)
        self.report(result)
        return result

    def _insist(self, step: ObjectStep, deadline: float) -> Reverted:
        """Revert a step; where the server refuses, read the object again and retry."""
        waiter = self.context.rollout.waiter
        if waiter.aborted.is_set():
            raise AbortedError
        executor: StepExecutor[ObjectStep] = executor_of(step, self.context)
        for _ in range(_ATTEMPTS - 1):
            try:
                return executor.revert(step, deadline)
            except ClusterError as error:
                LOG.info("%s: %s; trying again", step.key, error)
                waiter.pause(_PAUSE)
        return executor.revert(step, deadline)


def _without(steps: Iterable[ObjectStep], *others: Iterable[ObjectStep]) -> list[ObjectStep]:
    """Return the steps without those of others; they have large bodies, so none are compared."""
    left_out = {id(step) for step in chain(*others)}
    return [step for step in steps if id(step) not in left_out]


def _together(steps: Iterable[ObjectStep]) -> Iterator[list[ObjectStep]]:
    """Yield the steps of each group of the plan, in the order given."""
    for _, group in groupby(steps, key=lambda step: step.group):
        yield list(group)


def _is_new_workload(step: ObjectStep) -> bool:
    return step.action is Action.CREATE and step.starts_pods


def _obstacle(step: ObjectStep, results: Sequence[StepResult]) -> str:
    """Return why the step cannot be reverted now, '' where it can."""
    failed = [result.step for result in results if result.state is StepState.UNDO_FAILED]
    if any(other.action is Action.HAND_OVER for other in failed):
        return _NAME_TAKEN
    is_waited_for = any(other.is_config for other in failed)
    if _is_new_workload(step):
        waits = (other for other in failed if is_waited_for and _comes_back(other))
        return _STILL_USED if any(waits) or any(other.is_switch for other in failed) else ""
    reads_config = isinstance(step, WorkloadStep) and step.digest is not None
    return _WAITING if is_waited_for and (reads_config or _comes_back(step)) else ""


def _comes_back(step: Step) -> bool:
    """Tell whether the undo starts old pods again, with the configuration that is live then."""
    return is_workload(step.key) and (step.is_removal or step.action is Action.SCALE)
