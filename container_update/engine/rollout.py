# SPDX-License-Identifier: Apache-2.0
"""Waits for what becomes of written objects: new pods Ready, old ones gone, traffic moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, PendingPods, RefusedPods, Waiter
from container_update.engine.stuck_pods import StuckError, StuckPods
from container_update.engine.writer import OverwrittenError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.outcome import StepWait
from container_update.model.plan import Action
from container_update.planning.steps import ObjectStep
from container_update.planning.steps.new_objects import pod_of
from container_update.planning.update import traffic
from container_update.workloads import ownership
from container_update.workloads.kind import pods_in
from container_update.workloads.kinds import pod
from container_update.workloads.pod_status import problem
from container_update.workloads.readiness import (
    DONE,
    Baseline,
    Readiness,
    RolloutState,
    conditions,
    refusal,
)
from container_update.workloads.registry import kind_of, known_kind
from container_update.workloads.traffic import service_readiness


@dataclass(frozen=True)
class RolloutWaiter:
    """Waits on the live objects of one cluster.

    Every method takes a deadline by the waiter's clock, and raises NotReadyError where the object
    does not get there and AbortedError where another step failed.
    """

    waiter: Waiter
    report: Callable[[StepWait], object] = lambda _: None
    """Called when an object waits for something else than before."""
    _reached: dict[ObjectKey, Callable[[], Readiness]] = field(default_factory=dict)
    """The last condition that was waited for, by object."""
    _losses: dict[ObjectKey, Callable[[Json], str]] = field(default_factory=dict)
    """By object, the written fields that another client has changed."""
    _complete: dict[ObjectKey, Json] = field(default_factory=dict)
    """The objects of which nothing was taken away, as they were at the last look."""

    def expect(self, key: ObjectKey, loss: Callable[[Json], str]) -> None:
        """From now on, end each wait for the object with OverwrittenError where *loss* says so."""
        self._losses[key] = loss
        self._complete.pop(key, None)

    def expect_nothing(self, key: ObjectKey) -> None:
        """End what :meth:`expect` began: another step changes the object."""
        self._losses.pop(key, None)

    def _refuse_loss(self, key: ObjectKey, live: Json | None) -> None:
        loss = self._losses.get(key)
        if loss is None or (live is not None and live is self._complete.get(key)):
            return
        if lost := "was deleted by another client" if live is None else loss(live):
            raise OverwrittenError(f"{key} {lost}")
        if live is not None:
            self._complete[key] = live

    @property
    def informer(self) -> Informer:
        """The live objects that are waited on."""
        return self.waiter.informer

    def until_ready(self, key: ObjectKey, deadline: float, before: Json | None = None) -> None:
        """Wait until a created workload is Ready; *before*: it need not be more so than that."""
        kind = known_kind(key)
        if kind.is_pod:
            self.until_recreated(key, "", deadline, before)
        elif not kind.runs_to_completion:
            restores = None if before is None else kind.counts(before)
            self.until_new(key, Baseline(restores=restores), deadline)
        elif before is None:
            self._until_ended(key, deadline)

    def _until_ended(self, key: ObjectKey, deadline: float) -> None:
        """Wait for a Job that is to be waited for; from then on it may go by its TTL."""
        live = self.informer.get(key)
        if live is None or not known_kind(key).is_waited_for(live):
            self.expect_nothing(key)
            return
        self.until_new(key, Baseline(), deadline)
        self.expect_nothing(key)
        self._reached.pop(key)

    def until_new(self, key: ObjectKey, baseline: Baseline, deadline: float) -> None:
        """Wait until a controller has replaced all pods of the baseline."""
        self.until_replaced(key, lambda _: baseline, deadline)

    def until_replaced(
        self,
        key: ObjectKey,
        baseline: Callable[[Sequence[Json]], Baseline],
        deadline: float,
        stuck: StuckPods | None = None,
    ) -> None:
        """Wait until a controller has replaced pods.

        :param baseline: returns which, of those that the workload owns now.
        :param stuck: deletes those of them that the controller would wait for for ever; None: there
            are none.
        """
        kind, pods_of = known_kind(key), self.informer.pods_of

        def judge(live: Json) -> Readiness:
            pods = pods_of(live)
            before = baseline(pods)
            if stuck is not None:
                to_replace = before.uids - before.allowed - kind.left_alone(live, pods)
                stuck.refuse(pods, to_replace)
            return kind.readiness(live, pods, before)

        while True:
            try:
                self.until(key, judge, deadline)
            except StuckError as error:
                assert stuck is not None, "no other caller raises it"
                stuck.delete(error.pods)
                continue
            except NotReadyError:
                live = self.informer.get(key)
                pods = () if live is None else pods_of(live)
                if live is not None and self._has_room(live, pods, deadline):
                    continue
                if live is None or not kind.is_no_less_ready(live, pods, baseline(pods)):
                    raise
            return

    def _has_room(self, live: Json, pods: Sequence[Json], deadline: float) -> bool:
        """Tell whether the server takes a pod by now that a controller says it refuses: that tries
        again after a pause, which grows to minutes."""
        return (
            bool(refusal(conditions(live)))
            and not any(map(problem, pods))
            and self.waiter.clock() < deadline
            and self.informer.is_accepted(pod_of(live))
        )

    def until_complete(self, key: ObjectKey, baseline: Baseline, deadline: float) -> None:
        """Wait until a controller creates pods from the template that it has now."""
        kind, pods = known_kind(key), self.informer.pods_of
        self.until(key, lambda live: kind.completeness(live, pods(live), baseline), deadline)

    def until_recreated(
        self, key: ObjectKey, old_uid: str, deadline: float, before: Json | None = None
    ) -> None:
        """Wait for a Pod with another UID to be Ready or over, if it was Ready *before*."""
        old = Baseline(frozenset({old_uid}))
        if (
            before is not None
            and pod.judge_new_pod(before, Baseline()).state is not RolloutState.DONE
        ):
            return

        def judge() -> Readiness:
            live = self.informer.get(key)
            self._refuse_loss(key, live)
            return pod.judge_new_pod(live, old)

        self._wait(key, judge, deadline)

    def until_gone(
        self, key: ObjectKey, uid: str, deadline: float, known: frozenset[str] = frozenset()
    ) -> None:
        """Wait until the object with that UID is gone, and all of its pods.

        The garbage collector deletes the pods some time after the object.

        :param known: UIDs of its pods.
        """
        pods = pods_in(key.namespace)

        def judge() -> Readiness:
            live = self.informer.get(key)
            what = ""
            if live is None:
                left = ownership.left_behind(key, self.informer.all(pods), known)
                what = f"{len(left)} of its pods are still there" if left else ""
            elif live["metadata"]["uid"] == uid:
                what = f"{key.kind.lower()} {key.name} is still being deleted"
            return Readiness(RolloutState.PROGRESSING, what) if what else DONE

        self._wait(key, judge, deadline)

    def until_served(self, key: ObjectKey, old: frozenset[str], deadline: float) -> None:
        """Wait until a Service's traffic goes to the ready pods it selects, to none of *old*."""
        slices = Collection("discovery.k8s.io", "EndpointSlice", key.namespace)
        pods = pods_in(key.namespace)

        def judge(live: Json) -> Readiness:
            every = self.informer.all
            return service_readiness(live, every(slices), every(pods), old)

        self.until(key, judge, deadline)

    def until(self, key: ObjectKey, judge: Callable[[Json], Readiness], deadline: float) -> None:
        """Wait until *judge* says done of the live object."""
        kind = kind_of(key)
        refused = RefusedPods(kind, self.waiter) if kind and kind.refusals_are_events else None
        pending = PendingPods(self.waiter) if kind else None

        def judge_live() -> Readiness:
            live = self.informer.get(key)
            self._refuse_loss(key, live)
            if live is None:
                return Readiness(RolloutState.FAILED, f"{key} was deleted by another client")
            verdict = refused.judge(live, judge(live)) if refused else judge(live)
            return pending.explain(live, verdict) if pending else verdict

        self._wait(key, judge_live, deadline)

    def is_still_done(self, key: ObjectKey) -> bool:
        """Tell whether the last condition still holds; True where there was none."""
        with self.informer.lock:
            return key not in self._reached or self._reached[key]().state is RolloutState.DONE

    def wait_again(self, key: ObjectKey, deadline: float) -> None:
        """Wait once more for the last condition."""
        self._wait(key, self._reached[key], deadline)

    def _wait(self, key: ObjectKey, judge: Callable[[], Readiness], deadline: float) -> None:
        self._reached[key] = judge

        def report(readiness: Readiness, gives_up_in: float | None) -> None:
            self.report(_step_wait(self.informer, key, readiness, gives_up_in))

        self.waiter.until_done(
            judge, deadline, watched_collections([key]), report, key=key if kind_of(key) else None
        )


def _step_wait(
    informer: Informer, key: ObjectKey, readiness: Readiness, gives_up_in: float | None = None
) -> StepWait:
    """Return what a step waits for, with the new pods of its workload that are ready."""
    kind, live = kind_of(key), informer.get(key)
    counts = kind.counts(live) if kind is not None and live is not None else None
    ready, desired = (counts.ready, counts.desired) if counts else (0, 0)
    if readiness.ready is not None:
        ready = readiness.ready
    return StepWait(key, readiness.message, ready, desired, gives_up_in, readiness.trouble)


def followed_by(steps: Iterable[ObjectStep]) -> frozenset[Collection]:
    """Return what to watch while steps are carried out: traffic only of Services that stay, and of
    workloads that run to their end only new ones."""
    followed = set()
    for step in steps:
        kind, creates = kind_of(step.key), step.action is Action.CREATE
        if kind is None:
            is_followed = not creates and step.action is not Action.DELETE
        else:
            is_followed = creates or not kind.runs_to_completion
        followed |= {step.key} if is_followed else set()
    return watched_collections(followed)


def watched_collections(keys: Iterable[ObjectKey]) -> frozenset[Collection]:
    """Return what to watch for these: workloads, their pods, and the traffic of Services."""
    watched: set[Collection] = set()
    for key in keys:
        kind = kind_of(key)
        watched |= traffic([key]) if kind is None else kind.watched_collections(key.namespace)
    return frozenset(watched)
