# SPDX-License-Identifier: Apache-2.0
"""The order of an undo, on a cluster in memory, and what it does where a step fails."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import AbortedError, NotReadyError, Waiter
from container_update.engine import undo
from container_update.engine.context import ExecutionContext, Reverted
from container_update.engine.rollout import RolloutWaiter
from container_update.engine.undo import Undo
from container_update.engine.writer import ChangedByAnotherError, ObjectWriter
from container_update.model.errors import ClusterError, LeaseLostError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import StepResult, StepState
from container_update.model.plan import Action
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep, RestartStep
from tests.unit.fakes import Everything, FakeCluster

JOB = ObjectKey("batch", "CronJob", "ns", "old")
SCALER = ObjectKey("autoscaling", "HorizontalPodAutoscaler", "ns", "scaler")


def body(key: ObjectKey, target: str = "") -> Json:
    spec: Json = {"scaleTargetRef": {"name": target}} if target else {"jobTemplate": {"spec": {}}}
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{key.group}/v1", "kind": key.kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("state", ["there", "gone", "being deleted"])
def test_what_was_removed_is_there_again_before_anything_points_at_it(state: str) -> None:
    """One that is being deleted is as good as gone, though it can be read."""
    cluster = FakeCluster(body(JOB), body(SCALER, "new"))
    before = copy.deepcopy(cluster.objects[JOB])
    old_scaler = {**cluster.objects[SCALER], "spec": {"scaleTargetRef": {"name": "old"}}}
    if state == "gone":
        del cluster.objects[JOB]
    if state == "being deleted":
        cluster.objects[JOB]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    looks = []

    def let_go(verb: str, key: ObjectKey) -> None:
        if state == "being deleted" and (verb, key) == ("get", JOB):
            looks.append(verb)
            if len(looks) == 3:
                del cluster.objects[JOB]

    cluster.hooks.append(let_go)
    steps = (
        ManifestStep(SCALER, Action.SWITCH, old_scaler, content=body(SCALER, "new")),
        ManifestStep(JOB, Action.DELETE, before),
    )
    waiter = Waiter(Informer(cluster, Everything()), 1.0)
    context = ExecutionContext(ObjectWriter(cluster, waiter), RolloutWaiter(waiter))
    results = Undo(context, workers=2, drain_seconds=0).run(steps, waiter.clock() + 10)
    assert {result.state for result in results} == {StepState.UNDONE}
    writes = [call.split()[0] for call in cluster.calls if not call.startswith("get")]
    assert writes == (["replace"] if state == "there" else ["create", "replace"])
    assert "deletionTimestamp" not in cluster.objects[JOB]["metadata"]


def key(kind: str, name: str) -> ObjectKey:
    return ObjectKey("apps" if kind == "Deployment" else "", kind, "ns", name)


CHANGE: tuple[ObjectStep, ...] = (
    ManifestStep(key("Service", "held"), Action.HOLD, {}),
    ConfigStep(key("ConfigMap", "first"), Action.REPLACE, {}, {}),
    ConfigStep(key("ConfigMap", "second"), Action.REPLACE, {}, {}),
    ConfigStep(key("ConfigMap", "added"), Action.CREATE, None, {}),
    ManifestStep(key("Deployment", "new"), Action.CREATE, None, digest="of the new"),
    RestartStep(key("Deployment", "reader"), Action.ROLL, {}, digest="of the second"),
    RestartStep(key("Deployment", "other"), Action.ROLL, {}),
    ManifestStep(key("Service", "door"), Action.SWITCH, {}),
    ManifestStep(key("ConfigMap", "removed"), Action.DELETE, {"metadata": {}}),
    ManifestStep(key("Deployment", "old"), Action.DELETE, {"metadata": {}}),
)
"""The steps of a change of the package, of every kind, in the order of the plan."""


class Way:
    """The way back with executors that answer as told, and a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *live: str) -> None:
        self.events: list[str] = []
        """What was reverted, waited for and paused for."""
        self.answers: dict[str, list[Reverted | Exception]] = {}
        """For a name what its executor does at each attempt; RESTORED when there is no more."""
        self.now = 100.0
        bodies = (body(key("Deployment", name)) for name in live)
        waiter = Waiter(Informer(FakeCluster(), Everything()), 1.0, lambda: self.now)
        context = ExecutionContext(
            ObjectWriter(FakeCluster(*bodies), waiter), RolloutWaiter(waiter)
        )
        self.waiter, self.undo = waiter, Undo(context, workers=1, drain_seconds=7.0)
        monkeypatch.setattr(undo, "executor_of", lambda *_: SimpleNamespace(revert=self._revert))
        monkeypatch.setattr(Waiter, "sleep", lambda _, seconds: self._wait(f"sleep {seconds:g}"))
        monkeypatch.setattr(Waiter, "pause", lambda _, seconds: self._wait(f"pause {seconds:g}"))

    def _wait(self, what: str) -> None:
        self.events.append(what)
        if self.waiter.aborted.is_set():
            raise AbortedError

    def _revert(self, step: ObjectStep, deadline: float) -> Reverted:
        self.events.append(step.key.name)
        assert deadline == 500
        self.now += 3
        answer = next(iter(self.answers.get(step.key.name, ())), Reverted.RESTORED)
        del self.answers.get(step.key.name, [])[:1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def go(self, *names: str) -> dict[str, StepResult]:
        """Revert the change, or these steps of it; what became of each."""
        steps = [step for step in CHANGE if not names or step.key.name in names]
        results = self.undo.run(steps, 500)
        assert len(results) == len(steps)
        return {result.step.key.name: result for result in results}


@pytest.mark.parametrize("old_is", ["there", "gone"])
def test_traffic_is_taken_back_and_drained_before_the_new_pods_go(
    monkeypatch: pytest.MonkeyPatch, old_is: str
) -> None:
    """And what a workload reads is there before it; where it is gone, it is the first of all. What
    was created goes last, when nothing uses it."""
    way = Way(monkeypatch, *(["old"] if old_is == "there" else []))
    results = way.go()
    begin = {
        "there": ["door", "removed", "second", "first", "old"],
        "gone": ["removed", "second", "first", "old", "door"],
    }[old_is]
    assert way.events == [*begin, "sleep 7", "other", "reader", "new", "held", "added"]
    found = {(r.state, r.message, r.seconds) for r in results.values()}
    assert found == {(StepState.UNDONE, "restored", 3.0)}


@pytest.mark.parametrize(
    ("names", "door"),
    [
        (["first", "new", "door"], Reverted.UNCHANGED),
        (["first", "other", "door"], Reverted.RESTORED),
        (["first", "new"], Reverted.RESTORED),
    ],
    ids=["traffic was not at the new pods", "there are no new pods", "there is no traffic"],
)
def test_nothing_is_drained_where_no_new_pods_had_traffic(
    monkeypatch: pytest.MonkeyPatch, names: list[str], door: Reverted
) -> None:
    way = Way(monkeypatch)
    way.answers["door"] = [door]
    way.go(*names)
    assert sorted(way.events) == sorted(names)


WAITING = "waits until its configuration is as before"
STILL_USED = "kept: it serves in place of the old pods, which are not back"


@pytest.mark.parametrize(
    ("failing", "kept"),
    [
        ("door", {"new": STILL_USED}),
        ("first", {"reader": WAITING, "old": WAITING, "new": STILL_USED}),
        ("removed", {"reader": WAITING, "old": WAITING, "new": STILL_USED}),
        ("old", {}),
        ("other", {}),
    ],
)
def test_a_workload_stays_where_what_it_depends_on_could_not_be_put_back(
    monkeypatch: pytest.MonkeyPatch, failing: str, kept: dict[str, str]
) -> None:
    way = Way(monkeypatch, "old")
    way.answers[failing] = [NotReadyError("not ready in time")]
    results = way.go()
    failed = {n: r.message for n, r in results.items() if r.state is StepState.UNDO_FAILED}
    assert failed == {failing: "not ready in time", **kept}
    assert {name for name in way.events if " " not in name} == results.keys() - kept.keys()


FULL = ClusterError("the disk is full", status=507)


@pytest.mark.parametrize(
    ("answers", "attempts", "state", "message"),
    [
        ([FULL], 2, StepState.UNDONE, "restored"),
        ([FULL, FULL, Reverted.OF_OTHERS], 3, StepState.UNDONE, Reverted.OF_OTHERS.value),
        ([FULL] * 3, 3, StepState.UNDO_FAILED, "the disk is full"),
        ([FULL, NotReadyError("late")], 2, StepState.UNDO_FAILED, "late"),
        ([ChangedByAnotherError("theirs")], 1, StepState.UNDO_FAILED, "theirs"),
        ([AbortedError()], 1, StepState.UNDO_FAILED, "the lease was lost"),
        ([LeaseLostError("another has it")], 1, StepState.UNDO_FAILED, "the lease was lost"),
    ],
)
def test_only_what_the_server_refuses_is_tried_again_and_at_most_twice(
    monkeypatch: pytest.MonkeyPatch,
    answers: list[Reverted | Exception],
    attempts: int,
    state: StepState,
    message: str,
) -> None:
    way = Way(monkeypatch)
    way.answers["first"] = answers
    result = way.go("first")["first"]
    assert (result.state, result.message, result.seconds) == (state, message, 3.0 * attempts)
    assert way.events == ["first", *["pause 0.2", "first"] * (attempts - 1)]


def test_without_the_lease_nothing_more_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lost while the new pods are drained."""
    way = Way(monkeypatch, "old")
    monkeypatch.setattr(way.waiter.aborted, "is_set", lambda: "sleep 7" in way.events)
    results = way.go("first", "new", "other", "door")
    assert way.events == ["door", "first", "sleep 7"]
    for name, result in results.items():
        kept = (StepState.UNDO_FAILED, "the lease was lost")
        expected = (StepState.UNDONE, "restored") if name in ("door", "first") else kept
        assert (result.state, result.message) == expected
