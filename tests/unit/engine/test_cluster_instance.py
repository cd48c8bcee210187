# SPDX-License-Identifier: Apache-2.0
"""The lease and the journal around a run: what stays behind, and what the next run makes of it."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.journal import Journal
from container_update.cluster.lease import LeaseLock
from container_update.cluster.retry import RetryingCluster
from container_update.engine.cluster_instance import ClusterInstance, JournalledRun
from container_update.engine.fence import TAKEN_OVER
from container_update.engine.goal import Goal, Intent, Observed
from container_update.engine.recovery import ClusterRecovery
from container_update.engine.resume import Named
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Right
from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    LeaseLostError,
    NextStep,
    PlanError,
    UndoIncompleteError,
    UpdateInterruptedError,
)
from container_update.model.objects import (
    INSTANCE_LABEL,
    Collection,
    Json,
    Manifest,
    ObjectKey,
    Source,
)
from container_update.model.operation import Phase
from container_update.model.options import Options
from container_update.model.outcome import StepResult
from container_update.model.plan import Action, Plan
from container_update.planning import permissions
from container_update.planning.steps import ConfigStep
from tests.unit.fakes import Everything, FakeCluster, config_map

OLD, NEW = {"k": "old"}, {"k": "new"}
ONE, TWO = (ObjectKey("", "ConfigMap", "ns", name) for name in ("one", "two"))
LEASE = ObjectKey("coordination.k8s.io", "Lease", "ns", "container-update-i")
JOURNAL = ObjectKey("", "Secret", "ns", "container-update-i")
GOAL = "what is asked for"

Hook = Callable[[], object]


def fake() -> FakeCluster:
    return FakeCluster(config_map("one", OLD))


def at(
    cluster: FakeCluster, verb: str, key: ObjectKey, hook: Hook, nth: int = 1, times: int = 1
) -> None:
    """Call the hook just before such requests take effect, from the nth from now on."""
    count = itertools.count(1)

    def called(now: str, where: ObjectKey) -> None:
        if (now, where) == (verb, key) and nth <= next(count) < nth + times:
            hook()

    cluster.hooks.append(called)


def refuse(*_: object) -> None:
    raise ClusterError("refused by the test", status=422)


def operation(cluster: FakeCluster, **more: Any) -> ClusterInstance:
    options = Options(timeout=2, undo_timeout=1, workers=1, lease_seconds=20)
    return ClusterInstance(RetryingCluster(cluster, 0), "ns", "i", options, **more)


def plan(cluster: FakeCluster) -> Plan:
    """One object is replaced, then another one is created."""
    return Plan(
        "ns",
        "i",
        (
            ConfigStep(
                ONE, Action.REPLACE, copy.deepcopy(cluster.objects[ONE]), config_map("one", NEW)
            ),
            ConfigStep(TWO, Action.CREATE, None, config_map("two", NEW)),
        ),
        def_files=("a.yaml",),
    )


class Asked(Goal):
    """That plan."""

    intent = Intent("ns", "i")

    def digest(self) -> str:
        return GOAL

    def plan(self, observed: object) -> Plan:
        raise AssertionError("the tests have made it")


def run(
    cluster: FakeCluster,
    body: Callable[[JournalledRun], Sequence[StepResult]] = lambda run: run.execution.run(),
    cancel: CancelToken | None = None,
    context: Json | None = None,
    **more: Any,
) -> None:
    informer = Informer(cluster, Everything())
    informer.list({Collection.of(ONE)})
    cancel = CancelToken() if cancel is None else cancel
    instance = operation(cluster, cancel=cancel, **more)
    seen = Observed(instance.cluster, informer)
    made = replace(plan(cluster), context=context or {})
    with instance.begin(Asked(), made, seen) as begun:
        body(begun)


def interrupt(cluster: FakeCluster, **more: Any) -> None:
    """Leave a run behind that has replaced one object and has not created the other."""
    cancel = CancelToken()
    at(cluster, "replace", ONE, lambda: cancel.request("by the test", keep_journal=True))
    with pytest.raises(UpdateInterruptedError):
        run(cluster, cancel=cancel, **more)
    cluster.hooks.clear()
    assert content(cluster) == {"one": NEW}


def content(cluster: FakeCluster) -> dict[str, Any]:
    return {key.name: body["data"] for key, body in cluster.objects.items() if key.kind == ONE.kind}


BEFORE, AFTER = {"one": OLD}, {"one": NEW, "two": NEW}


def assert_ended(cluster: FakeCluster, found: dict[str, Any]) -> None:
    """Nothing of the run is left: no lease, no journal, no label, no owner."""
    assert content(cluster) == found
    assert {key.kind for key in cluster.objects} == {"ConfigMap"}
    for body in cluster.objects.values():
        assert TAKEN_OVER not in body["metadata"].get("labels", {})
        assert "ownerReferences" not in body["metadata"]


def journal(cluster: FakeCluster) -> Journal:
    return Journal(cluster, "ns", "i")


def phase(cluster: FakeCluster) -> Phase | None:
    """The one in the journal; None where there is no journal."""
    record = journal(cluster).read()
    return None if record is None else record.phase


def lose(run: JournalledRun) -> None:
    """Let so much time pass that another run may have the lease."""
    run.lock.clock = lambda: math.inf


# --- a run --------------------------------------------------------------------------------------


def rights(cluster: FakeCluster, *refused: Right) -> None:
    def answer(asked: Sequence[Right]) -> tuple[Right, ...]:
        return tuple(right for right in asked if right in refused)

    cluster.missing_rights = answer  # type: ignore[method-assign]


@pytest.mark.parametrize("resumed", [False, True])
def test_without_the_right_to_release_it_what_is_created_is_never_the_journals(
    resumed: bool,
) -> None:
    cluster = fake()
    rights(cluster, *permissions.to_release(plan(cluster)))
    if resumed:
        interrupt(cluster)
    at(cluster, "replace", TWO, refuse, times=99)
    if resumed:
        operation(cluster).recover()
    else:
        run(cluster)
    assert_ended(cluster, AFTER)


@pytest.mark.parametrize(("refusals", "ends"), [(1, True), (2, False)])
def test_a_journal_that_cannot_be_removed_at_once_is_tried_again_once(
    refusals: int, ends: bool
) -> None:
    cluster = fake()
    at(cluster, "replace", TWO, refuse, times=refusals)
    run(cluster)
    assert content(cluster) == AFTER
    assert (phase(cluster) is None) is ends
    assert LEASE not in cluster.objects
    operation(cluster).recover()
    assert_ended(cluster, AFTER)


def test_a_journal_that_must_not_be_deleted_says_that_its_run_has_ended() -> None:
    """An admission webhook may protect Secrets: the next run must not undo what has succeeded."""
    cluster = fake()
    at(cluster, "delete", JOURNAL, refuse, times=2)
    run(cluster)
    assert phase(cluster) is Phase.END
    operation(cluster).recover(back=True)
    assert_ended(cluster, AFTER)


@pytest.mark.parametrize("when", ["before it ends", "while it ends"])
def test_a_run_that_loses_its_lease_at_its_end_has_not_ended(when: str) -> None:
    cluster = fake()

    def body(run: JournalledRun) -> Sequence[StepResult]:
        results = run.execution.run()
        if when == "before it ends":
            lose(run)
        else:
            at(cluster, "delete", JOURNAL, lambda: lose(run))
        return results

    with pytest.raises(LeaseLostError):
        run(cluster, body)
    assert (JOURNAL in cluster.objects) is (when == "before it ends")


def test_the_end_of_a_run_is_written_while_it_has_the_lease_for_certain() -> None:
    cluster = fake()
    at(cluster, "create", TWO, lambda: at(cluster, "replace", LEASE, take_over(cluster)))
    with pytest.raises(LeaseLostError):
        run(cluster)
    assert phase(cluster) is Phase.UPDATE
    assert "ownerReferences" in cluster.objects[TWO]["metadata"]


def take_over(cluster: FakeCluster) -> Hook:
    def take() -> None:
        lease = cluster.objects[LEASE]
        cluster.put({**lease, "spec": {**lease["spec"], "holderIdentity": "host.2/op-2"}})

    return take


# --- what one left behind -----------------------------------------------------------------------


def test_what_is_being_undone_is_undone_whatever_is_asked() -> None:
    cluster = fake()
    at(cluster, "create", TWO, refuse)
    at(cluster, "replace", ONE, refuse, nth=2, times=99)
    with pytest.raises(UndoIncompleteError):
        run(cluster)
    cluster.hooks.clear()
    at(cluster, "replace", ONE, refuse, nth=2, times=99)  # the first one raises the fence
    with pytest.raises(UndoIncompleteError, match=r"could be put back: ConfigMap ns/one: refuse"):
        ClusterRecovery(operation(cluster), lambda: GOAL).run()
    cluster.hooks.clear()
    assert phase(cluster) is Phase.UNDO
    ClusterRecovery(operation(cluster), lambda: GOAL).run()
    assert_ended(cluster, BEFORE)


def test_a_journal_that_its_run_removes_just_then_leaves_nothing_to_be_done() -> None:
    cluster = fake()
    interrupt(cluster)
    before = copy.deepcopy(cluster.objects[ONE])
    at(cluster, "replace", JOURNAL, lambda: cluster.objects.pop(JOURNAL))
    assert operation(cluster).recover(back=True) is None
    assert cluster.objects == {ONE: before}


def test_a_journal_about_an_object_of_another_instance_is_refused_with_its_name() -> None:
    cluster = fake()
    interrupt(cluster)
    cluster.objects[ONE]["metadata"]["labels"] = {INSTANCE_LABEL: "another"}
    with pytest.raises(PlanError, match=r"found one about ConfigMap ns/one\. No package"):
        operation(cluster).recover(back=True)
    assert content(cluster) == {"one": NEW}


def test_a_change_of_the_package_is_finished_only_by_who_knows_how() -> None:
    cluster = fake()
    interrupt(cluster, context={"vnfd": "v-2"})
    with pytest.raises(ContainerUpdateError, match="a change of the VNF package") as raised:
        operation(cluster).recover()
    assert raised.value.next_step is NextStep.RESUME_OR_ROLLBACK
    assert phase(cluster) is Phase.UPDATE

    def half_way(run: JournalledRun) -> tuple[StepResult, ...]:
        run.execution.run()
        run.note(1, [])
        refuse()
        raise AssertionError

    with pytest.raises(ClusterError):
        operation(cluster).recover(go_on=half_way)
    passed = []

    def go_on(run: JournalledRun) -> tuple[StepResult, ...]:
        passed.append(run.execution.ended)
        return run.execution.run()[:1]

    outcome = operation(cluster).recover(go_on=go_on)
    assert outcome is not None
    assert [result.step.key for result in outcome.results] == [ONE]
    assert passed == [1]
    assert_ended(cluster, AFTER)


def silent(cluster: FakeCluster) -> None:
    """Put a Lease there whose holder has not renewed it for years."""
    lock = LeaseLock(RetryingCluster(cluster, 0), "ns", "i", "op-0", "host.0", 1, CancelToken())
    lock._acquire()
    lease = cluster.objects[LEASE]
    del lease["metadata"]["annotations"]
    times = {"acquireTime": "2019-01-01T00:00:00.0Z", "renewTime": "2020-01-01T00:00:00.0Z"}
    cluster.put({**lease, "spec": {**lease["spec"], **times, "leaseDurationSeconds": 0.1}})


def half_a_journal(cluster: FakeCluster) -> None:
    """Let a run end before its journal is complete."""
    at(cluster, "replace", JOURNAL, refuse)
    at(cluster, "delete", JOURNAL, refuse)
    with pytest.raises(ClusterError):
        run(cluster)
    cluster.hooks.clear()
    assert JOURNAL in cluster.objects


@pytest.mark.parametrize("left", [silent, half_a_journal], ids=["a lease", "half a journal"])
def test_what_a_run_left_that_changed_nothing_is_removed(
    left: Callable[[FakeCluster], None],
) -> None:
    """Except where a new run follows, which does so by itself."""
    cluster = fake()
    left(cluster)
    there = set(cluster.objects)
    assert ClusterRecovery(operation(cluster), lambda: GOAL).run() is None
    assert set(cluster.objects) == there
    assert operation(cluster).recover() is None
    assert_ended(cluster, BEFORE)


def test_the_status_names_who_holds_the_instance_and_whether_it_is_still_heard_of() -> None:
    cluster = fake()
    silent(cluster)
    half_journal = operation(cluster).status()
    assert str(half_journal) == (
        "No operation is under way.\nHeld by host.0/op-0 since 2019-01-01T00:00:00.0Z (expired)."
    )
    del cluster.objects[LEASE]
    half_a_journal(cluster)
    assert operation(cluster).status().leftovers == (JOURNAL,)
    silent(cluster)
    assert operation(cluster).status().leftovers == (JOURNAL,)

    def look() -> None:
        status = operation(cluster).status()
        assert status.record is not None
        assert not status.expired
        assert status.leftovers == ()

    at(cluster, "create", TWO, look)
    operation(cluster).recover()
    run(cluster)
    assert operation(cluster).status().record is None


def test_what_packages_describe_is_known_where_any_is_named() -> None:
    one = Manifest(ONE, {}, Source("one.yaml", 1))
    assert Named({}, (one,)).read_manifests() == (one,)
    assert Named({}, ()).read_manifests() is None
