# SPDX-License-Identifier: Apache-2.0
"""What is shown while an operation runs."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import replace

import pytest
import rich.live

from container_update.cli.terminal import progress
from container_update.cli.terminal.progress import Running, clock_text
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import ContainerUpdateError, UpdateFailedError
from container_update.model.objects import ObjectKey
from container_update.model.outcome import (
    Diagnosis,
    Event,
    Outcome,
    ResumeStarted,
    StepResult,
    StepState,
    StepWait,
    UndoStarted,
)
from container_update.model.plan import Plan, Step
from container_update.reports.lines import Line
from tests.unit.reports.test_plan_report import DEPLOYMENT, PLAN, REPLACE, RESTART, ROLL

TROUBLE = 'ImagePullBackOff "upf:2"'
WAIT = StepWait(
    DEPLOYMENT, "pod d-1: ImagePullBackOff (7 of 12 pods are ready)", 7, 12, 30.0, TROUBLE
)
REFUSED = StepWait(DEPLOYMENT, "no room (0 of 12 pods are there)", 0, 12, 30.0)
BETTER = StepWait(DEPLOYMENT, "8 of 12 pods are ready: pod d-1 is not Ready", 8, 12)
DRAINED = StepWait(DEPLOYMENT, "its pods end their requests, for 15 s")
DONE = StepResult(ROLL, StepState.DONE, seconds=2.0)


def running(*events: tuple[float, Event]) -> Running:
    under_way = Running(100.0)
    for now, event in events:
        under_way.take(event, now)
    return under_way


STATES = {
    "nothing yet": ((), 103.0, ["  reading the packages and the cluster, 3 s elapsed"]),
    "a step that has begun": (
        ((101, PLAN), (102, ROLL)), 165.0,
        ["  Deployment ns/d  1:03", "  0 of 5 steps done, 1 under way, 1:05 elapsed"],
    ),
    "a workload that is in trouble, and when that is a failure": (
        ((101, PLAN), (102, ROLL), (103, WAIT)), 115.0,
        [f"  Deployment ns/d  new 7/12  {TROUBLE}  undo in 18 s  {WAIT.message}",
         "  0 of 5 steps done, 1 under way, 15 s elapsed"],
    ),
    "trouble that passed": (
        ((101, PLAN), (102, ROLL), (103, WAIT), (104, BETTER)), 105.0,
        ["  Deployment ns/d  new 8/12  pod d-1 is not Ready  3 s",
         "  0 of 5 steps done, 1 under way, 5 s elapsed"],
    ),
    "trouble without a word for it": (
        ((101, PLAN), (102, ROLL), (103, REFUSED)), 115.0,
        [f"  Deployment ns/d  new 0/12  {REFUSED.message}  undo in 18 s",
         "  0 of 5 steps done, 1 under way, 15 s elapsed"],
    ),
    "trouble on the way back, where all pods count": (
        ((101, PLAN), (102, UndoStarted("why", (ROLL,))), (103, WAIT)), 115.0,
        [f"  Deployment ns/d  ready 7/12  {TROUBLE}  fails in 18 s  {WAIT.message}",
         "  undoing: 0 of 1 step done, 1 under way, 15 s elapsed"],
    ),
    "a step that has ended": (
        ((101, PLAN), (102, ROLL), (103, DONE)), 105.0,
        ["  1 of 5 steps done, 0 under way, 5 s elapsed"],
    ),
    "the worst first, and more than there is room for": (
        ((101, PLAN), (101, RESTART), (102, ROLL), (103, WAIT)), 104.0,
        [f"  Deployment ns/d  new 7/12  {TROUBLE}  undo in 29 s  {WAIT.message}",
         "  0 of 5 steps done, 2 under way, 4 s elapsed, 1 more not shown"],
    ),
    "what a step waits for before it begins": (
        ((101, PLAN), (102, DRAINED)), 105.0,
        ["  Deployment ns/d  its pods end their requests, for 15 s  3 s",
         "  0 of 5 steps done, 1 under way, 5 s elapsed"],
    ),
    "what is looked at again after its step": (
        ((101, PLAN), (102, ROLL), (103, DONE), (104, BETTER)), 105.0,
        ["  1 of 5 steps done, 0 under way, 5 s elapsed"],
    ),
    "an undo": (
        ((101, PLAN), (102, ROLL), (103, UndoStarted("it failed", (ROLL,)))), 104.0,
        ["  Deployment ns/d  1 s", "  undoing: 0 of 1 step done, 1 under way, 4 s elapsed"],
    ),
    "a step that failed, while it is undone": (
        ((101, PLAN), (102, ROLL), (103, DONE), (104, UndoStarted("why", (ROLL,))), (105, BETTER)),
        106.0,
        ["  Deployment ns/d  ready 8/12  pod d-1 is not Ready  2 s",
         "  undoing: 0 of 1 step done, 1 under way, 6 s elapsed"],
    ),
    "an operation that is finished after an interruption": (
        ((101, ResumeStarted("it was interrupted", (ROLL, RESTART))), (102, DONE)), 104.0,
        ["  finishing: 1 of 2 steps done, 0 under way, 4 s elapsed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "now", "expected"), STATES.values(), ids=STATES)
def test_what_is_under_way(
    events: tuple[tuple[float, Event], ...], now: float, expected: list[str]
) -> None:
    assert [str(line) for line in running(*events).lines(now, most=1)] == expected


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59.9, "59 s"), (60, "1:00"), (3723, "1:02:03")]
)
def test_a_duration_is_written_as_people_read_it(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_without_a_terminal_each_step_is_a_line_when_it_ends() -> None:
    out = io.StringIO()
    with progress.show_progress(out) as report:
        for event in (PLAN, ROLL, WAIT, DONE):
            report(event)
    assert out.getvalue().splitlines()[0] == "Configuration:"
    assert out.getvalue().splitlines()[-1] == "  done: Deployment ns/d: roll (2.0 s)"


def test_without_a_terminal_nothing_is_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.01)
    spoken = threading.Event()

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            if "new 7/12" in text:
                spoken.set()
            return super().write(text)

    with progress.show_progress(Pipe()) as report:
        for event in (PLAN, ROLL):
            report(event)
        end = time.monotonic() + 30
        while not spoken.is_set() and time.monotonic() < end:  # events without a line come often
            report(WAIT)
        assert spoken.is_set()


def test_an_undo_says_why_and_then_what_was_put_back() -> None:
    out = io.StringIO()
    with progress.show_progress(out) as report:
        report(UndoStarted("Deployment ns/d failed", (ROLL,)))
        report(StepResult(ROLL, StepState.UNDONE, "restored"))
    assert out.getvalue().splitlines() == [
        "Undoing 1 step: Deployment ns/d failed",
        "  undone: Deployment ns/d: roll: restored",
    ]


def test_a_failure_shows_what_became_of_each_step_and_each_of_them_once() -> None:
    out, undone = io.StringIO(), StepResult(ROLL, StepState.UNDONE)
    outcome = Outcome(PLAN, (undone, StepResult(REPLACE, StepState.UNDONE)))

    def fail() -> None:
        with progress.show_progress(out) as report:
            report(undone)
            raise UpdateFailedError(outcome, "it failed")

    with pytest.raises(UpdateFailedError):
        fail()
    assert out.getvalue().splitlines() == [
        "  undone: Deployment ns/d: roll",
        "  undone: ConfigMap ns/cm: replace",
    ]


def test_events_for_programs_are_one_json_object_a_line() -> None:
    out = io.StringIO()
    with progress.show_progress(out, progress.JSON) as report:
        for event in (PLAN, ROLL, WAIT, DONE, UndoStarted("why", ()), ResumeStarted("why", ())):
            report(event)
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "plan", "step", "waiting", "result", "undo", "resume",
    ]  # fmt: skip
    assert {event["apiVersion"] for event in events} == {"container-update/v1"}
    assert events[2]["failsIn"] == 30.0


def test_none_shows_nothing_and_a_plan_is_approved_all_the_same() -> None:
    out, approved = io.StringIO(), []
    with progress.show_progress(out, progress.NONE, approve=approved.append) as report:
        report(PLAN)
        report(ROLL)
    assert (out.getvalue(), approved) == ("", [PLAN])


def test_a_plan_is_approved_after_it_was_shown_and_one_without_steps_is_not() -> None:
    out = io.StringIO()

    def refuse(plan: Plan) -> None:
        assert "Restarts:" in out.getvalue()
        raise ContainerUpdateError(f"no, not {plan.namespace}")

    with progress.show_progress(out, approve=refuse) as report:
        report(Plan("ns", None, ()))
        with pytest.raises(ContainerUpdateError, match="not ns"):
            report(PLAN)


def test_what_a_second_pod_reports_as_well_is_told_once() -> None:
    def failed(step: Step, pod: str, *log: str) -> StepResult:
        found = Diagnosis(ObjectKey("", "Pod", "ns", pod), "c", "Error", ("BackOff: again",), log)
        return StepResult(step, StepState.FAILED, f"pod {pod}, container c: Error", 0.0, found)

    out = io.StringIO()
    with progress.show_progress(out, progress.PLAIN) as show:
        show(failed(ROLL, "d-1", "no licence"))
        show(failed(RESTART, "p-1", "no licence"))
        show(failed(REPLACE, "q-1", "another cause"))
    assert out.getvalue().count("failed: ") == 3
    assert out.getvalue().count("| no licence") == 1
    assert out.getvalue().count("| another cause") == 1
    assert out.getvalue().count("BackOff: again") == 2


def test_a_narrow_terminal_cuts_a_long_trouble_before_the_deadline() -> None:
    trouble = 'ImagePullBackOff "session-management-missing:1.2.4"'
    wait = StepWait(ROLL.key, "0 of 3 pods", 0, 3, 30.0, trouble)
    line = str(next(iter(running((100, ROLL), (100, wait)).lines(100, most=1, width=60))))
    assert "ImagePullBackOff" in line[:60]
    assert "…  undo in 30 s" in line[:60]


@pytest.mark.parametrize("width", [79, 60, 42])
def test_a_narrow_terminal_cuts_the_name_and_the_rest_before_the_trouble(width: int) -> None:
    long = ObjectKey("apps", "Deployment", "core", "session-management-function-with-a-long-name")
    wait = StepWait(long, "pod p, container c: ErrImagePull: no such image", 0, 3, 30.0, "ErrPull")
    under_way = running((100, replace(ROLL, key=long)), (100, wait))
    line = str(next(iter(under_way.lines(100, most=1, width=width))))
    assert "new 0/3  ErrPull  undo in 30 s" in line[:width]
    assert "a-long-name" in line or width == 42


class Terminal(io.StringIO):
    """What is taken for a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_anew_while_lines_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor would be moved by what is not on the terminal yet, and a line would be lost."""
    monkeypatch.setattr(progress, "_REFRESH_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    drawn, show = threading.Event(), Screen.show
    found = []

    def show_slowly(screen: Screen, lines: Iterable[Line]) -> None:
        drawn.clear()
        found.append(drawn.wait(0.2))
        show(screen, lines)

    monkeypatch.setattr(Screen, "show", show_slowly)
    monkeypatch.setattr(rich.live.Live, "refresh", lambda _: drawn.set())
    with progress.show_progress(Terminal(), progress.LIVE) as view:
        view(ROLL)
        assert drawn.wait(10), "it is drawn again and again"
        view(DONE)
    assert found == [False, False]
