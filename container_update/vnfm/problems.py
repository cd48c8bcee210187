"""How a request is refused, and how an operation failed: ProblemDetails of RFC 9457, as SOL013
clause 6.3 asks for them.

Pure: whatever refuses a request raises a :class:`ProblemError`; ``answers`` makes the answer of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from container_update.drivers.advice import Requests, sol003_advice
from container_update.model.errors import ContainerUpdateError, with_advice
from container_update.model.objects import Json


@dataclass(frozen=True)
class Problem:
    """ProblemDetails."""

    status: int
    """The HTTP status."""
    detail: str
    """What is wrong with this request, and what to do."""
    title: str = ""
    """The kind of problem; the status's own phrase where none is given."""
    type: str = "about:blank"
    """A URI for the kind of problem; 'about:blank' says that the status tells it all."""

    def as_dict(self) -> Json:
        """Return the JSON document."""
        return {
            "type": self.type,
            "title": self.title or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }


class ProblemError(Exception):
    """A request is refused.

    :param status: the HTTP status.
    :param detail: what was expected, what was found, what to do next.
    :param title: the kind of problem, where the status's phrase does not say it.
    :param headers: what the answer's headers need besides ('Retry-After', 'WWW-Authenticate').
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(status, detail, title)
        self.headers = dict(headers or {})


def is_told(error: Exception) -> bool:
    """Return whether it was raised on purpose, with a text for the operator."""
    return isinstance(error, (ContainerUpdateError, ProblemError))


def requests_of(api: str, operation_id: str) -> Requests:
    """Return the requests that a client can send about an operation that is FAILED_TEMP."""
    operation = f"POST /vnflcm/{api}/vnf_lcm_op_occs/{operation_id}"
    return Requests(f"{operation}/retry", f"{operation}/rollback", f"{operation}/fail")


def problem_of(
    error: Exception,
    requests: Requests,
    *,
    undoing: bool = False,
    undoable: bool = True,
    title: str = "The operation failed",
) -> Json:
    """Return the ProblemDetails of an operation that failed: what happened, what to do next.

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
    return Problem(500, with_advice(error, advice), title=title).as_dict()
