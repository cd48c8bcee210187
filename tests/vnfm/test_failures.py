"""What an operation's occurrence says of a failure."""

from __future__ import annotations

import pytest

from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    NextStep,
    PackageError,
)
from container_update.vnfm.problems import ProblemError, problem_of, requests_of

REQUESTS = requests_of("v2", "7")


@pytest.mark.parametrize("undoing", [False, True])
@pytest.mark.parametrize("step", NextStep)
def test_what_to_do_next_is_a_request_of_the_api(step: NextStep, undoing: bool) -> None:
    error = ContainerUpdateError("the stack is gone", next_step=step)
    detail = problem_of(error, REQUESTS, undoing=undoing)["detail"]
    assert detail.startswith("the stack is gone. ")
    assert "POST /vnflcm/v2/vnf_lcm_op_occs/7/" in detail


@pytest.mark.parametrize(
    ("undoing", "undoable", "request_"),
    [(False, True, "rollback"), (False, False, "fail"), (True, True, "fail")],
)
def test_a_wrong_request_is_ended_before_another_is_sent(
    undoing: bool, undoable: bool, request_: str
) -> None:
    problem = problem_of(PackageError("no"), REQUESTS, undoing=undoing, undoable=undoable)
    assert f"(POST /vnflcm/v2/vnf_lcm_op_occs/7/{request_})" in problem["detail"]


@pytest.mark.parametrize(("undoing", "request_"), [(False, "retry"), (True, "rollback")])
def test_what_failed_is_what_is_tried_again(undoing: bool, request_: str) -> None:
    detail = problem_of(ContainerUpdateError("no"), REQUESTS, undoing=undoing)["detail"]
    assert detail.endswith(f"try again: POST /vnflcm/v2/vnf_lcm_op_occs/7/{request_}.")


def test_what_nobody_foresaw_is_not_quoted() -> None:
    detail = problem_of(ValueError("password=1234"), REQUESTS)["detail"]
    assert "ValueError" in detail
    assert "1234" not in detail


def test_what_was_raised_on_purpose_is_told_as_it_is() -> None:
    assert problem_of(ClusterError("no, because"), REQUESTS)["detail"].startswith(
        "no, because. Fix"
    )
    assert problem_of(ProblemError(409, "busy"), REQUESTS)["status"] == 409
