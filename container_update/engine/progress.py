# SPDX-License-Identifier: Apache-2.0
"""The progress of an update as plain values: for a file, a database, a web page. Pure."""

from __future__ import annotations

import logging

from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Event, StepResult, StepState
from container_update.model.plan import Plan, Step
from container_update.planning.summary import change_lines

LOG = logging.getLogger(__name__)

PLANNED, RUNNING = "planned", "running"
"""States of a step that has not ended; the others are those of :class:`StepState`."""


def step_events(event: Event) -> list[Json]:
    """Return a value for each step of an event.

    A plan gives all its steps, ``planned``, with their reasons and what they change; a step that
    begins or has ended gives itself, without these. What a step waits for gives nothing.
    """
    if isinstance(event, Plan):
        return [
            {
                **_entry(step.key, step.action.value, PLANNED),
                "reasons": [str(reason) for reason in step.reasons],
                "diff": change_lines(step),
            }
            for step in event.steps
        ]
    if isinstance(event, Step):
        return [_entry(event.key, event.action.value, RUNNING)]
    if not isinstance(event, StepResult):
        return []
    state = PLANNED if event.state is StepState.NOT_STARTED else event.state.value
    step = event.step
    return [_entry(step.key, step.action.value, state, event.message, event.seconds)]


NO_ACTION = "no action"
"""The state of a remark: nothing is done."""


def remarks(plan: Plan) -> list[Json]:
    """Return the notes of a plan as steps: ``not applied`` with field paths, ``note`` else."""
    texts: dict[tuple[str, ObjectKey], list[str]] = {}
    for action, notes in (("not applied", plan.ignored), ("note", plan.notes)):
        for note in notes:
            texts.setdefault((action, note.key), []).append(note.text)
    return [
        _entry(key, action, NO_ACTION, "; ".join(said)) for (action, key), said in texts.items()
    ]


def log_remarks(plan: Plan) -> None:
    """Log what a plan leaves alone: a user of a VNFM does not see the plan."""
    for remark in remarks(plan):
        LOG.info("%s: %s: %s", remark["object"], remark["action"], remark["message"])


def _entry(
    key: ObjectKey, action: str, state: str, message: str = "", seconds: float = 0.0
) -> Json:
    return {
        "object": str(key),
        "action": action,
        "state": state,
        "message": message,
        "seconds": round(seconds, 3),
    }
