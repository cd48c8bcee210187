# SPDX-License-Identifier: Apache-2.0
"""Refused requests and failed operations as ProblemDetails: RFC 9457, SOL013 clause 6.3. Pure.

Code that refuses a request raises a :class:`ProblemError`; ``http.error_responses`` answers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from container_update.drivers.advice import Requests, sol003_advice
from container_update.model.errors import ContainerUpdateError, with_advice
from container_update.model.objects import Json


class ProblemError(Exception):
    """A request is refused.

    :param detail: what was expected, what was found, what to do next.
    :param title: the kind of problem; by default the phrase of the status.
    :param headers: headers that the response needs ('Retry-After', 'WWW-Authenticate').
    """

    def __init__(
        self, status: int, detail: str, *, title: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.title = title or HTTPStatus(status).phrase
        self.headers = dict(headers or {})

    def as_dict(self) -> Json:
        """Return the ProblemDetails."""
        return {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }


def is_expected(error: Exception) -> bool:
    """Return whether the error was raised on purpose, with a text for the operator."""
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

    Of an unexpected error only the class is shown: its text might quote a manifest, and with it a
    Secret.
    """
    if isinstance(error, ProblemError):
        return error.as_dict()
    if not isinstance(error, ContainerUpdateError):
        name = type(error).__name__
        error = ContainerUpdateError(f"{name} was not expected: the service's log says where")
    advice = sol003_advice(error.next_step, requests, undoing=undoing, undoable=undoable)
    return ProblemError(500, with_advice(error, advice), title=title).as_dict()


# --- requests without their credentials, errors without the paths of this host --------------------


HIDDEN = "***"
"""Replaces a credential."""

_CREDENTIAL = re.compile(
    r"passw(or)?d|passphrase|(^|_)pass$|bearer|private_?key|client_?secret|(^|_)token$|^secret$"
    r"|^(access_?info|auth_cred|authentication)$",
    re.IGNORECASE,
)
"""The names of attributes whose whole content is hidden."""


def without_credentials(request: Any, names: Collection[str] = ()) -> Any:
    """Return the request without credentials, which attributes of such names, or these, have."""

    def redact(value: Any, hidden: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                name: redact(below, hidden or name in names or bool(_CREDENTIAL.search(str(name))))
                for name, below in value.items()
            }
        if isinstance(value, list):
            return [redact(below, hidden) for below in value]
        if isinstance(value, str) and not hidden and value.lstrip()[:1] in ("[", "{"):
            return in_text(value)
        return HIDDEN if hidden and value is not None else value

    def in_text(text: str) -> str:
        """Return a text, which may be JSON: v1's metadata have no lists and objects."""
        try:
            given = json.loads(text)
            shown = redact(given, False)
        except ValueError:
            return text
        except RecursionError:
            return HIDDEN
        return text if shown == given else json.dumps(shown)

    return redact(request, False)


def without_folder(text: str, folder: Path) -> str:
    """Return a text for clients, in which paths begin in *folder*, not at the root of this host."""
    return text.replace(f"{folder}/", "")
