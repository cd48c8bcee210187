"""What may be asked of an occurrence when: a table against SOL003's."""

from __future__ import annotations

import pytest

from container_update.vnfm.states import TRANSITIONS, UNSETTLED, Request, State, after

ALLOWED = {
    ("FAILED_TEMP", "retry"): "PROCESSING",
    ("FAILED_TEMP", "rollback"): "ROLLING_BACK",
    ("FAILED_TEMP", "fail"): "FAILED",
}


@pytest.mark.parametrize("asked", Request)
@pytest.mark.parametrize("state", State)
def test_only_a_failed_occurrence_can_be_retried_rolled_back_or_failed(
    state: State, asked: Request
) -> None:
    expected = ALLOWED.get((state.value, asked.value))
    found = after(state, asked)
    assert (found.value if found else None) == expected


def test_every_request_leads_where_a_transition_does() -> None:
    for (state, _), to in ALLOWED.items():
        assert State(to) in TRANSITIONS[State(state)]


def test_what_ends_is_left_by_no_transition_and_blocks_nobody() -> None:
    ends = {state for state in State if not TRANSITIONS[state]}
    assert ends == {State.COMPLETED, State.FAILED, State.ROLLED_BACK}
    assert set(State) - ends == UNSETTLED
