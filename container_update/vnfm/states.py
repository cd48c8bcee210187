# SPDX-License-Identifier: Apache-2.0
"""The states of an operation occurrence, and the requests that each allows. Pure.

Source: ETSI GS NFV-SOL 003, 5.6.2 (states and transitions) and 5.4.14 to 5.4.17 (retry, rollback,
fail, cancel). There are no grants here: STARTING means that no worker has begun.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any


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
    """A request about an occurrence."""

    CANCEL = "cancel"
    PROMOTE = "promote"
    ABORT = "abort"
    RETRY = "retry"
    ROLLBACK = "rollback"
    FAIL = "fail"


RUNNING = frozenset({State.STARTING, State.PROCESSING, State.ROLLING_BACK})
"""A service works at the occurrence, or has to."""

UNSETTLED = RUNNING | {State.FAILED_TEMP}
"""The instance can have no other occurrence."""

REQUESTS: Mapping[State, Mapping[Request, State]] = {
    State.STARTING: {Request.CANCEL: State.ROLLED_BACK},
    State.PROCESSING: {Request.CANCEL: State.FAILED_TEMP},
    State.FAILED_TEMP: {
        Request.RETRY: State.PROCESSING,
        Request.ROLLBACK: State.ROLLING_BACK,
        Request.FAIL: State.FAILED,
    },
}
"""The requests that a state allows, and the states that they lead to. What is cancelled while a
worker is at it undoes what it wrote first."""

NOT_UNDOABLE = frozenset({"TERMINATE"})
"""The operations that cannot be rolled back: what they delete is gone."""

NO_ROLLBACK = "no_rollback"
"""In what an occurrence keeps: this one cannot be rolled back."""

CANCELLED = "cancelled"
"""In what an occurrence keeps: its worker is to stop; the CancelModeType."""

BY_REQUEST = "by a request to cancel"
"""Why it is interrupted then."""


def is_undoable(operation: str, kept: Mapping[str, Any] | None) -> bool:
    """Tell whether an occurrence can be rolled back."""
    return operation not in NOT_UNDOABLE and not (kept or {}).get(NO_ROLLBACK)


def without_cancel(kept: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what an occurrence keeps, without a request to cancel it."""
    return {name: value for name, value in (kept or {}).items() if name != CANCELLED}


def is_cancel_pending(occurrence: Any) -> bool:
    """Tell whether a row's occurrence is to stop, and its worker has not stopped yet."""
    kept = occurrence.kept or {}
    return occurrence.state == State.PROCESSING and bool(kept.get(CANCELLED))


class BatchState(str, enum.Enum):
    """The state of a batch; extension of SOL003."""

    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    """More of its members failed than it bears: nothing more of it begins."""
    CANCELLED = "CANCELLED"


HELD, PROMOTED = "held", "promoted"
"""In what an occurrence keeps: the hold at which it waits for a person, and the one that a user
has promoted; '' for none."""

STARTED = "started"
"""In what an occurrence keeps: the record as the driver of its start left it, before it waited."""

_REQUESTS_OF_A_HOLD = {Request.PROMOTE: State.PROCESSING, Request.ABORT: State.ROLLING_BACK}
"""Extensions of SOL003."""


def is_held(kept: Mapping[str, Any] | None) -> bool:
    """Tell whether an occurrence waits for a person."""
    return bool((kept or {}).get(HELD))


def allowed_requests(
    state: State, *, undoable: bool, held: bool = False
) -> Mapping[Request, State]:
    """Return the requests that an occurrence allows, and the states that they lead to."""
    if held and state is State.PROCESSING:
        return _REQUESTS_OF_A_HOLD
    requests = REQUESTS.get(state, {})
    return {name: to for name, to in requests.items() if undoable or name is not Request.ROLLBACK}


def allowed_to(occurrence: Any) -> Mapping[Request, State]:
    """Return :func:`allowed_requests` for a row with an occurrence's state, operation and what it
    keeps."""
    undoable, held = is_undoable(occurrence.operation, occurrence.kept), is_held(occurrence.kept)
    return allowed_requests(State(occurrence.state), undoable=undoable, held=held)
