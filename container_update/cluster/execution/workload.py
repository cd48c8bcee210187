"""Restarts live workloads and reverts that: how each kind gets from its old pods to new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from container_update.cluster.execution.context import ExecutionContext, Reverted
from container_update.cluster.execution.pods import PodReplacer
from container_update.cluster.execution.writer import ChangedByAnotherError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning import diff
from container_update.planning.steps import WorkloadStep
from container_update.planning.steps.manifest import same_template
from container_update.planning.steps.new_objects import recreated_pod
from container_update.workloads.kinds import pod
from container_update.workloads.pod_status import is_deleting, is_ready
from container_update.workloads.readiness import DONE, Baseline, Readiness
from container_update.workloads.registry import known_kind


@dataclass(frozen=True)
class WorkloadExecutor:
    """See :class:`~container_update.cluster.execution.context.StepExecutor`."""

    context: ExecutionContext

    @property
    def _pods(self) -> PodReplacer:
        return PodReplacer(self.context)

    # --- apply ----------------------------------------------------------------------------------

    def apply(self, step: WorkloadStep, deadline: float) -> None:
        """Write the workload and wait until all the pods it owns are new."""
        assert step.before is not None, "a workload to restart is live"
        if step.action is Action.RECREATE_POD:
            self._recreate_pod(step, step.before, deadline)
            return
        live = self.context.writer.read(step)
        old_pods = self.context.pods_before.get(step.key, frozenset())
        if live is None or not step.is_applied(live):
            owned = self.context.rollout.pods(step.before)
            old_pods |= {pod["metadata"]["uid"] for pod in owned}
        written = self.context.writer.apply(step, live)
        if written["metadata"]["resourceVersion"] == step.before["metadata"]["resourceVersion"]:
            return  # admission made of it what was there: nothing restarts
        self.context.rollout.observe(written)
        if same_template(step.before, written):
            old_pods = frozenset()  # what changed restarts no pod
        self._wait(step, step.before, written, old_pods, deadline)

    def _wait(
        self,
        step: WorkloadStep,
        before: Json,
        written: Json,
        old_pods: frozenset[str],
        deadline: float,
    ) -> None:
        rollout = self.context.rollout
        if step.action is Action.RESTART_CONTAINERS:
            baseline = Baseline.of([before], tuple(step.images))
            rollout.until(step.key, lambda live: pod.restarted(live, baseline), deadline)
        elif step.action is Action.ROLL:
            rollout.until_new(step.key, Baseline(old_pods), deadline)
        elif step.action is Action.EVICT:
            rollout.until_complete(step.key, deadline)
            old = [
                owned
                for owned in rollout.pods(written)
                if owned["metadata"]["uid"] in old_pods or step.is_outdated(owned)
            ]
            self._pods.evict_one_by_one(step.key, old, deadline)

    def _recreate_pod(self, step: WorkloadStep, before: Json, deadline: float) -> None:
        new = step.new_pod(self.context.writer.labels)
        live = self.context.writer.read(step)
        old_uid = before["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] == old_uid:
            self._pods.replace(step.key, old_uid, new, deadline)
            return
        if diff.images(live) != diff.images(new):
            raise ChangedByAnotherError(f"{step.key} was created again by somebody else")
        self.context.rollout.until_recreated(step.key, old_uid, deadline)

    # --- revert ---------------------------------------------------------------------------------

    def revert(self, step: WorkloadStep, deadline: float) -> Reverted:
        """Put back images and configuration digest, and replace the pods that had the new ones."""
        assert step.before is not None, "a workload to restart was live"
        if known_kind(step.key).is_pod:
            return self._revert_pod(step, step.before, deadline)
        live = self.context.cluster.get(step.key)
        if live is None:
            return Reverted.OF_OTHERS
        since = self.context.pods_since(step, live)
        reverted = Reverted.UNCHANGED
        if not step.is_restored(live):
            if not step.has_traces(live):
                return Reverted.OF_OTHERS
            live = self.context.writer.restore(step, live)
            reverted = Reverted.RESTORED
        self.context.rollout.observe(live)
        if step.action is Action.EVICT:
            self.context.rollout.until_complete(step.key, deadline)
            since = self.context.pods_since(step, live)
            self._pods.evict_one_by_one(step.key, since, deadline)
        elif step.action is not Action.TEMPLATE:
            self._roll_back(step, since, deadline)
        return reverted

    def _roll_back(self, step: WorkloadStep, since: Sequence[Json], deadline: float) -> None:
        """Wait until a controller has replaced the pods with the new template.

        Pods that it keeps but that were started since the plan are evicted: they may have read the
        new configuration.
        """
        kind = known_kind(step.key)
        for started in since:
            if kind.keeps_broken_pods and not is_ready(started):
                self.context.cluster.delete(ObjectKey.of(started), uid=started["metadata"]["uid"])
        rollout = self.context.rollout

        def judge_live(live: Json) -> Readiness:
            pods = rollout.pods(live)
            return kind.readiness(live, pods, Baseline.of(list(filter(step.is_applied, pods))))

        rollout.until(step.key, judge_live, deadline)
        if step.digest is not None:
            kept = [started for started in since if not step.is_applied(started)]
            self._pods.evict_one_by_one(step.key, kept, deadline)

    def _revert_pod(self, step: WorkloadStep, before: Json, deadline: float) -> Reverted:
        live = self.context.cluster.get(step.key)
        old_uid = before["metadata"]["uid"]
        is_old = live is not None and live["metadata"]["uid"] == old_uid
        if live is not None and is_old and not is_deleting(live):
            return self._restore_containers(step, live, deadline)
        if live is None:
            live = before  # only its UID counts, which is gone
        again = recreated_pod(before, diff.images(before))
        self._pods.replace(step.key, live["metadata"]["uid"], again, deadline)
        return Reverted.RESTORED

    def _restore_containers(self, step: WorkloadStep, live: Json, deadline: float) -> Reverted:
        """Give the containers of a Pod that is still there their old images."""
        if step.is_restored(live):
            return Reverted.UNCHANGED
        baseline = Baseline.of([live], tuple(step.images))
        started = _container_ids(step.before or {}, step.images)
        written = self.context.writer.restore(step, live)
        self.context.rollout.observe(written)

        def judge(live: Json) -> Readiness:
            if _container_ids(live, step.images) == started and is_ready(live):
                return DONE  # the kubelet had not begun
            return pod.restarted(live, baseline)

        self.context.rollout.until(step.key, judge, deadline)
        return Reverted.RESTORED


def _container_ids(pod: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    status = pod.get("status")
    statuses = status.get("containerStatuses") or () if isinstance(status, Mapping) else ()
    return {s["name"]: s.get("containerID") for s in statuses if s["name"] in names}
