# SPDX-License-Identifier: Apache-2.0
"""Pods that are to be replaced, and for which their controller waits although they never get ready.

Source: Kubernetes documentation, "StatefulSets", "Forced rollback": the pods have to be deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from container_update.cluster.waiting import Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.workloads.pod_status import is_active, is_held_up, is_ready


class StuckError(Exception):
    """Some pods have to be deleted before anything else is worth waiting for."""

    def __init__(self, pods: list[Json]) -> None:
        super().__init__(", ".join(pod["metadata"]["name"] for pod in pods))
        self.pods = pods


@dataclass
class StuckPods:
    """Finds and deletes these pods of one workload.

    A pod that is not Ready for a moment, as members of a quorum are when another one restarts, is
    none of them.
    """

    cluster: Cluster
    waiter: Waiter
    known: frozenset[str]
    """UIDs of pods that were not Ready when this began."""
    started: frozenset[str] = frozenset()
    """UIDs of pods that were started since the plan: to be replaced on the way back, whatever their
    template."""
    _since: dict[str, float] = field(default_factory=dict, init=False)
    """Since when a pod is not Ready, by the waiter's clock."""
    _deleted: set[str] = field(default_factory=set, init=False)

    def refuse(self, pods: Iterable[Json], to_replace: Collection[str]) -> None:
        """Raise StuckError where a pod that is to be replaced is stuck."""
        uids = self.started.union(to_replace)
        old = (pod for pod in pods if pod["metadata"]["uid"] in uids)
        if stuck := [pod for pod in old if self._is_stuck(pod)]:
            raise StuckError(stuck)

    def _is_stuck(self, pod: Json) -> bool:
        uid, now = pod["metadata"]["uid"], self.waiter.clock()
        if is_ready(pod):
            self._since.pop(uid, None)
        if is_ready(pod) or not is_active(pod) or uid in self._deleted:
            return False
        for_long = now - self._since.setdefault(uid, now) >= self.waiter.grace_period
        return for_long or uid in self.known or is_held_up(pod)

    def delete(self, pods: Iterable[Json]) -> None:
        """Delete pods, which are never found again."""
        for pod in pods:
            key, uid = ObjectKey.of(pod), pod["metadata"]["uid"]
            try:
                self.cluster.delete(key, uid=uid)
            except ClusterError as error:
                now = self.cluster.get(key) if error.status == 409 else pod
                if now is not None and now["metadata"]["uid"] == uid:
                    raise  # else another pod has its name by now
            self._deleted.add(uid)
