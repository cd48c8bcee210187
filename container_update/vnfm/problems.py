"""How a request is refused: ProblemDetails of RFC 9457, as SOL013 clause 6.3 asks for them.

Pure: whatever refuses a request raises a :class:`ProblemError`; ``answers`` makes the answer of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

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
        """The JSON document."""
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
