"""Replaces single pods: by eviction where a controller makes another, else by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from container_update.cluster.execution.context import ExecutionContext
from container_update.cluster.waiting import NotReadyError
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.planning import diff
from container_update.workloads.pod_status import is_finished
from container_update.workloads.readiness import Baseline

_EVICTION_PAUSE = 2.0
"""Seconds until an eviction that a disruption budget forbade is tried again, if nothing changes."""


@dataclass(frozen=True)
class PodReplacer:
    """Replaces pods of one cluster; raises as RolloutWaiter does."""

    context: ExecutionContext

    def evict_one_by_one(self, key: ObjectKey, old: Sequence[Json], deadline: float) -> None:
        """Evict these pods of a workload in turn, each replacement Ready before the next goes."""
        waiting = [pod for pod in old if not is_finished(pod)]
        waiting.sort(key=_ordinal, reverse=True)
        gone = Baseline.of(old)
        while waiting:
            self._evict(waiting.pop(0), deadline)
            allowed = frozenset(pod["metadata"]["uid"] for pod in waiting)
            self.context.rollout.until_new(key, Baseline(gone.uids, allowed=allowed), deadline)
        self.context.rollout.until_new(key, gone, deadline)

    def _evict(self, pod: Json, deadline: float) -> None:
        key, uid = ObjectKey.of(pod), pod["metadata"]["uid"]
        cluster, waiter = self.context.cluster, self.context.waiter
        while True:
            try:
                cluster.evict(key, uid=uid)
                return
            except ClusterError as error:
                if error.status not in (409, 429):
                    raise
                live = cluster.get(key) if error.status == 409 else pod
                if live is None or live["metadata"]["uid"] != uid:
                    return  # another pod has that name by now
                left = deadline - waiter.clock()
                if left <= 0:
                    raise NotReadyError(f"not ready in time: {error}") from error
                waiter.pause(min(left, error.retry_after or _EVICTION_PAUSE))

    def replace(self, key: ObjectKey, old_uid: str, new: Json, deadline: float) -> None:
        """Delete the Pod with that UID, wait until it is gone, create *new*, wait until Ready."""
        context = self.context
        context.cluster.delete(key, uid=old_uid)
        context.rollout.until_gone(key, old_uid, deadline)
        created = context.writer.create(new, lambda live: diff.images(live) == diff.images(new))
        context.rollout.observe(created)
        context.rollout.until_recreated(key, old_uid, deadline)


def _ordinal(pod: Json) -> tuple[int, str]:
    """Order a StatefulSet's pods as its controller does, which takes the last one first."""
    labels = pod["metadata"].get("labels") or {}
    index = labels.get("apps.kubernetes.io/pod-index", "")
    return (int(index) if index.isdigit() else 0, pod["metadata"]["name"])
