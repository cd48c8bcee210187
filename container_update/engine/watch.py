# SPDX-License-Identifier: Apache-2.0
"""Follows an operation that another process carries out, by what that one notes of it.

It only reads: the notes while the operation runs, its history once it has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from container_update.cluster.history import History
from container_update.cluster.lease import Holder, lease_key, utc_now
from container_update.cluster.operation import Operation, Result, Revision
from container_update.cluster.retry import RetryingReader
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.engine.cluster_view import ClusterView
from container_update.engine.notes import BEGUN, LETTERS, NOT_BEGUN, Noted
from container_update.model.cluster import ReadOnlyCluster, if_allowed
from container_update.model.errors import NextStep, PlanError, UpdateInterruptedError
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import (
    Outcome,
    Progress,
    StepResult,
    StepState,
    StepWait,
    UndoStarted,
)
from container_update.model.plan import UNINSTALL

_PACE = 1.0
"""Seconds between two looks."""
_WITHOUT_HISTORY = ("", UNINSTALL)
"""Kinds of operations that no history keeps: their last notes count."""
_NOT_KNOWN = "its result is unknown: the history does not have it"


def attach(
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Watch | None:
    """Return the operation that is under way, to be followed; None where there is none."""
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
    pause: Callable[[float], object] = time.sleep
    _progress: Progress = field(default=lambda _: None, init=False)
    _noted: Noted = field(init=False)
    _phase: Phase = field(default=Phase.UPDATE, init=False)
    """As its journal had it last."""

    def __post_init__(self) -> None:
        self._noted = Noted(NOT_BEGUN * len(self.record.steps))

    def follow(self, progress: Progress) -> Outcome:
        """Report what the operation does until it has ended.

        :param progress: called as by the operation itself, some seconds later.
        :returns: its outcome: all of its steps are done, or all that were begun are undone.
        :raises UpdateInterruptedError: no process carries it out any more.
        :raises ClusterError: the account may not read the objects.
        """
        self._progress = progress
        progress(self.operation.plan_of(self.record))
        while self._is_under_way():
            self.pause(_PACE)
        return self._end()

    def _is_under_way(self) -> bool:
        """Report the notes since the last look; return whether the operation goes on."""
        view = self.operation
        lease = view.cluster.get(lease_key(view.namespace, view.instance_id))
        if lease is not None and (noted := Noted.of(lease, self.record)) is not None:
            self._take(noted)
        if (phase := view.journal.phase_of(self.record.operation)) is None:
            return False
        self._phase = phase
        holder = Holder.of(lease) if lease is not None else None
        if holder is not None and holder.seems_alive(utc_now()):
            return True
        why, step = "waits for a person", NextStep.PROMOTE_OR_ABORT
        if not view.status().is_held:
            way = self.record.progress() if phase is self.record.phase else "being undone"
            ended = "has expired" if holder and holder.identity else "is gone"
            why = f"of {self.record.host}, {way}, was interrupted: its lease {ended}"
            step = NextStep.RESUME_OR_ROLLBACK
        outcome = self._outcome(StepState.STOPPED)
        text = f"operation {self.record.operation} {why}"
        raise UpdateInterruptedError(outcome, text, next_step=step)

    def _take(self, noted: Noted) -> None:
        """Report the new notes."""
        if noted.undo is not None and self._noted.undo is None:
            self._turn_back(noted)
        before, self._noted = self._noted, noted
        for number, step in enumerate(self.record.steps):
            state, was = noted.states[number], before.states[number]
            result, wait = noted.result(number, step), noted.waits.get(number)
            if was == NOT_BEGUN and state != NOT_BEGUN and noted.undo is None:
                self._progress(step)
            if result is not None and state != was:
                self._progress(result)
            elif result is None and wait is not None and wait != before.waits.get(number):
                message, ready, desired, trouble = wait
                self._progress(StepWait(step.key, message, ready, desired, None, trouble))

    def _turn_back(self, noted: Noted) -> None:
        """Report that the operation is being undone, with the steps that have to be."""
        undoing = {BEGUN, LETTERS[StepState.UNDONE], LETTERS[StepState.UNDO_FAILED]}
        both = zip(self.record.steps, noted.states, strict=True)
        steps = tuple(step for step, state in both if state in undoing)
        self._progress(UndoStarted(noted.undo or "", steps))

    def _end(self) -> Outcome:
        """Report the rest of an operation whose journal is gone, as its history has it."""
        revision, every = self._revision(), BEGUN * len(self.record.steps)
        is_undone = self._phase is Phase.UNDO
        if revision is not None:
            is_undone = revision.result is Result.UNDONE
        if is_undone and self._noted.undo is None:
            self._take(Noted(every, undo=revision.cause if revision else ""))
        before, rest = self._noted, StepState.UNDONE
        if not is_undone:
            self._noted = replace(before, states=before.states.replace(NOT_BEGUN, BEGUN))
            is_done = revision is not None or self.record.origin.kind in _WITHOUT_HISTORY
            rest = StepState.DONE if is_done else StepState.STOPPED
        outcome = self._outcome(rest)
        for number, result in enumerate(outcome.results):
            if before.result(number, result.step) is None:
                self._progress(result)
        return outcome

    def _revision(self) -> Revision | None:
        """Return the operation as its history has it; None where that does not have it."""
        view = self.operation
        history = History(view.cluster, view.namespace, view.instance_id)
        try:
            revisions = if_allowed(history.read, ())
        except PlanError:  # it is not signed: its end is not trusted
            return None
        return next((each for each in revisions if each.operation == self.record.operation), None)

    def _outcome(self, rest: StepState) -> Outcome:
        """Return the result of each step; *rest*: of one that began and is not known further."""
        results = []
        for number, step in enumerate(self.record.steps):
            result = self._noted.result(number, step)
            if self._noted.states[number] == NOT_BEGUN:
                result = StepResult(step, StepState.NOT_STARTED)
            elif result is None or (rest is StepState.UNDONE and result.state is StepState.DONE):
                result = StepResult(step, rest, _NOT_KNOWN if rest is StepState.STOPPED else "")
            results.append(result)
        took = utc_now() - datetime.fromisoformat(self.record.started)
        plan = self.operation.plan_of(self.record)
        return Outcome(plan, tuple(results), seconds=max(0.0, took.total_seconds()))
