"""What the modules of the API share: the answers they document, version headers, paging, 202."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import Header, Request, Response
from sqlalchemy import Select

from container_update.model.objects import Json
from container_update.vnfm.api.attribute_selectors import Attributes, select
from container_update.vnfm.http.error_responses import MEDIA_TYPE
from container_update.vnfm.problems import ProblemError

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

VERSIONS: Mapping[str, tuple[str, ...]] = {"v1": ("1.3.0",), "v2": ("2.0.0",)}
"""The versions of SOL003's interfaces that each API speaks."""

_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["status", "detail"],
}

_MEANING = {
    400: "The request cannot be read.",
    401: "A valid token is missing.",
    403: "The token's owner may not do this.",
    404: "There is no such resource.",
    406: "The version asked for is not spoken here.",
    409: "The state of the resource does not allow it.",
    413: "The body is too big.",
    415: "The body is of a kind that is not understood.",
    422: "The request can be read and makes no sense.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals that an operation documents, beside those that every one of them has."""
    return {
        status: {
            "description": _MEANING[status],
            "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
        }
        for status in sorted({400, 401, 403, 406, 422, *statuses})
    }


def version_of(api: str) -> Any:
    """Return a dependency: the ``Version`` header of a request, which v2 asks for (SOL013, 9.2)."""

    def check(
        response: Response, version: str | None = Header(default=None, alias="Version")
    ) -> None:
        spoken = VERSIONS[api]
        if api == "v2" and version is None:
            raise ProblemError(400, f"Version: expected this header, for example {spoken[0]}")
        if version is not None and version not in spoken and api == "v2":
            raise ProblemError(
                406, f"Version: expected {' or '.join(spoken)}, found {version[:64]!r}"
            )
        response.headers["Version"] = spoken[-1]

    return check


def accepted(location: str, api: str) -> Response:
    """202: the operation is written down and will be done."""
    headers = {"Location": location, "Version": VERSIONS[api][-1]}
    return Response(status_code=202, headers=headers)


Reader = Callable[[Select[Any]], Sequence[Json]]
"""Carries a query out and shapes what it finds, in that order."""


def listed(  # noqa: PLR0913
    query: Select[Any],
    read: Reader,
    request: Request,
    response: Response,
    *,
    attributes: Attributes,
    page_size: int,
) -> list[Json]:
    """Return a page of what the query parameters find; ``Link`` leads to the next one (SOL013,
    5.4).

    :param query: every row, in an order that stays. Without a filter only a page of it is read.
    """
    start = _start(request.query_params.get("nextpage_opaque_marker"))
    if "filter" in request.query_params:
        found = select(read(query), request.query_params, attributes)[start:]
    else:
        page = query.offset(start).limit(page_size + 1)
        found = select(read(page), request.query_params, attributes)
    if len(found) > page_size:
        parameters = dict(request.query_params)
        parameters["nextpage_opaque_marker"] = str(start + page_size)
        response.headers["Link"] = f'<{request.url.path}?{urlencode(parameters)}>; rel="next"'
    return found[:page_size]


def _start(marker: str | None) -> int:
    if marker is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,9}", marker):
        raise ProblemError(400, "nextpage_opaque_marker: expected one from a Link header")
    return int(marker)


def known_id(text: str, what: str) -> str:
    """Return an id out of a path; ProblemError 404 where it can be none of ours."""
    if _ID.fullmatch(text) is None:
        raise ProblemError(404, f"{what} {text[:64]!r}: there is none with this id")
    return text.lower()
