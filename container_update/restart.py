"""How one object is written, and how one workload gets from its old pods to new ones.

What is here can be called for the way forward and for the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from container_update import edits, readiness
from container_update.errors import ClusterError
from container_update.model import (
    INSTANCE_LABEL,
    Action,
    Cluster,
    Collection,
    Json,
    ObjectKey,
    Step,
)
from container_update.readiness import DONE, Baseline, Readiness, State
from container_update.waiting import NotReadyError, Waiter

_WRITE_ATTEMPTS = 5
_EVICTION_PAUSE = 2.0
"""Seconds until an eviction that a disruption budget forbade is tried again, if nothing changes."""


class ChangedByAnotherError(Exception):
    """What a step is to change was changed by somebody else since the plan was made."""


@dataclass(frozen=True)
class Restarter:
    """Writes objects of one cluster and waits for what becomes of them."""

    cluster: Cluster
    waiter: Waiter
    instance_id: str | None = None

    # --- writing --------------------------------------------------------------------------------

    def write_config(self, step: Step) -> None:
        """Create, replace or recreate a ConfigMap or Secret."""
        assert step.content is not None, "a configuration step always has its manifest"
        if step.before is None:
            labels = {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}
            self.cluster.create(edits.new_object(step.content, step.key.namespace, labels))
        elif step.action is Action.RECREATE:
            self.recreate(edits.desired(step, step.before))
        else:
            self.write(step, step.before, edits.desired, edits.is_untouched)

    def recreate(self, body: Json) -> None:
        """Delete the object with the UID in *body* and create it with that content."""
        key = ObjectKey.of(body)
        self.cluster.delete(key, uid=body["metadata"]["uid"])
        self.cluster.create(edits.new_object(body, key.namespace, {}))

    def write(
        self,
        step: Step,
        live: Json | None,
        edit: Callable[[Step, Json], Json],
        is_ours: Callable[[Step, Json], bool],
    ) -> Json:
        """Replace the live object by the edited one; on a conflict read it again and go on.

        :param live: the object as it was read last, None where there was none.
        :param edit: from the live object to the wanted one.
        :param is_ours: nobody else changed what the step is about.
        :returns: the object as it is in the cluster now.
        :raises ChangedByAnotherError: somebody else did.
        """
        for _ in range(_WRITE_ATTEMPTS):
            if live is None:
                raise ChangedByAnotherError(f"{step.key} was deleted by another")
            wanted = edit(step, live)
            if wanted == live:
                return live
            if not is_ours(step, live):
                raise ChangedByAnotherError(f"{step.key} was changed by another since it was read")
            try:
                return self.cluster.replace(wanted)
            except ClusterError as error:
                if error.status != 409:
                    raise
            live = self.cluster.get(step.key)
        raise ChangedByAnotherError(f"{step.key} is changed by others all the time")

    # --- restarting -----------------------------------------------------------------------------

    def restart(self, step: Step, deadline: float) -> None:
        """Write the workload and wait until all it owns is new.

        :raises NotReadyError: it did not get there.
        """
        assert step.before is not None, "a workload to restart is live"
        if step.action is Action.RECREATE_POD:
            new = edits.recreated_pod(step.before, step.images)
            self.replace_pod(step.key, step.before["metadata"]["uid"], new, deadline)
            return
        before = self.pods(step.before)
        written = self.write(step, step.before, edits.desired, edits.is_untouched)
        if written["metadata"]["resourceVersion"] == step.before["metadata"]["resourceVersion"]:
            return  # admission made of it what was there: nothing restarts
        self.waiter.informer.observe(written)
        if step.action is Action.RESTART_CONTAINERS:
            baseline = Baseline.of([step.before], tuple(step.images))
            self.until(step.key, lambda live: readiness.pod_restarted(live, baseline), deadline)
        elif step.action is Action.ROLL:
            self.until_new(step.key, Baseline.of(before), deadline)
        elif step.action is Action.EVICT:
            self.evict_one_by_one(step.key, before, deadline)

    def pods(self, live: Json) -> tuple[Json, ...]:
        """The pods that the workload owns now."""
        return self.waiter.informer.pods_of(live)

    def until_new(self, key: ObjectKey, baseline: Baseline, deadline: float) -> None:
        """Wait until a controller has replaced all pods of the baseline."""
        judge = readiness.CONTROLLERS[key.kind]
        self.until(key, lambda live: judge(live, self.pods(live), baseline), deadline)

    def evict_one_by_one(self, key: ObjectKey, old: Sequence[Json], deadline: float) -> None:
        """Evict these pods in turn, each replacement Ready before the next goes."""
        waiting = [pod for pod in old if not readiness.is_finished(pod)]
        waiting.sort(key=_ordinal, reverse=True)
        gone = Baseline.of(old)
        while waiting:
            self._evict(waiting.pop(0), deadline)
            allowed = frozenset(pod["metadata"]["uid"] for pod in waiting)
            self.until_new(key, Baseline(gone.uids, allowed=allowed), deadline)
        self.until_new(key, gone, deadline)

    def _evict(self, pod: Json, deadline: float) -> None:
        key, uid = ObjectKey.of(pod), pod["metadata"]["uid"]
        while True:
            try:
                self.cluster.evict(key, uid=uid)
                return
            except ClusterError as error:
                if error.status == 409:  # another pod has that name by now
                    return
                if error.status != 429:
                    raise
                left = deadline - self.waiter.clock()
                if left <= 0:
                    raise NotReadyError(f"not ready in time: {error}") from error
                self.waiter.pause(min(left, error.retry_after or _EVICTION_PAUSE))

    def replace_pod(self, key: ObjectKey, old_uid: str, new: Json, deadline: float) -> None:
        """Delete the Pod with that UID, wait until it is gone, create *new*, wait until Ready."""
        old = Baseline(frozenset({old_uid}))
        self.cluster.delete(key, uid=old_uid)
        self.until_gone(key, old_uid, deadline)
        self.waiter.informer.observe(self.cluster.create(new))
        self._wait(key, lambda: readiness.pod_recreated(self._live(key), old), deadline)

    def until_gone(self, key: ObjectKey, uid: str, deadline: float) -> None:
        """Wait until the Pod with that UID is there no more."""

        def judge() -> Readiness:
            live = self._live(key)
            if live is None or live["metadata"]["uid"] != uid:
                return DONE
            return Readiness(State.PROGRESSING, f"pod {key.name} is still being deleted")

        self._wait(key, judge, deadline)

    # --- waiting --------------------------------------------------------------------------------

    def _live(self, key: ObjectKey) -> Json | None:
        return self.waiter.informer.get(key)

    def until(self, key: ObjectKey, judge: Callable[[Json], Readiness], deadline: float) -> None:
        """Wait until *judge* says done of the live object."""

        def judge_live() -> Readiness:
            live = self._live(key)
            if live is None:
                return Readiness(State.FAILED, f"{key} was deleted by another")
            return judge(live)

        self._wait(key, judge_live, deadline)

    def _wait(self, key: ObjectKey, judge: Callable[[], Readiness], deadline: float) -> None:
        followed = [Collection.of(key), Collection("", "Pod", key.namespace)]
        if key.kind == "Deployment":
            followed.append(Collection("apps", "ReplicaSet", key.namespace))
        self.waiter.until_done(judge, deadline, set(followed))


def _ordinal(pod: Json) -> tuple[int, str]:
    """A StatefulSet's pods go from the last to the first, as its controller does it."""
    labels = pod["metadata"].get("labels") or {}
    index = labels.get("apps.kubernetes.io/pod-index", "")
    return (int(index) if index.isdigit() else 0, pod["metadata"]["name"])
