# SPDX-License-Identifier: Apache-2.0
"""Run a Plan against a cluster: group after group, the steps of a group at the same time.

On failure everything that was begun is undone, and the error has the outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import AbortedError, NotReadyError, Waiter
from container_update.engine.context import ExecutionContext
from container_update.engine.diagnosis import Diagnostician
from container_update.engine.executors.config import ConfigExecutor
from container_update.engine.executors.pods import ScaleExecutor
from container_update.engine.executors.table import executor_of
from container_update.engine.rollout import RolloutWaiter, followed_by
from container_update.engine.undo import Undo
from container_update.engine.workload_events import EventRecorder
from container_update.engine.writer import ChangedByAnotherError, ObjectWriter
from container_update.model import context_threads, errors
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.objects import Json, ObjectKey
from container_update.model.options import NOTE, Options
from container_update.model.outcome import (
    Diagnosis,
    Outcome,
    Progress,
    StepResult,
    StepState,
    StepWait,
    UndoStarted,
)
from container_update.model.pauses import HoldStep
from container_update.model.plan import (
    INSTALL,
    UNDO,
    UNINSTALL,
    UPDATE,
    Action,
    Place,
    Plan,
    Step,
)
from container_update.model.reporter import REPORTED
from container_update.model.scripts import RunScript, ScriptStep
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep, object_steps
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.readiness import Baseline, replicas
from container_update.workloads.registry import is_workload

LOG = logging.getLogger(__name__)

UNDO_GRACE = 30.0
"""While undoing, pods show the trouble of the failed update until their kubelet has caught up."""

_NAMES = {UPDATE: "update", INSTALL: "installation", UNINSTALL: "uninstallation", UNDO: "undo"}
"""Kinds of operations in a sentence."""

_ENDED_BY = errors.NextStep.RESUME_OR_ROLLBACK

_STEP_ERRORS = (
    errors.ClusterError,
    errors.CoordinationError,
    errors.LeaseLostError,
    errors.PackageError,
    ChangedByAnotherError,
    NotReadyError,
)


@dataclass
class Execution:
    """One run of one plan.

    :param informer: has listed the plan's collections; its watches are started here.
    :param events: records Events about workloads.
    :param pods_before: for each workload the UIDs of the pods it had before the update.
    :param cancel: cancels the run.
    :param before_undo: called once, before anything is undone.
    :param progress: a Reporter, called with each step when it begins and with its result when it
        ends.
    :param leave_failed: keep what a failure leaves for a rollback or a resume, do not undo it.
    :param owner: the ownerReference that new objects of the plan's namespace get.
    :param resumed: a run before this one was interrupted.
    :param ended: so many groups of the plan were ended by that one.
    :param note: writes down how many groups have ended, where not all of them can be repeated.
    :param run_script: runs the script of a step.
    """

    plan: Plan
    cluster: Cluster
    informer: Informer
    events: EventRecorder
    options: Options = field(default_factory=Options)
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    cancel: CancelToken = field(default_factory=CancelToken)
    before_undo: Callable[[], object] = lambda: None
    progress: Progress = lambda _: None
    leave_failed: bool = False
    owner: Json | None = None
    resumed: bool = False
    ended: int = 0
    note: Callable[[int, Sequence[StepResult]], object] = lambda *_: None
    run_script: RunScript = lambda _: None

    def __post_init__(self) -> None:
        self._results: dict[Place, StepResult] = {}
        self._stored_images: dict[ObjectKey, Mapping[str, str]] = {}
        self._steps = object_steps(self.plan)
        self._waiter = Waiter(self.informer, self.options.grace_period)

    def run(self) -> tuple[StepResult, ...]:
        """Carry out every step of the plan, or none.

        :returns: the result of each step, in the order of the plan.
        :raises UpdateFailedError: a step failed and all was put back; with the outcome.
        :raises UndoIncompleteError: a step failed and something could not be put back.
        :raises UpdateInterruptedError: cancelled, and undone or left as asked.
        :raises LeaseLostError: another run may have taken over.
        """
        self._context = self._context_of(self._waiter, resumed=self.resumed)
        self.informer.watch(followed_by(self._steps))
        self.cancel.on_request(self._waiter.abort)
        unrepeatable, noted = self.plan.unrepeatable, self.ended
        for group in self.plan.groups:
            number = group[0].group + 1
            if number > self.ended and self._is_held_at(group):
                if noted < number - 1:  # a promotion goes on from here
                    self._note(number - 1, ())
                break
            once = [step for step in group if step.place in unrepeatable]
            is_over = number <= self.ended
            # of a group that has ended the pods are looked at again: they may have failed since
            again = [step for step in group if step.waits_again and step not in once]
            self.skip(step for step in group if is_over and step not in again)
            self._advance(again if is_over else group)
            if once and not is_over:
                self._note(noted := number, group)
        else:
            self._make_immutable()
        self.events.finish()
        return self.results

    def _make_immutable(self) -> None:
        """Make immutable what becomes so, now that no pod can fail any more."""
        for step in self._steps:
            if isinstance(step, ConfigStep) and step.becomes_immutable:
                try:
                    ConfigExecutor(self._context).make_immutable(step)
                except _STEP_ERRORS as error:
                    self.give_up(f"{step.key} failed: {error}")

    def _is_held_at(self, group: Sequence[Step]) -> bool:
        """Report the steps that only a person ends: a run does not wait for one."""
        held = [step for step in group if isinstance(step, HoldStep) and step.needs_person]
        for step in held:
            self._results[step.place] = result = StepResult(step, StepState.HELD)
            self.progress(result)
        return bool(held)

    def _note(self, number: int, group: Sequence[Step]) -> None:
        try:
            self.note(number, [self._results[step.place] for step in group])
        except errors.ClusterError as error:
            self.give_up("" if self.cancel else str(error))

    def _context_of(self, waiter: Waiter, *, resumed: bool = False) -> ExecutionContext:
        plan = self.plan
        removed = [step.key for step in plan.steps if step.is_removal]
        return ExecutionContext(
            ObjectWriter(
                self.cluster,
                waiter,
                plan.instance_id,
                resumed,
                self.owner,
                plan.namespace,
                self._stored_images,
                self.options.dry_run_denials == NOTE,
            ),
            RolloutWaiter(waiter, self.progress),
            self.pods_before,
            frozenset(uid for key in removed for uid in self.pods_before.get(key, ())),
            self.run_script,
            self.options.prometheus,
        )

    def _advance(self, steps: Sequence[Step]) -> None:
        try:
            self._follow(steps)
            self._drain(steps)
            self._run_all(steps)
        except BaseException:
            self.undo("interrupted", self._begun_steps())
            raise
        failed = [r for r in self._results.values() if r.state is StepState.FAILED]
        results = [self._results.get(step.place) for step in steps]
        if any(result is None or result.state is not StepState.DONE for result in results):
            self.give_up(next((f"{r.step.key} failed: {r.message}" for r in failed), ""))
        if workloads := [step for step in steps if step.starts_pods]:
            self._stay_ready(workloads)

    def _follow(self, steps: Sequence[Step]) -> None:
        """Give new Deployments as many pods as the old ones have now, before the traffic moves."""
        if not any(step.is_switch or step.is_removal for step in steps):
            return
        created = {s.key: s for s in self._steps if s.action is Action.CREATE}
        scaled = {step.key for step in self._steps if step.action is Action.SCALE}
        switches = [step for step in self._steps if step.is_switch]
        is_switched = bool(switches) and not any(step in switches for step in steps)
        executor = ScaleExecutor(self._context)
        for step in self._steps:
            if not (isinstance(step, ManifestStep) and step.successor):
                continue
            key = replace(step.key, name=step.successor)
            first = created.get(key)
            planned = replicas(first.content or {}) if isinstance(first, ManifestStep) else 0
            # none: a canary leaves no old pods, and the traffic may be on the new ones already
            is_stopped = not is_switched and step.key not in scaled
            try:
                while executor.follow(
                    step, planned, self._waiter.clock() + self.options.timeout, also_none=is_stopped
                ):
                    self.progress(StepWait(key, f"has as many pods as {step.key} has now"))
            except AbortedError:
                self.give_up()
            except _STEP_ERRORS as error:
                self.give_up(f"{key} failed: {error}")

    def _drain(self, steps: Iterable[Step]) -> None:
        """Let pods that get no traffic any more end the requests that they have, before they go."""
        removed = [step.key for step in steps if step.is_removal and is_workload(step.key)]
        seconds = self.options.drain_seconds
        if removed and any(step.is_switch for step in self.plan.steps):
            for key in removed if seconds else ():
                self.progress(StepWait(key, f"its pods end their requests, for {seconds:g} s"))
            try:
                self._waiter.sleep(seconds)
            except AbortedError:
                self.give_up()

    def skip(self, steps: Iterable[Step]) -> None:
        """Count steps as done: by a run before this one, which was interrupted."""
        for step in steps:
            self._results[step.place] = StepResult(step, StepState.DONE, "done before")

    @property
    def results(self) -> tuple[StepResult, ...]:
        """What became of each step so far, in the order of the plan."""
        return self._outcome().results

    def revert_first(self, steps: Sequence[ObjectStep]) -> None:
        """Revert what makes the API server refuse even the note of the undo; later once more."""
        for step in reversed(steps):
            try:
                deadline = self._waiter.clock() + self.options.undo_timeout
                executor_of(step, self._context).revert(step, deadline)
            except (*_STEP_ERRORS, AbortedError) as error:
                LOG.warning("%s could not be put back yet: %s", step.key, error)

    def undo(self, cause: str, begun: Sequence[Step]) -> tuple[StepResult, ...]:
        """Revert these steps of the plan, as far as they were done."""
        steps = [step for step in begun if isinstance(step, ObjectStep)]
        LOG.warning("undoing %d steps: %s", len(steps), cause, extra=REPORTED)
        self.before_undo()
        self.informer.watch(followed_by(steps))
        waiter = Waiter(self.informer, max(self.options.grace_period, UNDO_GRACE))
        self.cancel.on_request(lambda: waiter.abort() if self.cancel.lease_lost else None)
        self.progress(UndoStarted(cause, tuple(steps)))

        def report(result: StepResult) -> None:
            self.progress(result)
            if result.step.starts_pods:
                self.events.was_undone(result, cause)

        undo = Undo(
            self._context_of(waiter),
            self.options.workers,
            self.options.drain_seconds,
            report,
            self._diagnosis,
        )
        results = undo.run(steps, waiter.clock() + self.options.undo_timeout)
        self.events.finish()
        others = (step for step in begun if not isinstance(step, ObjectStep))
        return (*results, *(StepResult(s, StepState.UNDONE, _no_way_back(s)) for s in others))

    def _run_all(self, steps: Sequence[Step]) -> None:
        with context_threads.pool(self.options.workers) as pool:
            try:
                list(pool.map(self._run, steps))
            except BaseException:
                self._waiter.abort()  # or leaving the pool would wait for all of them
                raise

    def _run(self, step: Step) -> None:
        if self.cancel or self._waiter.aborted.is_set():
            return
        began = self._waiter.clock()
        state, message, diagnosis, report = StepState.DONE, "", None, None
        self._results[step.place] = StepResult(step, StepState.STOPPED)
        self.progress(step)
        try:
            report = executor_of(step, self._context).apply(step, began + self.options.timeout)
            message = report.last_line if report else ""
        except AbortedError:
            state = StepState.STOPPED
        except _STEP_ERRORS as error:
            state, message = StepState.FAILED, str(error)
            LOG.error("%s: %s failed: %s", step.key, step.action.value, error, extra=REPORTED)
            self._waiter.abort()
            diagnosis = self._diagnosis(step, error)
        result = StepResult(
            step, state, message, self._waiter.clock() - began, diagnosis, script=report
        )
        self._results[step.place] = result
        self.progress(result)
        if step.starts_pods and state is StepState.DONE:
            self.events.was_done(result, self.informer.live.get(step.key))
        LOG.info("%s: %s: %s (%.1f s)", step.key, step.action.value, state.value, result.seconds)

    def _diagnosis(self, step: Step, error: Exception) -> Diagnosis | None:
        """Return what the failing pod of a step reports; None where it did not wait for pods."""
        if not (isinstance(error, NotReadyError) and isinstance(step, ObjectStep)):
            return None
        configuration = [s.content for s in self._steps if isinstance(s, ConfigStep)]
        secrets = [body for body in configuration if body.get("kind") == "Secret"]
        before = Baseline(self.pods_before.get(step.key, frozenset()))
        if step.action is Action.RESTART_CONTAINERS:
            before = Baseline.of([step.old], tuple(step.images))
        asked = Diagnostician(self.cluster, self.informer, secrets)
        diagnosis = asked.diagnose(step.key, before, str(error))
        for text in diagnosis.events if diagnosis else ():
            LOG.error("%s: %s", step.key, text, extra=REPORTED)
        return diagnosis

    def _stay_ready(self, steps: Sequence[Step]) -> None:
        """Wait until everything that restarted is ready together, and for ``settle_seconds``.

        Without a readiness probe a pod is Ready before it does anything: it may have crashed while
        others were waited for.
        """
        rollout, clock = self._context.rollout, self._waiter.clock
        since = clock()
        try:
            while True:
                for step in steps:
                    if not rollout.is_still_done(step.key):
                        rollout.wait_again(step.key, clock() + self.options.timeout)
                        since = clock()
                left = since + self.options.settle_seconds - clock()
                if left <= 0:
                    return
                self._waiter.pause(left)
        except AbortedError:
            self.give_up()
        except (NotReadyError, ChangedByAnotherError, errors.ClusterError) as error:
            failed = replace(
                self._results[step.place],
                state=StepState.FAILED,
                message=str(error),
                diagnosis=self._diagnosis(step, error),
            )
            self._results[step.place] = failed
            self.progress(failed)
            self.give_up(f"{step.key} failed: {error}")

    def _begun_steps(self) -> list[Step]:
        """Return the steps that a run may have applied, or a script that switches by itself."""
        has_run = any(isinstance(result.step, ScriptStep) for result in self._results.values())
        return [
            step
            for step in self.plan.steps
            if self.resumed or (step.is_switch and has_run) or step.place in self._results
        ]

    def give_up(self, cause: str = "") -> NoReturn:
        """Undo what began, or leave it if so asked, and raise; without a cause it was cancelled."""
        self.refuse_if_lost()
        error = errors.UpdateFailedError if cause else errors.UpdateInterruptedError
        name = _NAMES.get(self.plan.kind, "operation")
        what = cause or f"The {name} was stopped {self.cancel.reason}"
        begun = self._begun_steps()
        if self.leave_failed if cause else self.cancel.keep_journal:
            # what an earlier run has done is begun too, though this one has not reached it
            unreached = (step for step in begun if step.place not in self._results)
            left = self._outcome([StepResult(step, StepState.STOPPED) for step in unreached])
            raise error(left, what, next_step=_ENDED_BY if begun else None)
        undone = self.undo(what, begun)
        outcome = self._outcome(undone)
        self.refuse_if_lost()
        if outcome.of_state(StepState.UNDO_FAILED):
            raise errors.UndoIncompleteError(outcome, what)
        raise error(outcome, what)

    def refuse_if_lost(self) -> None:
        """Raise LeaseLostError where another run may have taken over."""
        if self.cancel.lease_lost:
            raise errors.LeaseLostError(f"This run stopped where it was: {self.cancel.reason}")

    def _outcome(self, undone: Sequence[StepResult] = ()) -> Outcome:
        results = dict(self._results)
        for result in undone:
            before = results.get(result.step.place)
            diagnosis = before.diagnosis if before else None
            results[result.step.place] = replace(result, diagnosis=result.diagnosis or diagnosis)
        not_started = (StepResult(step, StepState.NOT_STARTED) for step in self.plan.steps)
        return Outcome(self.plan, tuple(results.get(r.step.place, r) for r in not_started))


def pods_by_workload(
    steps: Iterable[ObjectStep], informer: Informer
) -> dict[ObjectKey, frozenset[str]]:
    """Return for each workload the UIDs of its pods, without those that are being deleted."""
    return {
        step.key: frozenset(
            pod["metadata"]["uid"] for pod in informer.pods_of(step.before) if not is_deleting(pod)
        )
        for step in steps
        if not step.is_config and step.before is not None and not step.is_of_new_object
    }


def _no_way_back(step: Step) -> str:
    """Say why the undo left alone a step that writes no object."""
    return "a script has no way back" if isinstance(step, ScriptStep) else "it wrote nothing"
