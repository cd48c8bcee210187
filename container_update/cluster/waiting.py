# SPDX-License-Identifier: Apache-2.0
"""Waiting on live objects: woken by events, with a deadline, giving up early on lasting trouble."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from container_update.cluster.informer import Informer
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.pod_events import KEPT_PENDING, event_text, event_time
from container_update.workloads.readiness import Readiness, RolloutState

Clock = Callable[[], float]
"""Seconds that only grow; ``time.monotonic`` outside tests."""

WaitReport = Callable[[Readiness, float | None], object]
"""Called with the reason of a wait, and after how many seconds that counts as a failure."""

_SHORTEST_LOOK, _LONGEST_LOOK = 0.2, 10.0
"""Seconds; below the first, judging again would be a busy loop where there is no grace period;
above the second, a watch that went silent would be noticed too late."""


class NotReadyError(Exception):
    """A workload did not get ready; the message says what was expected and found."""


class AbortedError(Exception):
    """Waiting was given up because another step failed."""


@dataclass(frozen=True)
class Waiter:
    """What all waits of an update share."""

    informer: Informer
    grace_period: float
    """Seconds that all new pods of a workload may be in trouble."""
    clock: Clock = time.monotonic
    aborted: threading.Event = field(default_factory=threading.Event)

    @property
    def look_again(self) -> float:
        """Seconds after which a workload is judged again, though nothing has changed."""
        return max(self.grace_period / 2, _SHORTEST_LOOK)

    def abort(self) -> None:
        """Wake all waiting threads: another step failed."""
        with self.informer.lock:
            self.aborted.set()
            self.informer.wake()

    def until_done(
        self,
        judge: Callable[[], Readiness],
        deadline: float,
        collections: Iterable[Collection],
        report: WaitReport = lambda _readiness, _gives_up_in: None,
        *,
        key: ObjectKey | None = None,
    ) -> None:
        """Wait until *judge* says done.

        :param judge: called with the informer's lock held, after every change.
        :param deadline: by the clock.
        :param collections: read once more before a timeout is declared, and where their watch was
            silent for long.
        :param report: called, without the informer's lock, when what is waited for is not what it
            was.
        :param key: of a workload: only it and what it controls can change the verdict.
        :raises NotReadyError: failed, failing for the grace period, or too late.
        :raises AbortedError: another step failed.
        """
        give_up, reported, collections = math.inf, None, tuple(collections)
        while True:
            self.informer.ask_silent(collections)
            with self.informer.lock:
                seen = self.informer.changes(key)
                verdict, now = judge(), self.clock()
                if verdict.state is RolloutState.DONE:
                    return
                failing = verdict.state is RolloutState.FAILING
                grace = min(self.grace_period, verdict.patience)
                give_up = min(give_up, now + grace) if failing else math.inf
                if verdict.state is RolloutState.FAILED or now >= give_up:
                    raise NotReadyError(verdict.message)
                if now >= deadline:
                    self._last_read(judge, collections)
                    return
            if verdict != reported:
                report(verdict, give_up - now if failing else None)
                reported = verdict
            look_again = now + min(self.look_again, _LONGEST_LOOK)
            self.pause(min(deadline, give_up, look_again) - now, key, seen)

    def sleep(self, seconds: float) -> None:
        """Wait all of *seconds*, also when something changes; AbortedError: another step failed."""
        deadline = self.clock() + seconds
        while (left := deadline - self.clock()) > 0:
            self.pause(left)

    def pause(self, seconds: float, key: ObjectKey | None = None, seen: int | None = None) -> None:
        """Wait until something changes, at most *seconds*.

        :param key: see :meth:`Informer.wait`, also for *seen*.
        :raises AbortedError: another step failed.
        """
        with self.informer.lock:
            if self.aborted.is_set():
                raise AbortedError
            self.informer.wait(seconds, key, seen)

    def _last_read(self, judge: Callable[[], Readiness], collections: Iterable[Collection]) -> None:
        """Read the objects again and judge by them, because a watch may lag."""
        self.informer.list(collections)
        verdict = judge()
        if verdict.state is not RolloutState.DONE:
            raise NotReadyError(f"not ready in time: {verdict.message}")


# --- pods that the server refuses ---------------------------------------------------------------
# A controller reports that by Events, and in no condition. They stay for an hour: one of them tells
# nothing about now. So what counts is one that is new, or counted again, while pods are lacking.
# Clocks are not compared.

REASON = "FailedCreate"
"""The reason of such an Event, of the controllers of StatefulSets and DaemonSets."""


@dataclass
class RefusedPods:
    """Judges one workload anew whenever it was judged to be progressing."""

    kind: WorkloadKind
    waiter: Waiter
    _next_look: float | None = field(default=None, init=False)
    """None while no pods are lacking."""
    _known: frozenset[tuple[str, str]] | None = field(default=None, init=False)
    """Name and version of the Events at the first look."""
    _newest: str = field(default="", init=False)
    """What the newest Event says."""

    def judge(self, live: Json, verdict: Readiness) -> Readiness:
        """Return the verdict; FAILED where pods have been refused for the grace period."""
        pods = self.waiter.informer.pods_of(live)
        if verdict.state is not RolloutState.PROGRESSING or not self.kind.lacks_pods(live, pods):
            self._next_look, self._known, self._newest = None, None, ""
            return verdict
        now, refused = self.waiter.clock(), False
        if self._next_look is None or now >= self._next_look:
            refused = self._next_look is not None and self._is_refused_again(live)
            self._next_look = now + self.waiter.look_again
        message = ": ".join(filter(None, (verdict.message, self._newest)))
        return Readiness(RolloutState.FAILED if refused else verdict.state, message)

    def _is_refused_again(self, live: Json) -> bool:
        """Read the Events; tell whether there is another one since the first look."""
        events = self.waiter.informer.events_about(live, reason=REASON)
        names = (event["metadata"] for event in events)
        versions = frozenset((each["name"], each["resourceVersion"]) for each in names)
        if events:
            newest = max(events, key=event_time)
            self._newest = f"{REASON}: {newest['message']}"
        if self._known is None:
            self._known = versions
        return not versions <= self._known


# --- pods that cannot start ----------------------------------------------------------------------
# Why a pod has no node or no volume is told by Events alone; its conditions say that it waits.


@dataclass
class PendingPods:
    """Says of one workload, while its pods are pending, why one of them does not start."""

    waiter: Waiter
    _next_look: float | None = field(default=None, init=False)
    """None while no pod is pending."""
    _newest: str = field(default="", init=False)

    def explain(self, live: Json, verdict: Readiness) -> Readiness:
        """Return the verdict with the newest warning about its newest pod that is pending."""
        pods = [
            pod
            for pod in self.waiter.informer.pods_of(live)
            if (pod.get("status") or {}).get("phase") == "Pending"
        ]
        if verdict.state is not RolloutState.PROGRESSING or not pods:
            self._next_look, self._newest = None, ""
            return verdict
        now = self.waiter.clock()
        if self._next_look is not None and now >= self._next_look:
            pod = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
            events = self.waiter.informer.events_about(pod, type="Warning")
            kept = [event for event in events if event.get("reason") in KEPT_PENDING]
            self._newest = event_text(max(kept, key=event_time)) if kept else ""
        if self._next_look is None or now >= self._next_look:
            self._next_look = now + min(self.waiter.look_again, _LONGEST_LOOK)
        return replace(verdict, message=": ".join(filter(None, (verdict.message, self._newest))))
