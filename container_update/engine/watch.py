# SPDX-License-Identifier: Apache-2.0
"""Follows an operation that another process carries out, by its journal and by what is live.

It only reads. What the journal does not say is judged by the objects: a step is done when its
object is as the step wants it and its pods are ready. Why a step failed is known to the process
that runs it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from container_update.cluster.informer import Informer
from container_update.cluster.lease import utc_now
from container_update.cluster.operation import Operation
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import scope_of
from container_update.cluster.waiting import Clock, Waiter
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.engine.cluster_view import ClusterView
from container_update.engine.rollout import followed, step_wait
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import NextStep, UpdateInterruptedError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress, StepResult, StepState, UndoStarted
from container_update.model.plan import Place, Step
from container_update.planning.steps import ObjectStep
from container_update.planning.steps.judgement import applied, restored
from container_update.planning.update import collections, traffic
from container_update.workloads.readiness import DONE, Readiness, RolloutState

_PACE = 1.0
"""Seconds between two looks."""


def attach(
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Watch | None:
    """Return the operation that is under way, to be followed; None where there is none.

    :raises PlanError: there is no such namespace.
    """
    retrying = RetryingReader(cluster, options.retry_seconds)
    operation = ClusterView(retrying, namespace, instance_id, options)
    record = operation.journal.read()
    if record is None:
        refuse_if_known_missing(namespace, retrying)
        return None
    return Watch(operation, record)


@dataclass
class Watch:
    """One operation, seen from outside."""

    operation: ClusterView
    record: Operation
    clock: Clock = time.monotonic
    pace: float = _PACE
    _progress: Progress = field(default=lambda _: None, init=False)
    _phase: Phase = field(default=Phase.UPDATE, init=False)
    _ended: int = field(default=0, init=False)
    """How many groups of steps have ended, where they are counted."""
    _begun: dict[Place, float] = field(default_factory=dict, init=False)
    _waits: dict[Place, Readiness] = field(default_factory=dict, init=False)
    _results: dict[Place, StepResult] = field(default_factory=dict, init=False)
    _trouble: str = field(default="", init=False)
    """The last trouble of a pod that was seen."""

    def follow(self, progress: Progress) -> Outcome:
        """Report what the operation does until it has ended.

        :param progress: called as by the operation itself.
        :returns: what became of it: all of its steps are done, or all that were begun are undone.
        :raises UpdateInterruptedError: no process carries it out any more.
        :raises ClusterError: the account may not read what is needed.
        """
        self._progress = progress
        keys = [step.key for step in self.record.object_steps]
        cluster, options = self.operation.cluster, self.operation.options
        scope, seconds = scope_of(self.record.object_steps), options.watch_seconds
        with Informer(cluster, scope, watch_seconds=seconds) as self._informer:
            self._listed = collections(keys) | traffic(keys)
            self._informer.list(self._listed)
            progress(self.operation.plan_of(self.record))
            self._informer.watch(followed(keys))
            waiter = Waiter(self._informer, options.grace_period, self.clock)
            while (phase := self._read_phase()) is not None:
                if phase is Phase.UNDO and self._phase is not phase:
                    self._turn_back()
                self._look()
                waiter.sleep(self.pace)
            return self._end()

    def _read_phase(self) -> Phase | None:
        """Return which way it goes; None where it has ended.

        :raises UpdateInterruptedError: no process holds its lease.
        """
        journal = self.operation.journal
        holder, progress = self.operation.holder(), journal.progress_of(self.record.operation)
        phase, self._ended = progress or (None, self._ended)
        if phase is None or (holder is not None and holder.seems_alive(utc_now())):
            return phase
        why, step = "waits for a person", NextStep.PROMOTE_OR_ABORT
        if not self.operation.status().is_held:
            way = self.record.progress if phase is self.record.phase else "being undone"
            lease = "has expired" if holder else "is gone"
            why = f"of {self.record.host}, {way}, was interrupted: its lease {lease}"
            step = NextStep.RESUME_OR_ROLLBACK
        outcome = self._outcome(StepState.STOPPED)
        text = f"operation {self.record.operation} {why}"
        raise UpdateInterruptedError(outcome, text, next_step=step)

    def _look(self) -> None:
        """Report what has changed since the last look."""
        for step in self.record.steps:
            if step.place not in self._results:
                readiness = self._judge(step, self._phase)
                if readiness is not None:
                    self._take(step, readiness)

    def _judge(self, step: Step, phase: Phase) -> Readiness | None:
        """Return how far a step is, or its undo; None where it has not begun."""
        if not isinstance(step, ObjectStep):
            return self._judge_by_journal(step, phase)
        if self._ended > step.group and phase is Phase.UPDATE:
            return DONE
        live, pods = self._live(step.key)
        if phase is Phase.UNDO:
            return restored(step, live, pods)
        return applied(step, live, pods, self.record.pods_before.get(step.key, frozenset()))

    def _judge_by_journal(self, step: Step, phase: Phase) -> Readiness | None:
        """Return how far a step is that leaves nothing in the cluster."""
        if phase is Phase.UNDO or self._ended > step.group:
            return DONE
        before = (each for each in self.record.steps if each.group < step.group)
        runs = all(each.place in self._results for each in before)
        return Readiness(RolloutState.PROGRESSING, f"{step.key} runs") if runs else None

    def _live(self, key: ObjectKey) -> tuple[Json | None, Sequence[Json]]:
        if Collection.of(key) not in followed([key]):
            return self.operation.cluster.get(key), ()
        live = self._informer.get(key)
        return live, self._informer.pods_of(live) if live is not None else ()

    def _take(self, step: Step, readiness: Readiness) -> None:
        """Report a step that has begun, waits for something else than before, or has ended."""
        if step.place not in self._begun:
            self._begun[step.place] = self.clock()
            if self._phase is Phase.UPDATE:
                self._progress(step)
        if readiness.state is RolloutState.DONE:
            is_undo = self._phase is Phase.UNDO
            self._report(step, StepState.UNDONE if is_undo else StepState.DONE)
        elif readiness != self._waits.get(step.place):
            self._waits[step.place] = readiness
            if readiness.state in {RolloutState.FAILING, RolloutState.FAILED}:
                self._trouble = f"{step.key}: {readiness.message}"
            self._progress(step_wait(self._informer, step.key, readiness))

    def _report(self, step: Step, state: StepState) -> None:
        now = self.clock()
        result = StepResult(step, state, seconds=now - self._begun.get(step.place, now))
        self._results[step.place] = result
        self._progress(result)

    def _turn_back(self) -> None:
        """Report that the operation is being undone, with the steps that have to be."""
        self._phase = Phase.UNDO
        steps = self.record.steps
        if self.record.phase is Phase.UPDATE:  # else it is not known which were begun
            steps = tuple(
                step
                for step in steps
                if step.place in self._begun or self._judge(step, Phase.UNDO) is None
            )
        cause = self._trouble or "the process that runs it knows why"
        self._progress(UndoStarted(cause, steps))
        self._begun = dict.fromkeys((step.place for step in steps), self.clock())
        self._waits.clear()
        skipped = [step for step in self.record.steps if step.place not in self._begun]
        self._results = {s.place: StepResult(s, StepState.NOT_STARTED) for s in skipped}

    def _end(self) -> Outcome:
        """Report the rest of an operation whose journal is gone: finished, or undone."""
        if self._phase is Phase.UPDATE and self._is_undone():
            self._turn_back()
        state = StepState.DONE if self._phase is Phase.UPDATE else StepState.UNDONE
        for step in self.record.steps:
            if step.place not in self._results:
                self._report(step, state)
        return self._outcome(state)

    def _is_undone(self) -> bool:
        """Tell whether it was undone between two looks: a finished one has left traces."""
        self._informer.list(self._listed)
        done, undone = (
            any(self._judge(step, phase) is not None for step in self.record.steps)
            for phase in (Phase.UPDATE, Phase.UNDO)
        )
        return undone and not done

    def _outcome(self, rest: StepState) -> Outcome:
        """Return what became of each step.

        :param rest: the state of a step that has begun and of which nothing else is known.
        """
        results = tuple(
            self._results.get(
                step.place,
                StepResult(step, rest if step.place in self._begun else StepState.NOT_STARTED),
            )
            for step in self.record.steps
        )
        took = utc_now() - datetime.fromisoformat(self.record.started)
        plan = self.operation.plan_of(self.record)
        return Outcome(plan, results, seconds=max(0.0, took.total_seconds()))
