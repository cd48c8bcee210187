# SPDX-License-Identifier: Apache-2.0
"""``container-update watch``: an operation that another client carries out, from outside."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    Outcome,
    Plan,
    PlanError,
    Step,
    StepResult,
    UndoStarted,
    UpdateFailedError,
    UpdateInterruptedError,
    status,
    update,
)
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import Event, ObjectKey, StepState, Watch, attach, main, name_of, watch

OLD = {
    "cm": config_map(setting="old"),
    "d": workload("Deployment", "d", container=ENV),
    "p": workload("Pod", "p"),
}
NEW = {
    "cm": config_map(setting="new"),
    "d": workload("Deployment", "d", container=ENV),
    "p": workload("Pod", "p", image=IMAGES[1]),
}
BAD = {**NEW, "d": workload("Deployment", "d", container=ENV, image=BAD_IMAGE)}


@dataclass
class Held:
    """An update in another thread that waits, at an event of its own, until it may go on."""

    cnf: Cnf
    files: dict[str, str]
    at: Any
    """Tells at which event."""
    cancel: CancelToken = field(default_factory=CancelToken)
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def run(self) -> Outcome:
        request = self.cnf.request(self.files)
        cluster, options = self.cnf.admin, self.cnf.options
        return update(request, cluster, options, self.cancel, self.hold)

    def hold(self, event: Event) -> None:
        if not self.reached.is_set() and self.at(event):
            self.reached.set()
            assert self.released.wait(60)


class Seen(list[Event]):
    """What a watch reports."""

    def states(self, name: str) -> list[str]:
        results = [event for event in self if isinstance(event, StepResult)]
        return [r.state.value for r in results if r.step.key.name == name]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for updates."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def started(pool: ThreadPoolExecutor, held: Held) -> Future[Outcome]:
    running = pool.submit(held.run)
    assert held.reached.wait(60)
    return running


def attached(cnf: Cnf) -> Watch:
    found = attach(cnf.cluster, cnf.options, namespace=cnf.namespace, instance_id=INSTANCE)
    assert found is not None
    end = time.monotonic() + 60

    def pause(_: float) -> None:
        assert time.monotonic() < end, "the watch did not end"
        time.sleep(0.05)

    found.pause = pause
    return found


@pytest.fixture(autouse=True)
def short_lease(cnf: Cnf) -> None:
    """Notes are written at most ten times in the duration of a lease."""
    cnf.options = replace(cnf.options, lease_seconds=3)


def is_begun(name: str) -> Any:
    return lambda event: isinstance(event, Step) and event.key.name == name


def read_only(cnf: Cnf) -> None:
    """Leave the account that watches nothing but the rights to read."""
    bound = cnf.admin.get(role.key(cnf.namespace))
    assert bound is not None
    reading = {"get", "list", "watch"}
    rules = [{**rule, "verbs": sorted(reading & {*rule["verbs"]})} for rule in bound["rules"]]
    cnf.admin.replace({**bound, "rules": [rule for rule in rules if rule["verbs"]]})


def test_an_update_is_followed_until_it_has_finished_with_read_rights_alone(
    cnf: Cnf, pool: ThreadPoolExecutor
) -> None:
    cnf.instantiate(**OLD)
    read_only(cnf)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    seen = Seen()
    told: list[str] = []

    def release_when_configuration_is_done(event: Event) -> None:
        seen.append(event)
        if seen.states("cm"):
            told.append(str(status(cnf.admin, **cnf.where)).splitlines()[0])
            held.released.set()

    outcome = attached(cnf).follow(release_when_configuration_is_done)
    assert {r.state for r in running.result().results} == {StepState.DONE}
    assert {r.state for r in outcome.results} == {StepState.DONE}
    assert told[0].endswith(", in progress:")
    assert isinstance(seen[0], Plan)
    assert len(seen[0].packages) == 2
    assert seen[0].packages == running.result().plan.packages
    for name in ("cm", "d", "p"):
        assert seen.states(name) == ["done"]
    order = [event.step.key.name for event in seen.of(StepResult)]
    assert order[0] == "cm"


def test_an_update_that_fails_is_followed_until_it_is_undone(
    cnf: Cnf, pool: ThreadPoolExecutor
) -> None:
    cnf.instantiate(**OLD)
    cnf.options = replace(cnf.options, grace_period=2)
    held = Held(cnf, BAD, lambda event: isinstance(event, UndoStarted))
    running = pool.submit(held.run)
    seen = Seen()
    until(lambda: attach(cnf.cluster, namespace=cnf.namespace, instance_id=INSTANCE) is not None)

    def release_when_the_undo_is_seen(event: Event) -> None:
        seen.append(event)
        if isinstance(event, UndoStarted):
            held.released.set()

    outcome = attached(cnf).follow(release_when_the_undo_is_seen)
    assert isinstance(running.exception(), UpdateFailedError)
    (undo,) = seen.of(UndoStarted)
    assert "ImagePull" in undo.cause
    assert seen.states("d")[-1] == "undone"
    assert seen.states("cm")[-1] == "undone"
    assert {r.state for r in outcome.results} <= {StepState.UNDONE, StepState.NOT_STARTED}


def test_who_looks_first_during_an_undo_is_told_of_all_steps(
    cnf: Cnf, pool: ThreadPoolExecutor
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, BAD, lambda event: getattr(event, "state", None) is StepState.UNDONE)
    running = started(pool, held)
    seen = Seen()

    def release_when_the_undo_is_seen(event: Event) -> None:
        seen.append(event)
        if isinstance(event, UndoStarted):
            held.released.set()

    attached(cnf).follow(release_when_the_undo_is_seen)
    assert isinstance(running.exception(), UpdateFailedError)
    (undo,) = seen.of(UndoStarted)
    assert sorted(step.key.name for step in undo.steps) == ["cm", "d", "p"]


def test_an_undo_between_two_looks_is_told_by_the_history(
    cnf: Cnf, pool: ThreadPoolExecutor
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, BAD, is_begun("d"))
    running = started(pool, held)
    watched = attached(cnf)
    held.released.set()
    assert isinstance(running.exception(), UpdateFailedError)
    seen = Seen()
    outcome = watched.follow(seen.append)
    (undo,) = seen.of(UndoStarted)
    assert "ImagePull" in undo.cause
    assert {r.state for r in outcome.results} == {StepState.UNDONE}


def test_where_no_history_is_kept_the_end_is_not_known(cnf: Cnf, pool: ThreadPoolExecutor) -> None:
    cnf.instantiate(**OLD)
    cnf.options = replace(cnf.options, history=0)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    watched = attached(cnf)
    held.released.set()
    running.result()
    outcome = watched.follow(lambda _: None)
    assert not outcome.of_state(StepState.DONE)
    assert not outcome.of_state(StepState.UNDONE)


def test_an_operation_that_nobody_goes_on_with_is_interrupted(
    cnf: Cnf, pool: ThreadPoolExecutor, kubeconfig: str, capfd: pytest.CaptureFixture[str]
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    held.cancel.request("for a test", keep_journal=True)
    held.released.set()
    assert isinstance(running.exception(), UpdateInterruptedError)
    with pytest.raises(UpdateInterruptedError, match="its lease is gone"):
        attached(cnf).follow(lambda _: None)
    assert command(cnf, kubeconfig)[0] == 10
    error = " ".join(capfd.readouterr().err.split())
    assert f"container-update resume --kubeconfig {kubeconfig}" in error
    assert f"--namespace {cnf.namespace}" in error


def shown(cnf: Cnf, kubeconfig: str) -> str:
    """What ``status`` says, in one line."""
    out = io.StringIO()
    where = ["-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE]
    assert main(["status", *where], out) == 0
    return " ".join(out.getvalue().split())


def test_the_status_says_how_far_each_step_is(
    cnf: Cnf, pool: ThreadPoolExecutor, kubeconfig: str
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    there = f"{cnf.namespace}/"
    until(lambda: f"running: Deployment {there}d: roll" in shown(cnf, kubeconfig))
    text = shown(cnf, kubeconfig)
    assert f"done: ConfigMap {there}cm: replace" in text
    assert "resume" not in text
    states = status(cnf.admin, **cnf.where).as_dict()["steps"]
    assert {s["name"]: s["state"] for s in states}["cm"] == "done"
    held.released.set()
    running.result()


def test_the_status_of_an_interrupted_operation_names_the_commands_that_end_it(
    cnf: Cnf, pool: ThreadPoolExecutor, kubeconfig: str
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    held.cancel.request("for a test", keep_journal=True)
    held.released.set()
    assert isinstance(running.exception(), UpdateInterruptedError)
    text = shown(cnf, kubeconfig)
    where = f"--kubeconfig {kubeconfig} --namespace {cnf.namespace}"
    for verb in ("resume", "rollback"):
        assert f"container-update {verb} {where}" in text


def test_a_lease_that_is_not_renewed_any_more_is_noticed_while_watching(
    cnf: Cnf, pool: ThreadPoolExecutor
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)
    watched = attached(cnf)
    key = ObjectKey("coordination.k8s.io", "Lease", cnf.namespace, name_of(INSTANCE))
    names: list[str] = []

    def take() -> bool:
        lease = cnf.admin.get(key)
        assert lease is not None
        lease["spec"] |= {"renewTime": "2020-01-01T00:00:00.000000Z", "holderIdentity": "gone/1"}
        lease["metadata"]["annotations"] = {}
        try:
            cnf.admin.replace(lease)
        except ClusterError as error:
            if error.status != 409:
                raise
            return False  # its holder has renewed it meanwhile
        return True

    def expire(event: Event) -> None:
        names.append(type(event).__name__)
        until(take)

    with pytest.raises(UpdateInterruptedError, match="its lease has expired") as raised:
        watched.follow(expire)
    assert names[0] == "Plan"
    assert len(raised.value.outcome.results) == 3
    held.released.set()
    assert running.exception() is not None


def command(cnf: Cnf, kubeconfig: str, *more: str) -> tuple[int, str]:
    out = io.StringIO()
    where = ["-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE]
    return main(["status", "--watch", *where, *more], out), out.getvalue()


def test_where_nothing_is_under_way_the_status_says_so(cnf: Cnf, kubeconfig: str) -> None:
    assert command(cnf, kubeconfig) == (2, "No operation is under way.\n")
    with pytest.raises(PlanError, match="does not exist"):
        attach(cnf.admin, namespace="nope")


@pytest.mark.parametrize("style", ["plain", "json"])
def test_the_command_shows_plan_progress_and_end(
    cnf: Cnf,
    kubeconfig: str,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    style: str,
) -> None:
    cnf.instantiate(**OLD)
    held = Held(cnf, NEW, is_begun("d"))
    running = started(pool, held)

    def attach_and_release(*arguments: Any, **more: Any) -> Watch | None:
        found = attach(*arguments, **more)
        held.released.set()
        return found

    monkeypatch.setattr(watch, "attach", attach_and_release)
    status, text = command(cnf, kubeconfig, "--progress", style)
    running.result()
    assert status == 0
    if style == "json":
        events = [json.loads(line) for line in text.splitlines()]
        assert events[0]["event"] == "plan"
        assert "operation" in events[0]["plan"]["target"]
        assert (events[-1]["kind"], len(events[-1]["results"])) == ("Outcome", 3)
    else:
        assert text.startswith("Cluster ")
        assert text.count("key setting: changed") == 1
        assert "has finished: 3 steps done." in text
