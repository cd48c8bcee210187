"""What an operation's occurrence says of a failure."""

from __future__ import annotations

import pytest

from container_update.model.errors import ClusterError, NoWayBackError
from container_update.stacks import advice
from container_update.vnfm.lcm.failures import problem_of
from container_update.vnfm.problems import ProblemError

TOLD = {
    advice.GO_ON: "retry the operation",
    advice.GO_ON_OR_UNDO: "retry the operation, or roll it back",
    advice.FINISH: "retry the operation, which finishes it",
    advice.UNDO: "roll the operation back",
}


@pytest.mark.parametrize("theirs", TOLD)
def test_what_to_do_next_is_said_in_the_apis_words(theirs: str) -> None:
    problem = problem_of(NoWayBackError(f"the stack is gone: {theirs}. Then go on"))
    assert problem["detail"] == f"the stack is gone: {TOLD[theirs]}. Then go on"


def test_what_nobody_foresaw_is_not_quoted() -> None:
    detail = problem_of(ValueError("password=1234"))["detail"]
    assert "ValueError" in detail
    assert "1234" not in detail


def test_what_was_raised_on_purpose_is_told_as_it_is() -> None:
    assert problem_of(ClusterError("no, because"))["detail"] == "no, because"
    assert problem_of(ProblemError(409, "busy"))["status"] == 409
