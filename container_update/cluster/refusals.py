# SPDX-License-Identifier: Apache-2.0
"""Pods that the server refuses, where a controller reports that by Events and in no condition.

Events stay for an hour: one of them tells nothing about now. So what counts is one that is new, or
counted again, while pods are lacking. Clocks are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from container_update.cluster.waiting import Waiter
from container_update.model.objects import Json
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import Readiness, RolloutState

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
        """Return the verdict; FAILED where pods have been refused for the grace period.

        The Events are read every half of the grace period while pods are lacking, and then only: a
        rollout in which the server refuses nothing costs no request more.
        """
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
        versions = frozenset(map(_version, events))
        if events:
            newest = max(events, key=lambda event: str(event.get("lastTimestamp")))
            self._newest = f"{REASON}: {newest['message']}"
        if self._known is None:
            self._known = versions
        return not versions <= self._known


def _version(event: Json) -> tuple[str, str]:
    return event["metadata"]["name"], event["metadata"]["resourceVersion"]
