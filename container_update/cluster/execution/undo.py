"""Putting back what a failed update wrote: configuration first, since pods read it as they start.

Every step is looked at again as it is now, so that undoing what was never done, or twice, is safe.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from container_update.cluster.execution.workload import ChangedByAnotherError, Restarter
from container_update.cluster.waiting import AbortedError, NotReadyError
from container_update.model import context_threads
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import StepResult, StepState
from container_update.model.plan import Action, Step
from container_update.planning import diff, step_edits
from container_update.workloads import readiness
from container_update.workloads.pod_status import is_deleting, is_ready
from container_update.workloads.readiness import Baseline, Readiness

LOG = logging.getLogger(__name__)

_WAITING = "waits until its configuration is as before"

_ATTEMPTS = 3
_PAUSE = 0.2
"""Seconds between two attempts at a step, where the API server refused."""


class Undone(enum.Enum):
    """What the undo of a step found."""

    RESTORED = "restored"
    ALREADY_RIGHT = "already right"
    THEIRS = "changed or deleted by another since: left alone"
    """Nothing of the update is left in it, and what is there is not ours to judge."""


@dataclass(frozen=True)
class Undo:
    """The way back for the steps of one plan."""

    restarter: Restarter
    pods_before: Mapping[ObjectKey, frozenset[str]]
    """For each workload the UIDs of the pods it had before the update."""
    workers: int

    def run(self, steps: Sequence[Step], deadline: float) -> tuple[StepResult, ...]:
        """Put back every step, going on past one that fails.

        :param steps: those that were begun, in the order of the plan.
        :param deadline: by the waiter's clock, for all of them together.
        """
        config = [step for step in reversed(steps) if step.is_config]
        workloads = [step for step in reversed(steps) if not step.is_config]
        results = [self._undo(step, deadline) for step in config]
        if any(result.state is StepState.UNDO_FAILED for result in results):
            # a pod that restarts now would start with what is still there of the update
            waiting = [step for step in workloads if step.digest is not None]
            workloads = [step for step in workloads if step.digest is None]
            results += [StepResult(step, StepState.UNDO_FAILED, _WAITING) for step in waiting]
        with context_threads.pool(self.workers) as pool:
            results += pool.map(lambda step: self._undo(step, deadline), workloads)
        return tuple(results)

    def _undo(self, step: Step, deadline: float) -> StepResult:
        began = self.restarter.waiter.clock()
        try:
            undone = self._insist(step, deadline)
            state, message = StepState.UNDONE, undone.value
        except (ClusterError, ChangedByAnotherError, NotReadyError) as error:
            LOG.error("%s could not be put back: %s", step.key, error)
            state, message = StepState.UNDO_FAILED, str(error)
        except AbortedError:
            state, message = StepState.UNDO_FAILED, "the lock was lost"
        return StepResult(step, state, message, self.restarter.waiter.clock() - began)

    def _insist(self, step: Step, deadline: float) -> Undone:
        """Whatever the server refuses is looked at anew and tried again."""
        if self.restarter.waiter.aborted.is_set():
            raise AbortedError
        undo = self._way_back(step)
        for _ in range(_ATTEMPTS - 1):
            try:
                return undo(step, deadline)
            except ClusterError as error:
                LOG.info("%s: %s; trying again", step.key, error)
                self.restarter.waiter.pause(_PAUSE)
        return undo(step, deadline)

    def _way_back(self, step: Step) -> Callable[[Step, float], Undone]:
        return self._config if step.is_config else self._workload

    # --- configuration --------------------------------------------------------------------------

    def _config(self, step: Step, _: float) -> Undone:
        live = self.restarter.cluster.get(step.key)
        if step.before is None:
            return self._created_config(step, live)
        if live is None:
            before = step_edits.new_object(step.before, step.key.namespace, {})
            self.restarter.cluster.create(before)
            return Undone.RESTORED
        if step_edits.is_restored(step, live):
            return Undone.ALREADY_RIGHT
        if not step_edits.is_applied(step, live):
            return Undone.THEIRS
        if _replaceable(step, live):
            self.restarter.write(step, live, step_edits.restored, step_edits.is_applied)
        else:
            self.restarter.recreate(step, step_edits.restored(step, live))
        return Undone.RESTORED

    def _created_config(self, step: Step, live: Json | None) -> Undone:
        if live is None:
            return Undone.ALREADY_RIGHT
        if not step_edits.is_applied(step, live):
            return Undone.THEIRS
        self.restarter.cluster.delete(step.key, uid=live["metadata"]["uid"])
        return Undone.RESTORED

    # --- workloads ------------------------------------------------------------------------------

    def _workload(self, step: Step, deadline: float) -> Undone:
        assert step.before is not None, "a workload to restart was live"
        if step.key.kind == "Pod":
            return self._pod(step, step.before, deadline)
        live = self.restarter.cluster.get(step.key)
        if live is None:
            return Undone.THEIRS
        since = self._pods_since(step, live)
        undone = Undone.ALREADY_RIGHT
        if not step_edits.is_restored(step, live):
            if step_edits.is_none_of(step, live):
                return Undone.THEIRS
            live = self.restarter.write(step, live, step_edits.restored, step_edits.is_ours)
            undone = Undone.RESTORED
        self.restarter.waiter.informer.observe(live)
        if step.action is Action.EVICT:
            self.restarter.until_complete(step.key, deadline)
            since = self._pods_since(step, live)
            self.restarter.evict_one_by_one(step.key, since, deadline)
        elif step.action is not Action.TEMPLATE:
            self._roll_back(step, since, deadline)
        return undone

    def _pods_since(self, step: Step, live: Json) -> list[Json]:
        """The pods that were made since the update began."""
        before = self.pods_before.get(step.key, frozenset())
        return [pod for pod in self.restarter.pods(live) if pod["metadata"]["uid"] not in before]

    def _roll_back(self, step: Step, since: Sequence[Json], deadline: float) -> None:
        """Wait until a controller has replaced what has the update's template, and evict what it
        keeps but was started during the update: it may have the update's configuration."""
        for pod in since:
            # a StatefulSet's controller waits for a broken pod for ever ("forced rollback")
            if step.key.kind == "StatefulSet" and not is_ready(pod):
                self.restarter.cluster.delete(ObjectKey.of(pod), uid=pod["metadata"]["uid"])
        judge = readiness.CONTROLLERS[step.key.kind]

        def judge_live(live: Json) -> Readiness:
            pods = self.restarter.pods(live)
            return judge(
                live, pods, Baseline.of([p for p in pods if step_edits.is_applied(step, p)])
            )

        self.restarter.until(step.key, judge_live, deadline)
        if step.digest is not None:
            kept = [pod for pod in since if not step_edits.is_applied(step, pod)]
            self.restarter.evict_one_by_one(step.key, kept, deadline)

    def _pod(self, step: Step, before: Json, deadline: float) -> Undone:
        live = self.restarter.cluster.get(step.key)
        old_uid = before["metadata"]["uid"]
        is_old = live is not None and live["metadata"]["uid"] == old_uid
        if live is not None and is_old and not is_deleting(live):
            return self._restarted_pod(step, live, deadline)
        if live is None:
            live = before  # only its UID counts, which is gone
        again = step_edits.recreated_pod(before, diff.images(before))
        self.restarter.replace_pod(step.key, live["metadata"]["uid"], again, deadline)
        return Undone.RESTORED

    def _restarted_pod(self, step: Step, live: Json, deadline: float) -> Undone:
        """The same Pod is still there: its containers get their old images back."""
        if step_edits.is_restored(step, live):
            return Undone.ALREADY_RIGHT
        baseline = Baseline.of([live], tuple(step.images))
        started = _container_ids(step.before or {}, step.images)
        written = self.restarter.write(step, live, step_edits.restored, step_edits.is_applied)
        self.restarter.waiter.informer.observe(written)

        def judge(pod: Json) -> Readiness:
            if _container_ids(pod, step.images) == started and is_ready(pod):
                return readiness.DONE  # the kubelet had not begun
            return readiness.pod_restarted(pod, baseline)

        self.restarter.until(step.key, judge, deadline)
        return Undone.RESTORED


def _replaceable(step: Step, live: Json) -> bool:
    assert step.before is not None, "what was created is deleted"
    now, before = diff.content(live), diff.content(step.before)
    return not now.immutable and now.type == before.type


def _container_ids(pod: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    status = pod.get("status")
    statuses = status.get("containerStatuses") or () if isinstance(status, Mapping) else ()
    return {s["name"]: s.get("containerID") for s in statuses if s["name"] in names}
