# SPDX-License-Identifier: Apache-2.0
"""Waiting: until done, at most until the deadline, and no longer than trouble may last."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import AbortedError, NotReadyError, Waiter
from container_update.workloads.readiness import DONE, Readiness, RolloutState
from tests.unit.fakes import Everything, FakeCluster

PROGRESSING = Readiness(RolloutState.PROGRESSING, "1 of 2 pods are ready")
FAILING = Readiness(RolloutState.FAILING, "container a: ImagePullBackOff")
FAILED = Readiness(RolloutState.FAILED, "ProgressDeadlineExceeded")


class ScriptedInformer(Informer):
    """Every wait takes a second of the test's clock; there is nothing to wait for."""

    def __init__(self) -> None:
        super().__init__(FakeCluster(), Everything())
        self.now = 0.0
        self.reads = 0
        self.reports: list[tuple[Readiness, float | None]] = []

    def wait(self, seconds: float, key: object = None, seen: int | None = None) -> None:
        self.now += min(1.0, seconds)

    def list(self, collections: object) -> None:
        self.reads += 1


def wait(*verdicts: Readiness, deadline: float = 60.0, grace: float = 5.0) -> ScriptedInformer:
    """Wait on these verdicts, one a second, the last one for ever."""
    informer = ScriptedInformer()
    waiter = Waiter(informer, grace, clock=lambda: informer.now)

    def judge() -> Readiness:
        looks = int(informer.now) + informer.reads
        return verdicts[min(looks, len(verdicts) - 1)]

    waiter.until_done(judge, deadline, [], lambda *report: informer.reports.append(report))
    return informer


def test_it_returns_as_soon_as_it_is_done() -> None:
    assert wait(PROGRESSING, PROGRESSING, DONE).now == 2.0


def test_a_failure_is_raised_at_once_with_its_cause() -> None:
    with pytest.raises(NotReadyError, match="ProgressDeadlineExceeded"):
        wait(PROGRESSING, FAILED, DONE)


def test_trouble_that_passes_within_the_grace_period_is_no_failure() -> None:
    assert wait(FAILING, FAILING, FAILING, PROGRESSING, FAILING, FAILING, DONE).now == 6.0


def test_trouble_that_lasts_for_the_grace_period_is_raised_with_its_cause() -> None:
    informer = ScriptedInformer()
    waiter = Waiter(informer, 7.0, clock=lambda: informer.now)
    with pytest.raises(NotReadyError, match="ImagePullBackOff"):
        waiter.until_done(lambda: FAILING, 60.0, [])
    assert informer.now == 7.0


def test_trouble_that_no_waiting_ends_is_raised_sooner() -> None:
    informer = ScriptedInformer()
    waiter = Waiter(informer, 30.0, clock=lambda: informer.now)
    with pytest.raises(NotReadyError, match="ImagePullBackOff"):
        waiter.until_done(lambda: replace(FAILING, patience=5.0), 60.0, [])
    assert informer.now == 5.0


def test_a_timeout_tells_what_was_waited_for() -> None:
    with pytest.raises(NotReadyError, match="not ready in time: 1 of 2 pods are ready"):
        wait(PROGRESSING, deadline=3.0)


def test_it_reports_what_it_waits_for_when_that_changes_and_when_it_gives_up() -> None:
    informer = wait(PROGRESSING, PROGRESSING, FAILING, FAILING, PROGRESSING, DONE)
    assert informer.reports == [(PROGRESSING, None), (FAILING, 5.0), (PROGRESSING, None)]


def test_it_reports_without_the_lock_so_that_a_slow_report_delays_no_event() -> None:
    informer = ScriptedInformer()
    waiter = Waiter(informer, 5.0, clock=lambda: informer.now)
    free: list[bool] = []

    def take_lock() -> bool:
        taken = informer.lock.acquire(timeout=5)
        if taken:
            informer.lock.release()
        return taken

    def report(*_: object) -> None:
        with ThreadPoolExecutor() as pool:
            free.append(pool.submit(take_lock).result())

    waiter.until_done(lambda: DONE if informer.now else PROGRESSING, 60.0, [], report)
    assert free == [True]


def test_a_last_read_can_still_find_it_done() -> None:
    informer = wait(PROGRESSING, PROGRESSING, PROGRESSING, PROGRESSING, DONE, deadline=3.0)
    assert informer.reads == 1
    assert informer.now == 3.0


def test_it_gives_up_when_another_step_failed() -> None:
    informer = ScriptedInformer()
    waiter = Waiter(informer, 5.0, clock=lambda: informer.now)
    waiter.abort()
    with pytest.raises(AbortedError):
        waiter.until_done(lambda: PROGRESSING, 60.0, [])
