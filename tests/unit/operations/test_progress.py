"""What happens, as plain values."""

from __future__ import annotations

import pytest

from container_update.model.outcome import Event, StepResult, StepState
from container_update.model.plan import Plan
from container_update.operations import progress
from tests.unit.cli.reports.test_text_report import CANARY, PLAN, RECREATE, ROLL


def test_a_plan_has_every_step_with_its_reasons_and_no_content() -> None:
    lines = progress.step_events(PLAN)
    assert CANARY not in str(lines)
    assert [line["object"] for line in lines] == [str(step.key) for step in PLAN.steps]
    assert {line["state"] for line in lines} == {"planned"}
    assert lines[3]["reasons"] == ["container c: image app:1 -> app:2", "env E of container c"]
    assert progress.step_events(Plan("ns", None, ())) == []


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
    assert "reasons" not in line
    assert CANARY not in str(line)
