# SPDX-License-Identifier: Apache-2.0
"""The shared parts of the API: documented refusals, versions, 202."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.vnfm.api import representations
from container_update.vnfm.http.error_responses import MEDIA_TYPE
from container_update.vnfm.http.limits import with_headers
from container_update.vnfm.problems import ProblemError, without_folder
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import PACKAGES, OperationRow, api_root

VERSIONS: Mapping[str, str] = {"v1": "1.3.0", "v2": "2.0.0"}
"""The version of the SOL003 interface that each API of lifecycle management supports."""
_OFFERED: Mapping[str, Mapping[str, str]] = {"vnflcm": VERSIONS, "vnfpkgm": {"v1": "1.2.0"}}
"""The versions of each API, by its name and its major versions."""

QUERY_TEXT: Any = {"max_length": 255, "pattern": r"^[^\x00]*$"}
"""What fastapi.Query checks of a text that a database gets: PostgreSQL takes no NUL."""

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
    "required": ["status", "detail"],
}

_MEANING = {
    400: "The request cannot be read.",
    401: "A valid token is missing.",
    403: "The token's owner may not do this.",
    404: "There is no such resource.",
    406: "The version or the media type asked for is not supported.",
    409: "The state of the resource does not allow it.",
    412: "The resource is not the one that If-Match names.",
    413: "The body is too big.",
    415: "The body has another media type.",
    422: "The request can be read and makes no sense.",
    429: "The user has as many requests that wait as one may have.",
    502: "The VIM does not answer, or refuses.",
    503: "The database does not answer at this moment, or too many requests of this kind wait.",
}

Handler = TypeVar("Handler", bound=Callable[..., Any])

EXTENSION = "Extensions of SOL003"
"""The tag of what the standard does not have."""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals to document for a route: these, and those that every route has."""
    content = {MEDIA_TYPE: {"schema": _PROBLEM}}
    return {
        status: {"description": _MEANING[status], "content": content}
        for status in sorted({400, 401, 403, 406, 422, 503, *statuses})
    }


def taking(body: Any) -> Callable[[Handler], Handler]:
    """Return a decorator for the handler of a route, whose ``body`` has a model of its own in each
    of the two APIs."""

    def annotate(handler: Handler) -> Handler:
        handler.__annotations__["body"] = body
        return handler

    return annotate


def accepting(*statuses: int) -> dict[str, Any]:
    """Return the arguments of a route that answers 202, beside these refusals."""
    return {"status_code": 202, "response_class": Response, "responses": refusals(*statuses)}


def sol_router(api: str, path: str, title: str) -> APIRouter:
    """Return a router for one resource of one of the two lifecycle management APIs, or of that for
    packages."""
    name = "packages" if api == PACKAGES else api
    return APIRouter(
        prefix=f"{api_root(api)}/{path}",
        tags=[f"{title} ({name})"],
        dependencies=[Depends(_version_check(api)), Depends(check_accept)],
    )


def _version_check(api: str) -> Callable[..., None]:
    """Return a dependency that checks the ``Version`` header, required in v2 (SOL013, 9.2)."""

    def check(version: str | None = Header(default=None, alias="Version")) -> None:
        supported = VERSIONS.get(api)
        if api == "v2" and version is None:
            raise ProblemError(400, f"Version: expected this header, for example {supported}")
        if api == "v2" and version is not None and version != supported:
            raise ProblemError(406, f"Version: expected {supported}, found {version[:64]!r}")

    return check


def check_accept(request: Request) -> None:
    """Raise ProblemError 406 if the client accepts nothing that the route answers with (SOL013,
    6.4); what a route without JSON answers with is in its documentation."""
    route, accept = request.scope["route"], request.headers.get("accept", "*/*")
    if route.status_code in (202, 204):
        return
    offered = list(route.responses.get(200, {}).get("content", ["application/json"]))
    is_file = offered == ["application/octet-stream"]  # an artifact, of any type
    if not is_file and not any(_accepts(accept, each) for each in offered):
        expected = " or ".join(offered)
        raise ProblemError(406, f"Accept: expected {expected}, found {accept[:64]!r}")


def _accepts(accept: str, media_type: str) -> bool:
    """Return whether an Accept header admits a media type (RFC 9110, 12.5.1)."""
    admitting = {"*/*", f"{media_type.partition('/')[0]}/*", media_type}
    for entry in accept.lower().split(","):
        name, *parameters = (each.strip() for each in entry.split(";"))
        if name in admitting:
            return not any(re.fullmatch(r"q=0(\.0*)?", each) for each in parameters)
    return False


def _reason(
    why: Annotated[str, Query(description="The reason, for the history; an extension.")] = "",
) -> str:
    """Return the reason of a request that begins an operation."""
    if len(why) > _LONGEST_REASON or not why.isprintable():
        raise ProblemError(400, f"why: expected one line of at most {_LONGEST_REASON} characters")
    return why


Why = Annotated[str, Depends(_reason)]
_LONGEST_REASON = 255


def add_version(app: ASGIApp) -> ASGIApp:
    """Add the ``Version`` header to each response of the two APIs, to refusals as well."""

    async def add(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        versions = [v for api, v in VERSIONS.items() if path.startswith(f"/vnflcm/{api}/")]

        versioned = with_headers(send, {"Version": versions[0]}) if versions else send
        await app(scope, receive, versioned)

    return add


def accept_operation(service: ServiceContext, operation: OperationRow) -> Response:
    """Return a 202: the operation is stored and will be carried out."""
    location = representations.operation_url(operation, service.settings.base_url)
    return Response(status_code=202, headers={"Location": location})


def etag_of(resource: Json) -> str:
    """Return the ETag of a resource as it is shown."""
    shown = json.dumps(resource, sort_keys=True)
    return f'"{hashlib.sha256(shown.encode()).hexdigest()}"'


def require_match(request: Request, resource: Json) -> None:
    """Raise ProblemError 412 if a request is for another state of a resource (RFC 9110, 13.1.1)."""
    wanted = [each.strip() for each in request.headers.get("if-match", "*").split(",")]
    if not {"*", etag_of(resource)} & set(wanted):
        raise ProblemError(412, "If-Match: the resource was changed since then: read it again")


@contextmanager
def unprocessable(service: ServiceContext) -> Iterator[None]:
    """Turn a PackageError of the ``with`` block into ProblemError 422."""
    try:
        yield
    except PackageError as error:
        detail = without_folder(str(error), service.settings.folder)
        raise ProblemError(422, detail) from error


def versions() -> APIRouter:
    """Return the resources ``api_versions`` (SOL013, 9.3): of each API, and of each of its major
    versions."""
    routes = APIRouter(tags=["Versions"], dependencies=[Depends(check_accept)])
    for name, versions in _OFFERED.items():
        for prefix, shown in {
            f"/{name}": list(versions.values()),
            **{f"/{name}/{major}": [version] for major, version in versions.items()},
        }.items():
            routes.get(f"{prefix}/api_versions", responses=refusals())(_answer(prefix, shown))
    return routes


def _answer(prefix: str, versions: list[str]) -> Callable[[], Json]:
    def show() -> Json:
        """Return the versions of the interface."""
        entries = [{"version": version, "isDeprecated": False} for version in versions]
        return {"uriPrefix": prefix, "apiVersions": entries}

    return show
