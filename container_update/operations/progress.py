"""What an update tells while it runs, as plain values: for a file, a database, a page. Pure."""

from __future__ import annotations

from container_update.model.objects import Json
from container_update.model.outcome import Event, StepState
from container_update.model.plan import Plan, Step

PLANNED, RUNNING = "planned", "running"
"""States of a step that has not ended; the others are those of :class:`StepState`."""


def lines(event: Event) -> list[Json]:
    """One value for each step that the event is about.

    A plan has all of them, ``planned``, with their reasons; a step that begins or ended has one,
    without reasons.
    """
    if isinstance(event, Plan):
        reasons = ([str(reason) for reason in step.reasons] for step in event.steps)
        lines = zip(event.steps, reasons, strict=True)
        return [{**_line(step, PLANNED), "reasons": told} for step, told in lines]
    if isinstance(event, Step):
        return [_line(event, RUNNING)]
    state = PLANNED if event.state is StepState.NOT_STARTED else event.state.value
    return [_line(event.step, state, event.message, event.seconds)]


def _line(step: Step, state: str, message: str = "", seconds: float = 0.0) -> Json:
    return {
        "object": str(step.key),
        "action": step.action.value,
        "state": state,
        "message": message,
        "seconds": round(seconds, 3),
    }
