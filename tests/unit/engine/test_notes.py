# SPDX-License-Identifier: Apache-2.0
"""What a run notes of its progress, and what a reader believes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from container_update.cluster.operation import Operation, Origin
from container_update.engine.notes import NOT_BEGUN, NOTES_ANNOTATION, Noted, Notes
from container_update.model.objects import ObjectKey
from container_update.model.outcome import StepResult, StepState, StepWait, UndoStarted
from container_update.model.plan import Action
from container_update.planning.steps import ManifestStep

STEP = ManifestStep(ObjectKey("apps", "Deployment", "cnf", "web"), Action.DELETE, {})
RECORD = Operation(
    "ac70",
    "host",
    "2026-01-02T03:04:05+00:00",
    "goal",
    None,
    Origin("update", "ann", "host"),
    (STEP,),
)


def noted(text: str) -> Noted | None:
    return Noted.of({"metadata": {"annotations": {NOTES_ANNOTATION: text}}}, RECORD)


def test_a_reader_gets_what_was_noted() -> None:
    notes = Notes(RECORD, lambda _: None)
    assert notes.text() == ""
    notes(STEP)
    notes(StepWait(STEP.key, "1 of 2 pods\x1b[2J", 1, 2, None, "ErrImagePull"))
    seen = noted(notes.text())
    assert seen is not None
    assert seen.waits == {0: ("1 of 2 pods [2J", 1, 2, "ErrImagePull")}
    assert seen.result(0, STEP) is None
    failed = StepResult(STEP, StepState.FAILED, "ErrImagePull", 1.5)
    notes(failed)
    seen = noted(notes.text())
    assert seen is not None
    assert seen.result(0, STEP) == failed
    notes(UndoStarted("it failed", (STEP,)))
    seen = noted(notes.text())
    assert seen is not None
    assert (seen.undo, seen.result(0, STEP)) == ("it failed", None)


def changed(**values: Any) -> str:
    notes = Notes(RECORD, lambda _: None)
    notes(STEP)
    return json.dumps({**json.loads(notes.text()), **values})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[" * 100_000,
        " " * 100_001 + changed(),
        changed(operation="another"),
        changed(states=""),
        changed(states="?" * len(RECORD.steps)),
        changed(states=NOT_BEGUN * 10_000),
        changed(seconds=[]),
        changed(seconds=["1"] * len(RECORD.steps)),
        changed(waits={"0": ["\x1b[2J", 1, 2, ""]}),
        changed(waits={"x": ["text", 1, 2, ""]}),
        changed(waits={"0": ["x" * 301, 1, 2, ""]}),
        changed(undo=5),
    ],
)
def test_notes_that_another_client_has_written_are_no_notes(text: str) -> None:
    assert noted(text) is None
    assert noted(changed()) is not None
