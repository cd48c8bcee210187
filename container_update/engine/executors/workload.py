# SPDX-License-Identifier: Apache-2.0
"""Restarts live workloads and reverts that: how each kind gets from its old pods to new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from container_update.cluster.waiting import NotReadyError
from container_update.engine.context import StepExecutor
from container_update.engine.stuck_pods import StuckPods
from container_update.engine.writer import ChangedByAnotherError
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Reverted
from container_update.model.plan import Action
from container_update.planning.steps import RestartStep, WorkloadStep
from container_update.planning.steps.base import end_of
from container_update.planning.steps.new_objects import recreated_pod
from container_update.workloads.kind import pods_in
from container_update.workloads.kinds import pod
from container_update.workloads.ownership import outdated_pods, owned_pods, up_to_date
from container_update.workloads.pod_status import has_ended, is_deleting, is_ready
from container_update.workloads.pod_template import images, pod_template
from container_update.workloads.readiness import DONE, Baseline, Readiness, conditions
from container_update.workloads.registry import known_kind

_EVICTION_PAUSE = 2.0
"""Seconds until an eviction that a disruption budget forbade is tried again, if nothing changes."""


class WorkloadExecutor(StepExecutor[WorkloadStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: WorkloadStep, deadline: float) -> None:
        """Write the workload and wait until all the pods it owns are new."""
        before = step.old
        if step.action is Action.RECREATE_POD:
            self._recreate_pod(step, deadline)
            return
        live = self.writer.read(step)
        old_pods = self.context.pods_before.get(step.key, frozenset())
        abandoned = self.abandoned_pods(before)
        if self.writer.resumed:  # what has the new template is not from before the operation
            abandoned -= _uids(filter(step.is_applied, self.informer.pods_of(before)))
        # where it is written already, its pods may be new ones: then the journal alone has the old
        if live in (None, before) or not self.writer.with_stored_images(step, live).is_applied(
            live
        ):
            old_pods |= _uids(self.informer.pods_of(before))
            kind, is_update = known_kind(step.key), isinstance(step, RestartStep)
            if live and kind.deletes_first(live) and not (is_update and kind.risks_one_pod):
                self.writer.try_pod(step.with_change(live))
        written = self.writer.apply(step, live)
        is_same = written["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        if is_same and step.action is not Action.EVICT:
            return  # admission undid the change: nothing restarts
        step = step.with_stored(images(written))
        self.expect(step, written)
        restores, rolls = None, pod_template(before) != pod_template(written)
        if not rolls:
            old_pods = frozenset()  # the template is the same: no pod restarts
            counts = known_kind(step.key).counts(before)
            if counts.updated >= counts.desired > counts.ready:
                restores = counts  # nor is there a roll that goes on: it need not get any better
        wanted = _uids(filter(step.is_applied, self.informer.pods_of(before)))
        old_pods -= wanted | abandoned  # another roll may have made some as wanted already
        seen = conditions(before if written is live else written)  # a resumed run wrote it before
        baseline = Baseline(old_pods, abandoned=abandoned, conditions=seen, restores=restores)
        self._wait(step, written, baseline, deadline, rolls=rolls)

    def _wait(
        self, step: WorkloadStep, written: Json, before: Baseline, deadline: float, *, rolls: bool
    ) -> None:
        """Wait until the pods are as the step has them; *rolls*: its write changed the template."""
        if step.action is Action.RESTART_CONTAINERS:
            baseline = Baseline.of([step.old], tuple(step.images))
            self.rollout.until(step.key, lambda live: pod.judge_restart(live, baseline), deadline)
        elif step.action is Action.ROLL or (
            step.action is Action.REPLACE
            and known_kind(step.key).may_replace_pods(step.old, written)
        ):
            stuck = self._stuck(step.key, self.informer.pods_of(written))

            def still_old(pods: Sequence[Json]) -> Baseline:
                live = self.informer.get(step.key) or written
                sets = self.informer.replica_sets_of(live)
                # created since, from the template before
                late = outdated_pods(live, pods, sets) if rolls else frozenset()
                return replace(before, uids=before.uids - up_to_date(live, pods, sets) | late)

            self.rollout.until_replaced(step.key, still_old, deadline, stuck)
        elif step.action is Action.EVICT:
            self.rollout.until_complete(step.key, before, deadline)
            owned = self.informer.pods_of(written)
            uids = before.uids | _uids(filter(step.is_outdated, owned))
            old = [now for now in owned if now["metadata"]["uid"] in uids]
            self._evict_one_by_one(step.key, old, before, deadline)

    def _recreate_pod(self, step: WorkloadStep, deadline: float) -> None:
        new = step.new_pod(self.writer.labels)
        live = self.writer.read(step)
        old_uid = step.old["metadata"]["uid"]
        if live is None or live["metadata"]["uid"] == old_uid:
            self._replace_pod(live, old_uid, new, deadline)
            return
        if not self.writer.is_stored_as(live, new):
            raise ChangedByAnotherError(f"{step.key} was created again by another client")
        self.rollout.until_recreated(step.key, old_uid, deadline)

    def revert(self, step: WorkloadStep, deadline: float) -> Reverted:
        """Put back images and configuration digest, and replace the pods that had the new ones."""
        if known_kind(step.key).is_pod:
            return self._revert_pod(step, deadline)
        live = self.cluster.get(step.key)
        if live is None or is_deleting(live):
            return Reverted.OF_OTHERS
        step = self.writer.with_stored_images(step, live, back=True)
        since = self._pods_since(step, live)
        before = self.as_before(step, live)
        reverted = self.restore(step, live)
        if reverted is Reverted.OF_OTHERS:
            return reverted
        if step.way_back is Action.EVICT:
            self.rollout.until_complete(step.key, before, deadline)
            self._observe_pods(live)
            self._evict_one_by_one(step.key, self._pods_since(step, live), before, deadline)
        elif step.way_back is not Action.TEMPLATE:
            self._roll_back(step, since, before, deadline)
        return reverted

    def as_before(self, step: WorkloadStep, live: Json) -> Baseline:
        """See :class:`StepExecutor`; pods of the failed template count as well."""
        before = super().as_before(step, live)
        failed = _uids(filter(step.is_applied, self.informer.pods_of(step.old)))
        return replace(before, abandoned=before.abandoned - failed)

    def _observe_pods(self, live: Json) -> None:
        """Read the pods of a workload that creates them itself, whose watch may lag behind."""
        pods = self.cluster.list(pods_in(live["metadata"]["namespace"])).items
        for owned in owned_pods(live, pods, ()):
            if not is_deleting(owned):
                self.informer.observe(owned)

    def _pods_since(self, step: WorkloadStep, live: Json) -> list[Json]:
        before = self.context.pods_before.get(step.key, frozenset())
        return [
            now
            for now in self.informer.pods_of(live)
            if now["metadata"]["uid"] not in before and not is_deleting(now)
        ]

    def _roll_back(
        self, step: WorkloadStep, since: Sequence[Json], before: Baseline, deadline: float
    ) -> None:
        """Wait for old pods; evict those started since, which may have the new configuration."""
        were_there = self.context.pods_before.get(step.key, frozenset())
        stuck = self._stuck(step.key, since, since)

        def with_failed(pods: Sequence[Json]) -> Baseline:
            failed = (now for now in pods if now["metadata"]["uid"] not in were_there)
            return before.with_old(filter(step.is_applied, failed))

        self.rollout.until_replaced(step.key, with_failed, deadline, stuck)
        if step.digest is not None:
            kept = [started for started in since if not step.is_applied(started)]
            self._evict_one_by_one(step.key, kept, before, deadline)

    def _stuck(
        self, key: ObjectKey, old: Sequence[Json], started: Sequence[Json] = ()
    ) -> StuckPods | None:
        """Return what deletes pods that their controller waits for, those *started* among them."""
        if not known_kind(key).keeps_broken_pods:
            return None
        unwell = _uids(pod for pod in old if not is_ready(pod))
        return StuckPods(self.cluster, self.rollout.waiter, unwell, _uids(started))

    def _revert_pod(self, step: WorkloadStep, deadline: float) -> Reverted:
        live = self.cluster.get(step.key)
        old_uid = step.old["metadata"]["uid"]
        if live is not None and live["metadata"]["uid"] == old_uid and not is_deleting(live):
            return self._restore_containers(step, live, deadline)
        uid = old_uid if live is None else live["metadata"]["uid"]
        again = recreated_pod(step.old, images(step.old))
        self._replace_pod(live, uid, again, deadline, step.old)
        return Reverted.RESTORED

    def _restore_containers(self, step: WorkloadStep, live: Json, deadline: float) -> Reverted:
        """Give the containers of a Pod that is still there their old images."""
        if step.is_restored(live):
            return Reverted.UNCHANGED
        if not self.writer.with_stored_images(step, live, back=True).has_traces(live):
            return Reverted.OF_OTHERS
        baseline = Baseline.of([live], tuple(step.images))
        started = _container_ids(step.old, step.images)
        restored = self.writer.restore(step, live)
        self.informer.observe(restored)
        self.rollout.expect(step.key, lambda live: step.loss_of_restored(restored, live))
        if not is_ready(step.old):
            return Reverted.RESTORED  # it need not be more ready than it was

        def judge(live: Json) -> Readiness:
            if _container_ids(live, step.images) == started and is_ready(live):
                return DONE  # the kubelet had not begun
            return pod.judge_restart(live, baseline)

        self.rollout.until(step.key, judge, deadline)
        return Reverted.RESTORED

    def _evict_one_by_one(
        self, key: ObjectKey, old: Sequence[Json], before: Baseline, deadline: float
    ) -> None:
        """Evict pods in turn, first those that serve nothing: each replacement is Ready first."""
        old = [pod for pod in old if not (has_ended(pod) or before.leaves_out(pod))]
        gone, waiting = before.with_old(old), sorted(old, key=_ordinal, reverse=True)
        while waiting:
            first = min(waiting, key=self._is_ready_now)
            waiting.remove(first)
            self._evict(first, deadline)
            self.rollout.until_new(key, replace(gone, allowed=_uids(waiting)), deadline)
        self.rollout.until_new(key, gone, deadline)

    def _is_ready_now(self, old: Json) -> bool:
        live = self.informer.get(ObjectKey.of(old))
        is_there = live is not None and live["metadata"]["uid"] == old["metadata"]["uid"]
        return live is not None and is_there and is_ready(live)

    def _evict(self, old: Json, deadline: float) -> None:
        """Evict a pod; delete it where a disruption budget forbids that and it is not Ready: the
        budget counts it as gone, and would forbid it for ever."""
        key, uid = ObjectKey.of(old), old["metadata"]["uid"]
        waiter = self.rollout.waiter
        while True:
            try:
                self.cluster.evict(key, uid=uid)
                return
            except ClusterError as error:
                if error.status not in (409, 429):
                    raise
                # 409: another pod has the name, or this one was just written
                live = self.cluster.get(key) if error.status == 409 else old
                if live is None or live["metadata"]["uid"] != uid:
                    return  # another pod has that name by now
                if error.status == 429 and self._is_deleted_by_force(old):
                    return
                left = deadline - waiter.clock()
                if left <= 0:
                    raise NotReadyError(f"not ready in time: {error}") from error
                waiter.pause(min(left, error.retry_after or _EVICTION_PAUSE))

    def _is_deleted_by_force(self, old: Json) -> bool:
        """Delete a pod that is not Ready; tell whether it was, and whether the account may."""
        if self._is_ready_now(old):
            return False
        try:
            self.cluster.delete(ObjectKey.of(old), uid=old["metadata"]["uid"])
        except ClusterError as error:
            if error.status not in (403, 409):
                raise
            return False
        return True

    def _replace_pod(
        self,
        live: Json | None,
        old_uid: str,
        new: Json,
        deadline: float,
        before: Json | None = None,
    ) -> None:
        """Delete the Pod if it is there, wait until it is gone, create *new*, wait until Ready."""
        key = ObjectKey.of(new)
        if live is not None:
            self.writer.delete_for(new, live)
        self.rollout.until_gone(key, old_uid, deadline)
        created = self.writer.create_again(
            new, lambda live: self.writer.is_stored_as(live, new), deadline
        )
        self.informer.observe(created)
        self.rollout.expect(key, lambda live: _loss(created, live))
        self.rollout.until_recreated(key, old_uid, deadline, before)


def _loss(created: Json, live: Json) -> str:
    """Return how another client changed a Pod that was created again, '' where none did."""
    is_same = images(live) == images(created)
    return end_of(created, live) or ("" if is_same else "has images of another client")


def _uids(pods: Iterable[Json]) -> frozenset[str]:
    return frozenset(pod["metadata"]["uid"] for pod in pods)


def _ordinal(owned: Json) -> tuple[int, str]:
    """Order a StatefulSet's pods as its controller does, which takes the last one first."""
    labels = owned["metadata"].get("labels") or {}
    index = labels.get("apps.kubernetes.io/pod-index", "")
    return (int(index) if index.isdigit() else 0, owned["metadata"]["name"])


def _container_ids(body: Json, names: Mapping[str, str]) -> dict[str, object]:
    statuses = (body.get("status") or {}).get("containerStatuses") or ()
    return {s["name"]: s.get("containerID") for s in statuses if s["name"] in names}
