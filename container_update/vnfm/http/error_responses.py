# SPDX-License-Identifier: Apache-2.0
"""The responses to requests that are refused or fail: always ProblemDetails.

This includes refusals by the framework and unexpected errors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.vnfm.problems import ProblemError
from container_update.vnfm.store.database import is_away

MEDIA_TYPE = "application/problem+json"

_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_JSON = re.compile(r"application/([^/]+\+)?json")
LOG = logging.getLogger(__name__)
_SHOWN_FAULTS = 5
"""How many faults of one request body are shown; a body may have thousands."""


def respond(problem: ProblemError) -> JSONResponse:
    """Return the response for *problem*; it is an ASGI application."""
    return JSONResponse(problem.as_dict(), problem.status, problem.headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let *app* answer with ProblemDetails; call this before other middlewares are added."""
    app.add_middleware(_unexpected_errors)

    @app.exception_handler(ProblemError)
    async def refuse(_: Request, error: ProblemError) -> JSONResponse:
        return respond(error)

    @app.exception_handler(HTTPException)
    async def refused_by_framework(request: Request, error: HTTPException) -> JSONResponse:
        if "Allow" in (error.headers or {}):
            return respond(_other_method(app, request.scope))
        problem = ProblemError(error.status_code, str(error.detail), headers=error.headers)
        return respond(problem)

    @app.exception_handler(RequestValidationError)
    async def refused_by_schema(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = error.errors()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_given = any(fault["loc"][0] == "body" and fault["input"] is not None for fault in faults)
        if is_given and not _JSON.fullmatch(kind):
            found = repr(kind[:64]) if kind else "none"
            detail = f"Content-Type: expected application/json, found {found}: send JSON"
            return respond(ProblemError(415, detail))
        # SOL013 6.4: 400 for what cannot be read as JSON, 422 for what can but is wrong
        status = 400 if any(fault["type"] == "json_invalid" for fault in faults) else 422
        return respond(ProblemError(status, _text_of(faults)))


def _other_method(app: FastAPI, scope: Scope) -> ProblemError:
    """Return the refusal of a method, with all that the path's routes have (RFC 9110, 15.5.6)."""
    wanted = ({**scope, "method": method} for method in _METHODS)
    allowed = ", ".join(
        each["method"]
        for each in wanted
        if any(route.matches(each)[0] is Match.FULL for route in app.routes)
    )
    detail = f"expected a method that this resource has ({allowed}), found {scope['method']}"
    return ProblemError(405, detail, headers={"Allow": allowed})


def _unexpected_errors(app: ASGIApp) -> ASGIApp:
    """Log an unknown error once; answer 500 without details, 503 where the database is away."""

    async def catch(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await app(scope, receive, sending)
        except Exception as error:
            if scope["type"] != "http" or begun:
                raise
            await respond(_problem_of(error, scope))(scope, receive, send)

    return catch


def _problem_of(error: Exception, scope: Scope) -> ProblemError:
    if is_away(error):  # without a traceback: there may be many, and others wait for this thread
        LOG.warning("%s %s: the database does not answer: %s", scope["method"], scope["path"],
                    type(error).__name__)  # fmt: skip
        detail = "the database does not answer at this moment: send the request again"
        return ProblemError(503, detail, headers={"Retry-After": "5"})
    LOG.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
    return ProblemError(500, "the service failed at this request; its log says why")


def _text_of(faults: Sequence[Any]) -> str:
    """Return where each fault is and what was expected; never the value: it may be a password."""
    shown = [
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in faults[:_SHOWN_FAULTS]
    ]
    more = len(faults) - len(shown)
    return "; ".join(shown) + (f" (and {more} more)" if more > 0 else "")
