# SPDX-License-Identifier: Apache-2.0
"""What happens, as plain values."""

from __future__ import annotations

import pytest

from container_update.engine import progress
from container_update.model.errors import ContainerUpdateError
from container_update.model.outcome import Event, StepResult, StepState, UndoStarted
from container_update.model.plan import Note, Plan
from container_update.model.reporter import reporter
from tests.unit.reports.test_plan_report import CANARY, PLAN, RECREATE, ROLL


def test_a_plan_has_every_step_with_its_reasons_and_no_content() -> None:
    lines = progress.step_events(PLAN)
    assert CANARY not in str(lines)
    assert [line["object"] for line in lines] == [str(step.key) for step in PLAN.steps]
    assert {line["state"] for line in lines} == {"planned"}
    assert lines[3]["reasons"] == [
        "container c: image app:1 -> app:2",
        "spec.x[E].value differs (f:23)",
    ], "no value"
    assert lines[0]["diff"] == ["@@ -1 +0,0 @@ a", "-1"]
    assert lines[2]["diff"] == ["@@ key k: new @@"], "a Secret"
    assert lines[3]["diff"] == ['-spec.x[E].value: "<hello>"', '+spec.x[E].value: "hi"']


@pytest.mark.parametrize("event", [Plan("ns", None, ()), UndoStarted("why", ())])
def test_what_has_no_step_is_no_value(event: Event) -> None:
    assert progress.step_events(event) == []


@pytest.mark.parametrize(
    ("event", "state", "message", "seconds"),
    [
        (ROLL, "running", "", 0.0),
        (StepResult(ROLL, StepState.DONE, seconds=1.23456), "done", "", 1.235),
        (StepResult(ROLL, StepState.FAILED, "no image"), "failed", "no image", 0.0),
        (StepResult(ROLL, StepState.UNDONE, "restored"), "undone", "restored", 0.0),
        (StepResult(ROLL, StepState.NOT_STARTED), "planned", "", 0.0),
        (StepResult(RECREATE, StepState.DONE), "done", "", 0.0),
    ],
)
def test_a_step_that_begins_or_ended_is_one_value(
    event: Event, state: str, message: str, seconds: float
) -> None:
    (line,) = progress.step_events(event)
    assert (line["state"], line["message"], line["seconds"]) == (state, message, seconds)
    assert not {"reasons", "diff"} & line.keys()
    assert CANARY not in str(line)


def test_what_is_left_alone_is_one_value_for_an_object_with_paths_and_no_content() -> None:
    key = PLAN.steps[0].key
    notes = (Note(key, "spec.replicas changed"), Note(key, "spec.paused changed"))
    plan = Plan("ns", None, (), ignored=notes, notes=(Note(key, "drift: image"),))
    common = {"object": str(key), "state": "no action", "seconds": 0.0}
    paths = "spec.replicas changed; spec.paused changed"
    assert progress.remarks(plan) == [
        {**common, "action": "not applied", "message": paths},
        {**common, "action": "note", "message": "drift: image"},
    ]


class Broken:
    """A progress callback that fails at every event."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        raise self.error


EVENTS: tuple[Event, ...] = (PLAN, ROLL, StepResult(ROLL, StepState.DONE))


def test_an_exception_of_a_callback_is_logged_once_with_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = Broken(RuntimeError("no room"))
    report = reporter(reporter(broken))
    for event in EVENTS:
        report(event)
    assert tuple(broken.events) == EVENTS
    (record,) = caplog.records
    assert f"{Broken.__module__}.Broken failed" in record.message


def test_only_a_plan_can_be_refused_by_a_callback() -> None:
    report = reporter(Broken(ContainerUpdateError("not stored")))
    with pytest.raises(ContainerUpdateError, match="not stored"):
        report(PLAN)
    for event in EVENTS[1:]:
        report(event)
