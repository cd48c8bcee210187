"""What an update tells while it runs, as plain values: for a file, a database, a page. Pure."""

from __future__ import annotations

from container_update.model import Json, Plan, StepResult, StepState

PLANNED = "planned"
"""The state of a step that was not begun; the others are those of :class:`StepState`."""


def lines(event: Plan | StepResult) -> list[Json]:
    """One value for each step that the event is about.

    A plan has all of them, ``planned``, with their reasons; a result has one, without reasons.
    """
    if isinstance(event, Plan):
        return [
            {
                "object": str(step.key),
                "action": step.action.value,
                "state": PLANNED,
                "reasons": [str(reason) for reason in step.reasons],
                "message": "",
                "seconds": 0.0,
            }
            for step in event.steps
        ]
    state = PLANNED if event.state is StepState.NOT_STARTED else event.state.value
    return [
        {
            "object": str(event.step.key),
            "action": event.step.action.value,
            "state": state,
            "message": event.message,
            "seconds": round(event.seconds, 3),
        }
    ]
