# SPDX-License-Identifier: Apache-2.0
"""Which requests an occurrence accepts in which state: a table against SOL003's."""

from __future__ import annotations

import pytest

from container_update.vnfm.lcm.tasks import TASKS
from container_update.vnfm.states import (
    NO_ROLLBACK,
    NOT_UNDOABLE,
    UNSETTLED,
    Request,
    State,
    allowed_requests,
    is_undoable,
)

ALLOWED = {
    ("STARTING", "cancel"): "ROLLED_BACK",
    ("PROCESSING", "cancel"): "FAILED_TEMP",
    ("FAILED_TEMP", "retry"): "PROCESSING",
    ("FAILED_TEMP", "rollback"): "ROLLING_BACK",
    ("FAILED_TEMP", "fail"): "FAILED",
}


@pytest.mark.parametrize("requested", Request)
@pytest.mark.parametrize("state", State)
def test_an_occurrence_allows_a_request_only_in_one_state(state: State, requested: Request) -> None:
    expected = ALLOWED.get((state.value, requested.value))
    new_state = allowed_requests(state, undoable=True).get(requested)
    assert (new_state.value if new_state else None) == expected


def test_what_has_no_way_back_allows_no_rollback() -> None:
    assert {kind for kind, task in TASKS.items() if task.undo is None} == NOT_UNDOABLE
    assert set(allowed_requests(State.FAILED_TEMP, undoable=False)) == {Request.RETRY, Request.FAIL}
    assert not any(is_undoable(operation, None) for operation in NOT_UNDOABLE)
    assert is_undoable("HEAL", {})
    assert not is_undoable("HEAL", {NO_ROLLBACK: "why"})


def test_a_final_state_allows_nothing_and_blocks_no_operation() -> None:
    ends = {State.COMPLETED, State.FAILED, State.ROLLED_BACK}
    assert set(State) - ends == UNSETTLED
    assert not any(allowed_requests(state, undoable=True) for state in ends)
