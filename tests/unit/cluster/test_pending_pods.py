# SPDX-License-Identifier: Apache-2.0
"""Why a pod that stays pending does not start, as Events tell it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import PendingPods, Waiter
from container_update.model.objects import Json
from container_update.workloads.readiness import Readiness, RolloutState
from tests.unit.fakes import Everything, FakeCluster

POD: Json = {"metadata": {"name": "w-1", "namespace": "ns"}, "status": {"phase": "Pending"}}
PROGRESSING = Readiness(RolloutState.PROGRESSING, "0 of 1 pods are ready")


class Events(Informer):
    """An informer without a network, with one pending pod."""

    def __init__(self, events: Sequence[Json]) -> None:
        super().__init__(FakeCluster(), Everything())
        self.events, self.now = tuple(events), 0.0

    def pods_of(self, _: Json) -> tuple[Json, ...]:
        return (POD,)

    def events_about(self, _: Json, **_fields: str) -> tuple[Json, ...]:
        return self.events


def event(reason: str, message: str, **times: str | None) -> Json:
    return {"reason": reason, "message": message, **times}


MOUNT = event("FailedMount", 'secret "gone" not found', lastTimestamp="2026-11-29T07:00:00Z")
# the scheduler gives the precise time alone
NODE = event("FailedScheduling", "no node", lastTimestamp=None, eventTime="2026-11-29T06:00:00.5Z")
COMMAND = event("Failed", 'exec: "pl4nted": not found', lastTimestamp="2026-11-29T08:00:00Z")
TOLD = {
    "a missing Secret": ([MOUNT], ': FailedMount: secret "gone" not found'),
    "no node": ([NODE], ": FailedScheduling: no node"),
    "the newer one of both": ([NODE, MOUNT], ': FailedMount: secret "gone" not found'),
    "nothing that may have a value of a Secret": ([COMMAND], ""),
}


@pytest.mark.parametrize(("events", "told"), TOLD.values(), ids=TOLD)
def test_the_newest_reason_is_told_from_the_second_look_on(
    events: Sequence[Json], told: str
) -> None:
    informer = Events(events)
    pending = PendingPods(Waiter(informer, 10.0, clock=lambda: informer.now))
    assert pending.explain({}, PROGRESSING).message == PROGRESSING.message
    informer.now = 20.0
    assert pending.explain({}, PROGRESSING).message == f"{PROGRESSING.message}{told}"
