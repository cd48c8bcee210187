"""Which requests an occurrence accepts in which state: a table against SOL003's."""

from __future__ import annotations

import pytest

from container_update.vnfm.states import TRANSITIONS, UNSETTLED, Request, State, after

ALLOWED = {
    ("FAILED_TEMP", "retry"): "PROCESSING",
    ("FAILED_TEMP", "rollback"): "ROLLING_BACK",
    ("FAILED_TEMP", "fail"): "FAILED",
}


@pytest.mark.parametrize("requested", Request)
@pytest.mark.parametrize("state", State)
def test_only_a_failed_occurrence_can_be_retried_rolled_back_or_failed(
    state: State, requested: Request
) -> None:
    expected = ALLOWED.get((state.value, requested.value))
    new_state = after(state, requested)
    assert (new_state.value if new_state else None) == expected


def test_every_request_leads_to_an_allowed_transition() -> None:
    for (state, _), to in ALLOWED.items():
        assert State(to) in TRANSITIONS[State(state)]


def test_a_final_state_has_no_transitions_and_blocks_no_operation() -> None:
    ends = {state for state in State if not TRANSITIONS[state]}
    assert ends == {State.COMPLETED, State.FAILED, State.ROLLED_BACK}
    assert set(State) - ends == UNSETTLED
