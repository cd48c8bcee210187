"""Putting back what a failed update wrote: configuration first, since pods read it as they start.

Every step is looked at again as it is now, so that undoing what was never done, or twice, is safe.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from container_update import diff, edits, readiness
from container_update.errors import ClusterError
from container_update.model import Action, Json, ObjectKey, Step, StepResult, StepState
from container_update.readiness import Baseline, Readiness
from container_update.restart import ChangedByAnotherError, Restarter
from container_update.waiting import NotReadyError

LOG = logging.getLogger(__name__)


class Undone(enum.Enum):
    """What the undo of a step found."""

    RESTORED = "restored"
    ALREADY_RIGHT = "already right"


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
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            results += pool.map(lambda step: self._undo(step, deadline), workloads)
        return tuple(results)

    def _undo(self, step: Step, deadline: float) -> StepResult:
        began = self.restarter.waiter.clock()
        try:
            undone = self._config(step) if step.is_config else self._workload(step, deadline)
            state, message = StepState.UNDONE, undone.value
        except (ClusterError, ChangedByAnotherError, NotReadyError) as error:
            LOG.error("%s could not be put back: %s", step.key, error)
            state, message = StepState.UNDO_FAILED, str(error)
        return StepResult(step, state, message, self.restarter.waiter.clock() - began)

    # --- configuration --------------------------------------------------------------------------

    def _config(self, step: Step) -> Undone:
        live = self.restarter.cluster.get(step.key)
        if step.before is None:
            return self._created_config(step, live)
        if live is None:
            before = edits.new_object(step.before, step.key.namespace, {})
            self.restarter.cluster.create(before)
            return Undone.RESTORED
        if edits.is_restored(step, live):
            return Undone.ALREADY_RIGHT
        if not edits.is_applied(step, live):
            raise ChangedByAnotherError(f"{step.key} was changed by another since: left alone")
        if _replaceable(step, live):
            self.restarter.write(step, live, edits.restored, edits.is_applied)
        else:
            self.restarter.recreate(step, edits.restored(step, live))
        return Undone.RESTORED

    def _created_config(self, step: Step, live: Json | None) -> Undone:
        if live is None:
            return Undone.ALREADY_RIGHT
        if not edits.is_applied(step, live):
            raise ChangedByAnotherError(f"{step.key} was changed by another since: left alone")
        self.restarter.cluster.delete(step.key, uid=live["metadata"]["uid"])
        return Undone.RESTORED

    # --- workloads ------------------------------------------------------------------------------

    def _workload(self, step: Step, deadline: float) -> Undone:
        assert step.before is not None, "a workload to restart was live"
        if step.key.kind == "Pod":
            return self._pod(step, step.before, deadline)
        live = self.restarter.cluster.get(step.key)
        if live is None:
            raise ChangedByAnotherError(f"{step.key} was deleted by another: left alone")
        undone = Undone.ALREADY_RIGHT
        if not edits.is_restored(step, live):
            live = self.restarter.write(step, live, edits.restored, edits.is_applied)
            undone = Undone.RESTORED
        self.restarter.waiter.informer.observe(live)
        if step.action is not Action.TEMPLATE:
            self._old_template_pods(step, live, deadline)
        return undone

    def _old_template_pods(self, step: Step, live: Json, deadline: float) -> None:
        """Wait until no pod of the new template is left."""
        before = self.pods_before.get(step.key, frozenset())
        new = [p for p in self.restarter.pods(live) if p["metadata"]["uid"] not in before]
        if step.action is Action.EVICT:
            self.restarter.evict_one_by_one(step.key, new, deadline)
            return
        if step.key.kind == "StatefulSet":
            # its controller waits for a broken pod for ever (known as "forced rollback")
            for pod in new:
                if not readiness.is_ready(pod):
                    self.restarter.cluster.delete(ObjectKey.of(pod), uid=pod["metadata"]["uid"])
        self.restarter.until_new(step.key, Baseline.of(new), deadline)

    def _pod(self, step: Step, before: Json, deadline: float) -> Undone:
        live = self.restarter.cluster.get(step.key)
        old_uid = before["metadata"]["uid"]
        is_old = live is not None and live["metadata"]["uid"] == old_uid
        if live is not None and is_old and not readiness.is_deleting(live):
            return self._restarted_pod(step, live, deadline)
        if live is None:
            live = before  # only its UID counts, which is gone
        again = edits.recreated_pod(before, diff.images(before))
        self.restarter.replace_pod(step.key, live["metadata"]["uid"], again, deadline)
        return Undone.RESTORED

    def _restarted_pod(self, step: Step, live: Json, deadline: float) -> Undone:
        """The same Pod is still there: its containers get their old images back."""
        if edits.is_restored(step, live):
            return Undone.ALREADY_RIGHT
        baseline = Baseline.of([live], tuple(step.images))
        started = _container_ids(step.before or {}, step.images)
        written = self.restarter.write(step, live, edits.restored, edits.is_applied)
        self.restarter.waiter.informer.observe(written)

        def judge(pod: Json) -> Readiness:
            if _container_ids(pod, step.images) == started and readiness.is_ready(pod):
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
