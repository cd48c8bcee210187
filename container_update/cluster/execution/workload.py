"""How one object is written, and how one workload gets from its old pods to new ones.

What is here can be called for the way forward and for the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import INSTANCE_LABEL, Collection, Json, ObjectKey
from container_update.model.plan import Action, Step
from container_update.planning import diff, manifest_edits, step_edits
from container_update.workloads import ownership, readiness
from container_update.workloads.pod_status import is_finished
from container_update.workloads.readiness import DONE, Baseline, Readiness, State

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
    resumed: bool = False
    """A run before this one was cut short: objects may be as the steps want them already."""
    _reached: dict[ObjectKey, Callable[[], Readiness]] = field(default_factory=dict)
    """What was waited for last, of each object."""

    # --- writing --------------------------------------------------------------------------------

    def write_config(self, step: Step) -> None:
        """Create, replace or recreate a ConfigMap or Secret.

        :raises ChangedByAnotherError: it is neither as planned nor as wanted.
        """
        live = self._as_planned(step)
        if live is not None and live is not step.before and step_edits.is_applied(step, live):
            return
        if live is None:
            self._create_config(step)
        elif step.action is Action.REPLACE:
            self.write(step, live, step_edits.desired, step_edits.is_untouched)
        elif step.action is Action.RECREATE and step_edits.is_untouched(step, live):
            self.recreate(step, step_edits.desired(step, live))
        else:
            raise ChangedByAnotherError(f"{step.key} was changed by another since it was read")

    def _as_planned(self, step: Step) -> Json | None:
        """The live object: what the plan was made from, unless time has passed since."""
        return self.cluster.get(step.key) if self.resumed else step.before

    def _create_config(self, step: Step) -> None:
        assert step.content is not None, "a configuration step always has its manifest"
        if step.action is Action.REPLACE:
            raise ChangedByAnotherError(f"{step.key} was deleted by another")
        if step.before is not None:
            body = step_edits.new_object(
                step_edits.desired(step, step.before), step.key.namespace, {}
            )
        else:
            labels = {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}
            body = step_edits.new_object(step.content, step.key.namespace, labels)
        self.create(body, lambda live: step_edits.is_applied(step, live))

    def recreate(self, step: Step, body: Json) -> None:
        """Delete the object with the UID in *body* and create it with that content."""
        self.cluster.delete(step.key, uid=body["metadata"]["uid"])
        again = step_edits.new_object(body, step.key.namespace, {})
        self.create(again, lambda live: diff.content(live) == diff.content(body))

    def create(self, body: Json, is_ours: Callable[[Json], bool]) -> Json:
        """Create it; if it is there already it may be the answer that got lost.

        :raises ChangedByAnotherError: what is there is not *is_ours*.
        """
        try:
            return self.cluster.create(body)
        except ClusterError as error:
            key = ObjectKey.of(body)
            live = self.cluster.get(key) if error.status == 409 else None
            if error.status != 409 or live is None:
                raise
            if not is_ours(live):
                raise ChangedByAnotherError(f"{key} was created by another") from error
            return live

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

    def restart(self, step: Step, old_pods: frozenset[str], deadline: float) -> None:
        """Write the workload and wait until all it owns is new.

        :param old_pods: UIDs of pods that are known to be from before.
        :raises NotReadyError: it did not get there.
        :raises ChangedByAnotherError: it is neither as planned nor as wanted.
        """
        assert step.before is not None, "a workload to restart is live"
        if step.action is Action.RECREATE_POD:
            self._recreate_pod(step, step.before, deadline)
            return
        live = self._as_planned(step)
        if live is None or not step_edits.is_applied(step, live):
            owned = self.pods(step.before)
            old_pods |= {pod["metadata"]["uid"] for pod in owned}
        written = self.write(step, live, step_edits.desired, step_edits.is_untouched)
        if written["metadata"]["resourceVersion"] == step.before["metadata"]["resourceVersion"]:
            return  # admission made of it what was there: nothing restarts
        self.waiter.informer.observe(written)
        if step.whole and manifest_edits.same_template(step.before, written):
            old_pods = frozenset()  # what changed restarts no pod
        if step.action is Action.RESTART_CONTAINERS:
            baseline = Baseline.of([step.before], tuple(step.images))
            self.until(step.key, lambda live: readiness.pod_restarted(live, baseline), deadline)
        elif step.action is Action.ROLL:
            self.until_new(step.key, Baseline(old_pods), deadline)
        elif step.action is Action.EVICT:
            self.until_complete(step.key, deadline)
            old = [pod for pod in self.pods(written) if _is_old(step, pod, old_pods)]
            self.evict_one_by_one(step.key, old, deadline)

    def _recreate_pod(self, step: Step, before: Json, deadline: float) -> None:
        new = self._new_pod(step, before)
        live = self._as_planned(step)
        old_uid = before["metadata"]["uid"]
        if live is not None and live["metadata"]["uid"] != old_uid:
            if diff.images(live) != diff.images(new):
                raise ChangedByAnotherError(f"{step.key} was made again by another")
            self.until_recreated(step.key, old_uid, deadline)
        else:
            self.replace_pod(step.key, old_uid, new, deadline)

    def _new_pod(self, step: Step, before: Json) -> Json:
        if not step.whole or step.content is None:
            return step_edits.recreated_pod(before, step.images)
        labels = {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}
        return step_edits.new_object(step.content, step.key.namespace, labels)

    def pods(self, live: Json) -> tuple[Json, ...]:
        """The pods that the workload owns now."""
        return self.waiter.informer.pods_of(live)

    def until_new(self, key: ObjectKey, baseline: Baseline, deadline: float) -> None:
        """Wait until a controller has replaced all pods of the baseline."""
        judge = readiness.CONTROLLERS[key.kind]
        self.until(key, lambda live: judge(live, self.pods(live), baseline), deadline)

    def until_complete(self, key: ObjectKey, deadline: float) -> None:
        """Wait until a controller replaces pods by the template that it has now."""
        self.until(key, lambda live: readiness.complete(live, self.pods(live)), deadline)

    def evict_one_by_one(self, key: ObjectKey, old: Sequence[Json], deadline: float) -> None:
        """Evict these pods in turn, each replacement Ready before the next goes."""
        waiting = [pod for pod in old if not is_finished(pod)]
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
                if error.status not in (409, 429):
                    raise
                live = self.cluster.get(key) if error.status == 409 else pod
                if live is None or live["metadata"]["uid"] != uid:
                    return  # another pod has that name by now
                left = deadline - self.waiter.clock()
                if left <= 0:
                    raise NotReadyError(f"not ready in time: {error}") from error
                self.waiter.pause(min(left, error.retry_after or _EVICTION_PAUSE))

    def replace_pod(self, key: ObjectKey, old_uid: str, new: Json, deadline: float) -> None:
        """Delete the Pod with that UID, wait until it is gone, create *new*, wait until Ready."""
        self.cluster.delete(key, uid=old_uid)
        self.until_gone(key, old_uid, deadline)
        created = self.create(new, lambda live: diff.images(live) == diff.images(new))
        self.waiter.informer.observe(created)
        self.until_recreated(key, old_uid, deadline)

    def until_recreated(self, key: ObjectKey, old_uid: str, deadline: float) -> None:
        """Wait until a Pod of that name with another UID is Ready, or at its end."""
        old = Baseline(frozenset({old_uid}))
        self._wait(key, lambda: readiness.pod_recreated(self._live(key), old), deadline)

    def until_gone(self, key: ObjectKey, uid: str, deadline: float) -> None:
        """Wait until the object with that UID is there no more, and none of its pods serves.

        The garbage collector deletes the pods some time after the object.
        """
        pods = Collection("", "Pod", key.namespace)

        def judge() -> Readiness:
            live = self._live(key)
            what = ""
            if live is None:
                left = ownership.left_behind(key, self.waiter.informer.all(pods))
                what = f"{len(left)} pods are still there" if left else ""
            elif live["metadata"]["uid"] == uid:
                what = f"{key.kind.lower()} {key.name} is still being deleted"
            return Readiness(State.PROGRESSING, what) if what else DONE

        self._wait(key, judge, deadline)

    # --- waiting --------------------------------------------------------------------------------

    def until_served(self, key: ObjectKey, old: frozenset[str], deadline: float) -> None:
        """Wait until a Service's traffic goes to the ready pods it selects, to none of *old*."""
        informer = self.waiter.informer
        slices = Collection("discovery.k8s.io", "EndpointSlice", key.namespace)
        pods = Collection("", "Pod", key.namespace)
        self.until(
            key,
            lambda live: readiness.service(live, informer.all(slices), informer.all(pods), old),
            deadline,
        )

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
        self._reached[key] = judge
        followed = [Collection.of(key), Collection("", "Pod", key.namespace)]
        if key.kind == "Deployment":
            followed.append(Collection("apps", "ReplicaSet", key.namespace))
        if key.kind == "Service":
            followed.append(Collection("discovery.k8s.io", "EndpointSlice", key.namespace))
        self.waiter.until_done(judge, deadline, set(followed))

    def is_still_done(self, key: ObjectKey) -> bool:
        """What was waited for last is still so; True where nothing was."""
        with self.waiter.informer.changed:
            return key not in self._reached or self._reached[key]().state is State.DONE

    def wait_again(self, key: ObjectKey, deadline: float) -> None:
        """Wait once more for what was waited for last; NotReadyError, AbortedError."""
        self._wait(key, self._reached[key], deadline)


def _is_old(step: Step, pod: Json, old_pods: frozenset[str]) -> bool:
    """Known to be, or made from the old template after the plan was (scaled up, evicted)."""
    made_since = not step.whole and not step_edits.is_applied(step, pod)
    return pod["metadata"]["uid"] in old_pods or made_since


def _ordinal(pod: Json) -> tuple[int, str]:
    """A StatefulSet's pods go from the last to the first, as its controller does it."""
    labels = pod["metadata"].get("labels") or {}
    index = labels.get("apps.kubernetes.io/pod-index", "")
    return (int(index) if index.isdigit() else 0, pod["metadata"]["name"])
