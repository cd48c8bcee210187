# SPDX-License-Identifier: Apache-2.0
"""The HTTP side of the API server: from requests to the registry and back."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import yaml
from aiohttp import web

from container_update.emulator.http_server import MAX_BODY_BYTES, HttpServer
from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes import api_errors, tables
from container_update.emulator.kubernetes.api import (
    discovery,
    escalation,
    listing,
    patching,
    protobuf,
    reviews,
    scale,
    writing,
)
from container_update.emulator.kubernetes.api.access import ADMINISTRATOR, Access, RequestAttributes
from container_update.emulator.kubernetes.api.encoding import Encoder
from container_update.emulator.kubernetes.api.negotiation import (
    Representation,
    flag,
    representation,
)
from container_update.emulator.kubernetes.api.paths import RequestTarget, parse_path
from container_update.emulator.kubernetes.api.watching import WatchSource, stream
from container_update.emulator.kubernetes.api.writing import WriteRequest
from container_update.emulator.kubernetes.api_errors import ApiError, NoSuchPathError
from container_update.emulator.kubernetes.registry import Registry
from container_update.emulator.kubernetes.resources import BUILT_IN_GROUPS
from container_update.emulator.kubernetes.watches import Watches

_OPEN_TO_ALL = ("/healthz", "/livez", "/readyz", "/version")
_JSON = "application/json"
_OPTIONS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}
"""What the server calls the query of each method."""
ReadLog = Callable[[Json, Mapping[str, str]], str]

_AGGREGATED = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiServer(HttpServer):
    """An API server on a loopback port.

    :param token: the administrator's bearer token.
    :param read_log: returns the log of a pod's container, as the query of the request has it.
    """

    def __init__(self, registry: Registry, watches: Watches, token: str, read_log: ReadLog) -> None:
        super().__init__()
        self._registry = registry
        self._watches = watches
        self._access = Access(registry, token)
        self._read_log = read_log
        self._encoder = Encoder()
        self._source = WatchSource(registry, watches, self._encoder)

    async def start(self, port: int, context: ssl.SSLContext) -> int:
        """Listen on 127.0.0.1 (*port* 0: any free port) and return the port."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return await self.listen(app, port, context)

    async def stop(self) -> None:
        """End all watches and stop listening."""
        self._watches.close_all()
        await super().stop()

    # --- one request ----------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        return await self.record_request(request, self._respond)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.through_middlewares(request, self._answer)
        except ApiError as error:
            return _error_response(error)

    def _check_access(self, request: web.Request) -> None:
        """Raise 401 or 403 for a request that is not allowed; any token may use discovery."""
        presented = request.headers.get("Authorization")
        if presented is None and request.path.startswith(_OPEN_TO_ALL):
            return
        user = self._user(request)
        target = parse_path(request.path, self._registry.catalogue)
        if target is None:
            attributes = RequestAttributes.of_unknown(request.method, request.path, request.query)
        elif _is_of_oneself(target):
            attributes = None
        else:
            attributes = RequestAttributes.of(request.method, target, request.query)
        if attributes is not None:
            self._access.check(user, attributes)

    def _user(self, request: web.Request) -> str:
        """Return who sent the request; the administrator may impersonate (``kubectl --as``)."""
        user = self._access.user(request.headers.get("Authorization"))
        return request.headers.get("Impersonate-User", user) if user == ADMINISTRATOR else user

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._check_access(request)
        target = parse_path(request.path, self._registry.catalogue)
        if target is None:
            return self._about_the_server(request)
        if not target.resource.is_stored:
            return await self._answer_only(request, target)
        if request.method != "GET":
            return await self._write(request, target)
        if target.subresource == "log":
            pod = self._registry.require("pods", target.space, target.name)
            return web.Response(text=self._read_log(pod, request.query))
        listing.check_options(request.query)
        if flag(request.query, "watch"):
            return await stream(request, target, self._source)
        return self._read(request, target)

    def _read(self, request: web.Request, target: RequestTarget) -> web.Response:
        form = representation(request.headers.get("Accept", ""))
        include = request.query.get("includeObject", tables.METADATA)
        if not target.name:
            page, continued = listing.list_page(self._registry, target, request.query)
            if continued is not None:
                self._check_continued(target, continued)
            return _text(listing.text(target, page, form, include, self._encoder))
        stored = self._registry.require(target.resource.key, target.space, target.name)
        if target.subresource == "scale":
            return _json(200, scale.of(stored))
        if form is Representation.TABLE:
            metadata = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            return _json(
                200, tables.table(target.resource.key, [stored], metadata, include=include)
            )
        if form is Representation.PARTIAL:
            return _json(200, tables.partial(stored))
        return _text(self._encoder.single(stored, target.api_version))

    def _check_continued(self, target: RequestTarget, version: int) -> None:
        try:
            self._watches.check_version(target.resource.key, version)
        except ApiError as error:
            raise api_errors.expired_error(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            ) from error

    async def _write(self, request: web.Request, target: RequestTarget) -> web.Response:
        body = await _body(request)
        if target.subresource == "token" and request.method == "POST":
            return _json(201, self._access.issue(target, body or {}))
        agent = request.headers.get("User-Agent", "")
        write = WriteRequest(
            target,
            request.query,
            body,
            request.content_type,
            agent,
            _OPTIONS.get(request.method, ""),
            partial(escalation.check, self._access, self._user(request), target),
        )
        handlers = {
            "POST": writing.create,
            "PUT": writing.replace,
            "PATCH": writing.patch,
            "DELETE": writing.delete if target.name else writing.delete_collection,
        }
        handler = handlers.get(request.method)
        if handler is None:
            raise writing.not_allowed(request.method)
        status, answer = handler(self._registry, write)
        if answer.get("kind") == target.resource.kind:
            answer = {**answer, "apiVersion": target.api_version}
        response = _json(status, answer)
        for warning in write.warnings:
            response.headers.add("Warning", f"299 - {compact(warning)}")
        return response

    async def _answer_only(self, request: web.Request, target: RequestTarget) -> web.Response:
        if request.method != "POST" or target.name:
            raise writing.not_allowed(request.method)
        body = await _body(request) or {}
        if target.resource.plural == "bindings":
            return _json(201, writing.bind(self._registry, target.space, body))
        user = self._user(request)
        return _json(201, reviews.answer(self._access, user, target.resource.plural, body))

    # --- about the server -----------------------------------------------------------------------

    def _about_the_server(self, request: web.Request) -> web.Response:
        path = request.path.rstrip("/")
        if request.method == "POST":
            raise _nothing_at(path)
        if path.startswith(("/healthz", "/livez", "/readyz")):
            return web.Response(text="ok")
        in_one = representation(request.headers.get("Accept", "")) is Representation.DISCOVERY
        document = discovery.document(self._registry.catalogue, path, request.host, in_one)
        if document is None:
            raise _nothing_at(path)
        response = _json(200, document)
        if document.get("kind") == Representation.DISCOVERY.value:
            response.headers["Content-Type"] = _AGGREGATED
        return response


def _nothing_at(path: str) -> ApiError:
    """Return the 404 for a path; a client turns both into the same sentence."""
    root, group = [*path.split("/")[1:], ""][:2]
    is_own = root == "api" or (root == "apis" and group in BUILT_IN_GROUPS)
    return api_errors.no_such_resource() if is_own else api_errors.no_such_path()


def _is_of_oneself(target: RequestTarget) -> bool:
    """Return whether everybody may ask it: about their own rights."""
    return not target.resource.is_stored and target.resource.plural.startswith("self")


async def _body(request: web.Request) -> Any:
    raw = await request.read()
    if not raw:
        return None
    if request.content_type == protobuf.CONTENT_TYPE:
        return _from_protobuf(raw)
    if "cbor" in request.content_type:
        raise _unknown_format()
    try:
        if request.content_type == patching.APPLY_PATCH:
            return yaml.safe_load(raw)
        return json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise api_errors.bad_request(f"the body of the request is no JSON: {error}") from error


def _from_protobuf(raw: bytes) -> Json:
    try:
        body = protobuf.decode(raw)
    except ValueError as error:
        raise api_errors.bad_request(f"the body of the request is damaged: {error}") from error
    if body is None:
        raise _unknown_format()
    return body


def _unknown_format() -> ApiError:
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {_JSON}"
    )
    return ApiError(415, "UnsupportedMediaType", message, {})


def _text(text: str) -> web.Response:
    return web.Response(body=text.encode(), content_type=_JSON)


def _json(status: int, body: Json) -> web.Response:
    return web.Response(status=status, body=compact(body).encode(), content_type=_JSON)


def _error_response(error: ApiError) -> web.Response:
    if isinstance(error, NoSuchPathError):
        return web.Response(status=error.code, text=f"{error.message}\n")
    response = _json(error.code, error.status())
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response
