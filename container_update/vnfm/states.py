"""The life of an operation occurrence, and what may be asked of it when. Pure.

Source: ETSI GS NFV-SOL 003, 5.6.2 (states and transitions) and 5.4.14 to 5.4.16 (retry, rollback,
fail). There are no grants here, so STARTING only means that nobody has begun yet.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


class State(str, enum.Enum):
    """LcmOperationStateType."""

    STARTING = "STARTING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED_TEMP = "FAILED_TEMP"
    FAILED = "FAILED"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"


class Request(str, enum.Enum):
    """What a client may ask of an occurrence."""

    RETRY = "retry"
    ROLLBACK = "rollback"
    FAIL = "fail"


UNSETTLED = frozenset({State.STARTING, State.PROCESSING, State.ROLLING_BACK, State.FAILED_TEMP})
"""As long as an occurrence is in one of these, its instance has no other."""

RUNNING = frozenset({State.STARTING, State.PROCESSING, State.ROLLING_BACK})
"""Some service works at it, or should."""

AFTER_REQUEST: Mapping[tuple[State, Request], State] = {
    (State.FAILED_TEMP, Request.RETRY): State.PROCESSING,
    (State.FAILED_TEMP, Request.ROLLBACK): State.ROLLING_BACK,
    (State.FAILED_TEMP, Request.FAIL): State.FAILED,
}
"""Every request that is allowed, and the state it leads to."""

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.STARTING: frozenset({State.PROCESSING, State.ROLLED_BACK}),
    State.PROCESSING: frozenset({State.COMPLETED, State.FAILED_TEMP}),
    State.FAILED_TEMP: frozenset({State.PROCESSING, State.ROLLING_BACK, State.FAILED}),
    State.ROLLING_BACK: frozenset({State.ROLLED_BACK, State.FAILED_TEMP}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset(),
    State.ROLLED_BACK: frozenset(),
}
"""Every state, and those that may follow it."""


def after(state: State, request: Request) -> State | None:
    """Return the state that a request leads to; None where it is not allowed."""
    return AFTER_REQUEST.get((state, request))
