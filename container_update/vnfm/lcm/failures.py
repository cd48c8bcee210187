"""An operation's failure as its ProblemDetails. Pure.

Its detail says what a client of the API can do next.
"""

from __future__ import annotations

from container_update.drivers.advice import Requests, sol003_advice
from container_update.model.errors import ContainerUpdateError, with_advice
from container_update.model.objects import Json
from container_update.vnfm.problems import Problem, ProblemError


def is_told(error: Exception) -> bool:
    """It was raised on purpose, and its text is for the operator."""
    return isinstance(error, (ContainerUpdateError, ProblemError))


def requests_of(api: str, operation_id: str) -> Requests:
    """The requests that a client can send about an operation that is FAILED_TEMP."""
    operation = f"POST /vnflcm/{api}/vnf_lcm_op_occs/{operation_id}"
    return Requests(f"{operation}/retry", f"{operation}/rollback", f"{operation}/fail")


def problem_of(
    error: Exception, requests: Requests, *, undoing: bool = False, undoable: bool = True
) -> Json:
    """Return the ProblemDetails of a failure.

    Of an error that nobody foresaw it has only the class: its text might quote a manifest, and
    with it a Secret.

    :param undoing: the rollback failed, not the operation itself.
    :param undoable: the operation can be rolled back.
    """
    if isinstance(error, ProblemError):
        return error.problem.as_dict()
    if not isinstance(error, ContainerUpdateError):
        name = type(error).__name__
        error = ContainerUpdateError(f"{name} was not expected: the service's log says where")
    advice = sol003_advice(error.next_step, requests, undoing=undoing, undoable=undoable)
    return Problem(500, with_advice(error, advice), title="The operation failed").as_dict()
