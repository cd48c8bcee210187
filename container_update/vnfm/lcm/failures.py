"""An operation's failure as its ProblemDetails. Pure.

What a command line's operator is told to do next is said in the API's words.
"""

from __future__ import annotations

from container_update.cluster.execution.execute import WHAT_NEXT
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json
from container_update.stacks import advice
from container_update.vnfm.problems import Problem, ProblemError

_IN_OUR_WORDS = {
    WHAT_NEXT: "retry the operation, or roll it back",
    advice.GO_ON_OR_UNDO: "retry the operation, or roll it back",
    advice.FINISH: "retry the operation, which finishes it",
    advice.UNDO: "roll the operation back",
    advice.GO_ON: "retry the operation",
}
"""The longer ones first: one may be a part of another."""


def is_told(error: Exception) -> bool:
    """It was raised on purpose, and its text is for the operator."""
    return isinstance(error, (ContainerUpdateError, ProblemError))


def problem_of(error: Exception) -> Json:
    """The ProblemDetails of a failure; of one that nobody foresaw only its kind: its text might
    quote a manifest, and with it a Secret."""
    if isinstance(error, ProblemError):
        return error.problem.as_dict()
    detail = f"{type(error).__name__} was not expected: the service's log says where"
    if isinstance(error, ContainerUpdateError):
        detail = str(error)
        for theirs, ours in _IN_OUR_WORDS.items():
            detail = detail.replace(theirs, ours)
    return Problem(500, detail, title="The operation failed").as_dict()
