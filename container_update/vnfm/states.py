"""The states of an operation occurrence, and the requests that each allows. Pure.

Source: ETSI GS NFV-SOL 003, 5.6.2 (states and transitions) and 5.4.14 to 5.4.16 (retry, rollback,
fail). There are no grants here: STARTING means that no worker has begun.
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
    """A request about an occurrence that failed."""

    RETRY = "retry"
    ROLLBACK = "rollback"
    FAIL = "fail"


RUNNING = frozenset({State.STARTING, State.PROCESSING, State.ROLLING_BACK})
"""A service works at the occurrence, or has to."""

UNSETTLED = RUNNING | {State.FAILED_TEMP}
"""The instance can have no other occurrence."""

_AFTER_REQUEST: Mapping[Request, State] = {
    Request.RETRY: State.PROCESSING,
    Request.ROLLBACK: State.ROLLING_BACK,
    Request.FAIL: State.FAILED,
}

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
    return _AFTER_REQUEST[request] if state is State.FAILED_TEMP else None
