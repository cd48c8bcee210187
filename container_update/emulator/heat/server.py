"""The HTTP side of the cloud: which path is answered by what."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from container_update.emulator.faults import Effect, Encounter
from container_update.emulator.heat.api_errors import Refusal
from container_update.emulator.heat.heat import Heat
from container_update.emulator.heat.keystone import Keystone
from container_update.emulator.heat.stacks import Stack
from container_update.emulator.kubernetes.api.server import LARGEST_BODY, Middleware, RequestRecord

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_TENANT = "/heat-api/v1/{project}"
_TOKENS = ("Auth", "Subject")
_STACK = _TENANT + "/stacks/{name}/{id}"


class Server:
    """Keystone and Heat on one loopback port."""

    def __init__(self, keystone: Keystone, heat: Heat) -> None:
        self.requests: list[RequestRecord] = []
        self.middlewares: list[Middleware] = []
        self._keystone = keystone
        self._heat = heat
        self._runner: web.AppRunner | None = None

    async def start(self, port: int) -> int:
        """Listen on 127.0.0.1; the port, a free one where *port* is 0."""
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._around])
        app.add_routes(self._keystone_routes() + self._heat_routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner:
            await self._runner.cleanup()

    # --- around every request -------------------------------------------------------------------

    @web.middleware
    async def _around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        record = RequestRecord(request.method, request.path, request.query_string)
        self.requests.append(record)
        began = time.monotonic()
        try:
            response = await self._through_middlewares(request, handler)
        except Refusal as refusal:
            is_keystone = request.path.startswith("/identity")
            body = refusal.keystone_body() if is_keystone else refusal.heat_body()
            response = web.json_response(body, status=refusal.status, headers=refusal.headers)
        except web.HTTPException as error:
            response = web.json_response({"code": error.status}, status=error.status)
        record.status, record.seconds = response.status, time.monotonic() - began
        return response

    async def _through_middlewares(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        for middleware in reversed(self.middlewares):
            handler = _wrapped(middleware, handler)
        return await handler(request)

    # --- Keystone -------------------------------------------------------------------------------

    def _keystone_routes(self) -> list[web.RouteDef]:
        async def versions(request: web.Request) -> web.Response:
            url = f"http://{request.host}/identity/v3/"
            return web.json_response(self._keystone.versions(url), status=300)

        async def version(request: web.Request) -> web.Response:
            url = f"http://{request.host}/identity/v3/"
            return web.json_response(self._keystone.version(url))

        async def issue(request: web.Request) -> web.Response:
            token, body = self._keystone.issue(await request.json())
            return web.json_response(body, status=201, headers={"X-Subject-Token": token})

        async def validate(request: web.Request) -> web.Response:
            caller, subject = (request.headers.get(f"X-{kind}-Token") for kind in _TOKENS)
            body = self._keystone.validate(caller, subject)
            return web.json_response(body, headers={"X-Subject-Token": subject or ""})

        return [
            web.get("/identity", versions),
            web.get("/identity/", versions),
            web.get("/identity/v3", version),
            web.get("/identity/v3/", version),
            web.post("/identity/v3/auth/tokens", issue),
            web.get("/identity/v3/auth/tokens", validate),
        ]

    # --- Heat -----------------------------------------------------------------------------------

    def _heat_routes(self) -> list[web.RouteDef]:
        reads: Mapping[str, Callable[[Stack, web.Request], Any]] = {
            "": lambda stack, _: {"stack": self._heat.document(stack)},
            "/template": lambda stack, _: stack.template,
            "/files": lambda stack, _: stack.files,
            "/environment": lambda stack, _: self._heat.environment(stack),
            "/events": self._events,
            "/outputs": lambda stack, _: {"outputs": stack.outputs()},
            "/resources": self._resources,
            "/resources/{resource}": self._resource,
        }
        short = _TENANT + "/stacks/{reference}/{path:(resources|events|template|environment|files)}"
        routes = [web.get(short, self._look_up)]  # before the paths with name and id
        routes += [web.get(_STACK + path, self._reading(read)) for path, read in reads.items()]
        routes += [
            web.get("/heat-api", self._versions),
            web.get("/heat-api/", self._versions),
            web.post(_TENANT + "/stacks", self._create),
            web.get(_TENANT + "/stacks", self._list),
            web.put(_STACK, self._update),
            web.patch(_STACK, self._update),
            web.delete(_STACK, self._delete),
            web.post(_STACK + "/actions", self._act),
            web.patch(_STACK + "/resources/{resource}", self._mark),
            web.route("*", _TENANT + "/stacks/{reference}", self._look_up),
        ]
        return routes

    def _stack(self, request: web.Request) -> Stack:
        self._check(request)
        return self._heat.find(request.match_info["id"])

    def _check(self, request: web.Request) -> None:
        self._keystone.check(request.headers.get("X-Auth-Token"))
        if request.match_info["project"] != self._keystone.project_id:
            raise Refusal(403, "Forbidden", "You are not authorized to use this project.")

    def _reading(self, read: Callable[[Stack, web.Request], Any]) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return web.json_response(read(self._stack(request), request))

        return answer

    def _resources(self, stack: Stack, request: web.Request) -> Any:
        found = stack.walk(int(request.query.get("nested_depth", 0)))
        return {"resources": [self._heat.resource_document(resource) for resource in found]}

    def _events(self, stack: Stack, request: web.Request) -> Any:
        found, marker = self._heat.events(stack), request.query.get("marker")
        places = [number for number, event in enumerate(found) if event["id"] == marker]
        return {"events": found[places[0] + 1 :] if places else found}

    def _resource(self, stack: Stack, request: web.Request) -> Any:
        resource = self._heat.resource(stack, request.match_info["resource"])
        return {"resource": self._heat.resource_document(resource, whole=True)}

    async def _versions(self, request: web.Request) -> web.Response:
        link = {"rel": "self", "href": f"http://{request.host}/heat-api/v1/"}
        version = {"id": "v1.0", "status": "CURRENT", "links": [link]}
        return web.json_response({"versions": [version]}, status=300)

    async def _create(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response(self._heat.create(await request.json()), status=201)

    async def _list(self, request: web.Request) -> web.Response:
        self._check(request)
        tags = set(filter(None, request.query.get("tags", "").split(",")))
        name = request.query.get("stack_name") or request.query.get("name")
        found = [
            self._heat.summary(stack)
            for stack in self._heat.stacks
            if not stack.deleted and tags <= set(stack.tags) and name in (None, stack.name)
        ]
        return web.json_response({"stacks": found})

    async def _update(self, request: web.Request) -> web.Response:
        stack = self._stack(request)
        existing = request.method == "PATCH"
        self._heat.update(stack, await request.json(), existing=existing)
        return web.json_response({"stack": self._heat.summary(stack)}, status=202)

    async def _delete(self, request: web.Request) -> web.Response:
        self._heat.delete(self._stack(request))
        return web.Response(status=204)

    async def _act(self, request: web.Request) -> web.Response:
        stack, wanted = self._stack(request), await request.json()
        if set(wanted) != {"cancel_without_rollback"}:
            raise Refusal(400, "HTTPBadRequest", f"Invalid action {sorted(wanted)} specified")
        self._heat.cancel(stack)
        return web.Response(status=202)

    async def _mark(self, request: web.Request) -> web.Response:
        resource = self._heat.resource(self._stack(request), request.match_info["resource"])
        self._heat.mark_unhealthy(resource, await request.json())
        return web.json_response({})

    async def _look_up(self, request: web.Request) -> web.Response:
        """A stack by its name or its id alone: where it is."""
        self._check(request)
        address = self._heat.url_of(self._heat.find(request.match_info["reference"]))
        path = request.match_info.get("path")
        raise_to = f"{address}/{path}" if path else address
        query = f"?{request.query_string}" if request.query_string else ""
        return web.Response(status=302, headers={"Location": raise_to + query})


def refuse(refusal: Refusal) -> Effect:
    """For :class:`container_update.emulator.faults.Fault`: answer with this instead."""

    async def effect(_: Encounter) -> web.StreamResponse:
        raise refusal

    return effect


def _wrapped(middleware: Middleware, handler: Handler) -> Handler:
    async def call(request: web.Request) -> web.StreamResponse:
        return await middleware(request, handler)

    return call
