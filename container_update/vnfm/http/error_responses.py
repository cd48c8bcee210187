"""The answers to requests that are refused or fail: always ProblemDetails.

The framework's own refusals and errors that nobody foresaw are told in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.vnfm.problems import Problem, ProblemError

MEDIA_TYPE = "application/problem+json"

LOG = logging.getLogger(__name__)
_SHOWN_FAULTS = 5
"""How many faults of one request body are told; a body may have thousands."""


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response for *problem*; it is an ASGI application, for middlewares."""
    return JSONResponse(
        problem.as_dict(), problem.status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


def install(app: FastAPI) -> None:
    """Answer with ProblemDetails wherever *app* refuses or fails; before other middlewares."""
    app.add_exception_handler(ProblemError, _refused)
    app.add_exception_handler(HTTPException, _refused_by_framework)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_middleware(Unforeseen)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ProblemError)
    return respond(error.problem, error.headers)


async def _refused_by_framework(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return respond(Problem(error.status_code, str(error.detail)), error.headers)


async def _misshapen(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    # SOL013 6.4: 400 for what cannot be read as JSON, 422 for what can but is wrong
    status = 400 if any(fault["type"] == "json_invalid" for fault in faults) else 422
    return respond(Problem(status, _told(faults)))


class Unforeseen:
    """Logs an error that no handler knows, once, and answers 500 without telling of what kind."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            if scope["type"] != "http" or begun:
                raise
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            problem = Problem(500, "the service failed at this request; its log says why")
            await respond(problem)(scope, receive, send)


def _told(faults: Sequence[Any]) -> str:
    """Where each fault is and what was expected; never the value, which may be a password."""
    shown = [
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in faults[:_SHOWN_FAULTS]
    ]
    more = len(faults) - len(shown)
    return "; ".join(shown) + (f" (and {more} more)" if more > 0 else "")
