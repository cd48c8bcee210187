"""The progress of an update as plain values: for a file, a database, a web page. Pure."""

from __future__ import annotations

from container_update.model.objects import Json
from container_update.model.outcome import Event, StepState
from container_update.model.plan import Plan, Step

PLANNED, RUNNING = "planned", "running"
"""States of a step that has not ended; the others are those of :class:`StepState`."""


def step_events(event: Event) -> list[Json]:
    """Return a value for each step of an event.

    For a plan these are all its steps, ``planned``, with their reasons; for a step that begins or
    has ended it is that one, without reasons.
    """
    if isinstance(event, Plan):
        return [
            {**_values(step, PLANNED), "reasons": [str(reason) for reason in step.reasons]}
            for step in event.steps
        ]
    if isinstance(event, Step):
        return [_values(event, RUNNING)]
    state = PLANNED if event.state is StepState.NOT_STARTED else event.state.value
    return [_values(event.step, state, event.message, event.seconds)]


def _values(step: Step, state: str, message: str = "", seconds: float = 0.0) -> Json:
    return {
        "object": str(step.key),
        "action": step.action.value,
        "state": state,
        "message": message,
        "seconds": round(seconds, 3),
    }
