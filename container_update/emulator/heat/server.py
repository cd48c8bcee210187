# SPDX-License-Identifier: Apache-2.0
"""The HTTP side of the cloud: routes, and the responses to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web

from container_update.emulator.heat.api_errors import OpenStackApiError
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.heat import HeatService
from container_update.emulator.heat.keystone import Keystone
from container_update.emulator.heat.stacks import Stack
from container_update.emulator.http_server import MAX_BODY_BYTES, Handler, HttpServer
from container_update.emulator.json_type import Json

_TENANT = "/heat-api/v1/{project}"
_TOKENS = ("Auth", "Subject")
_STACK = _TENANT + "/stacks/{name}/{id}"


class CloudServer(HttpServer):
    """Keystone and Heat on one loopback port, and the lists of images and flavors.

    :param faults: says which images and flavors there are.
    """

    def __init__(self, keystone: Keystone, heat: HeatService, faults: CloudFaults) -> None:
        super().__init__()
        self._faults = faults
        self._keystone = keystone
        self._heat = heat
        self._documents = heat.documents

    async def start(self, port: int) -> int:
        """Listen on 127.0.0.1 (*port* 0: any free port) and return the port."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._handle])
        app.add_routes(self._keystone_routes() + self._heat_routes())
        return await self.listen(app, port)

    @web.middleware
    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        async def respond(request: web.Request) -> web.StreamResponse:
            try:
                return await self.through_middlewares(request, handler)
            except OpenStackApiError as error:
                # Keystone's middleware stands before Heat
                is_keystone = request.path.startswith("/identity") or error.status == 401
                body = error.keystone_body() if is_keystone else error.heat_body()
                return web.json_response(body, status=error.status, headers=error.headers)
            except web.HTTPException as error:
                return web.json_response({"code": error.status}, status=error.status)

        return await self.record_request(request, respond)

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
            "": lambda stack, request: {"stack": self._stack_document(stack, request)},
            "/template": lambda stack, _: stack.template,
            "/files": lambda stack, _: stack.files,
            "/environment": lambda stack, _: self._documents.environment(stack),
            "/events": self._events,
            "/outputs": lambda stack, _: {"outputs": _without_values(stack)},
            "/outputs/{output}": _output,
            "/resources": self._resources,
            "/resources/{resource}": self._resource,
            "/resources/{resource}/metadata": self._metadata,
            "/resources/{resource}/events": self._resource_events,
        }
        short = _TENANT + "/stacks/{reference}/{path:(resources|events|template|environment|files)}"
        routes = [web.get(short, self._look_up)]  # before the paths with name and id
        routes += [web.get(_STACK + path, self._reading(read)) for path, read in reads.items()]
        routes += [
            web.get("/image/v2/images", self._images),
            web.get("/compute/v2.1/flavors/detail", self._flavors),
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
        return self._heat.find(request.match_info["id"], request.match_info["name"])

    def _check(self, request: web.Request) -> None:
        self._keystone.check(request.headers.get("X-Auth-Token"))
        if request.match_info["project"] != self._keystone.project_id:
            raise OpenStackApiError(403, "Forbidden", "You are not authorized to use this project.")

    def _reading(self, read: Callable[[Stack, web.Request], Any]) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return web.json_response(read(self._stack(request), request))

        return answer

    def _stack_document(self, stack: Stack, request: web.Request) -> Json:
        outputs = request.query.get("resolve_outputs", "True").lower() != "false"
        return self._documents.stack(stack, outputs=outputs)

    def _resources(self, stack: Stack, request: web.Request) -> Json:
        detailed = request.query.get("with_detail", "False").lower() == "true"
        kinds = request.query.getall("type", [])
        resources = [
            self._documents.resource(resource, detailed=detailed)
            for resource in stack.walk(int(request.query.get("nested_depth", 0)))
            if not kinds or resource.kind in kinds
        ]
        return {"resources": resources}

    def _events(self, stack: Stack, request: web.Request) -> Json:
        events = self._documents.events(stack, depth=int(request.query.get("nested_depth", 0)))
        if request.query.get("sort_dir", "desc") == "asc":
            events.reverse()
        marker = request.query.get("marker")
        marked = [number for number, event in enumerate(events) if event["id"] == marker]
        shown = events[marked[0] + 1 :] if marked else events
        return {"events": shown[: int(request.query.get("limit", len(shown)))]}

    def _resource(self, stack: Stack, request: web.Request) -> Json:
        resource = self._heat.resource(stack, request.match_info["resource"])
        return {"resource": self._documents.resource(resource, detailed=True)}

    def _metadata(self, stack: Stack, request: web.Request) -> Json:
        self._heat.resource(stack, request.match_info["resource"])
        return {"metadata": {}}

    def _resource_events(self, stack: Stack, request: web.Request) -> Json:
        resource = self._heat.resource(stack, request.match_info["resource"])
        return {"events": self._documents.events(stack, of=resource.name)}

    async def _images(self, request: web.Request) -> web.Response:
        """Return the image of a name, which is its id too, or of an id in the form of a UUID, which
        is no name."""
        self._keystone.check(request.headers.get("X-Auth-Token"))
        by_id = "id" in request.query
        name = request.query["id"].removeprefix("in:") if by_id else request.query.get("name", "")
        known = self._faults.images
        is_known = known is None or name in known
        found = [{"id": name, "name": name}] if is_known and _is_uuid(name) is by_id else []
        return web.json_response({"images": found})

    async def _flavors(self, request: web.Request) -> web.Response:
        self._keystone.check(request.headers.get("X-Auth-Token"))
        disks = self._faults.disks.items()
        flavors = [{"id": name, "name": name, "disk": disk} for name, disk in disks]
        return web.json_response({"flavors": flavors})

    async def _versions(self, request: web.Request) -> web.Response:
        link = {"rel": "self", "href": f"http://{request.host}/heat-api/v1/"}
        version = {"id": "v1.0", "status": "CURRENT", "links": [link]}
        return web.json_response({"versions": [version]}, status=300)

    async def _create(self, request: web.Request) -> web.Response:
        self._check(request)
        created = self._heat.create(await request.json())
        location = created["stack"]["links"][0]["href"]
        return web.json_response(created, status=201, headers={"Location": location})

    async def _list(self, request: web.Request) -> web.Response:
        self._check(request)
        tags = set(filter(None, request.query.get("tags", "").split(",")))
        names = request.query.getall("stack_name", []) + request.query.getall("name", [])
        statuses = request.query.getall("status", [])
        nested, deleted = (
            request.query.get(key, "False").lower() == "true"
            for key in ("show_nested", "show_deleted")
        )
        stacks = self._heat.all_stacks() if nested else self._heat.stacks
        found = [
            self._documents.summary(stack)
            for stack in stacks
            if (deleted or not stack.deleted)
            and tags <= set(stack.tags)
            and (not names or stack.name in names)
            and (not statuses or stack.status in statuses)
        ]
        found.reverse()
        return web.json_response({"stacks": found})

    async def _update(self, request: web.Request) -> web.Response:
        stack = self._stack(request)
        existing = request.method == "PATCH"
        self._heat.update(stack, await request.json(), existing=existing)
        return _without_document(request, 202, "The request is accepted for processing.")

    async def _delete(self, request: web.Request) -> web.Response:
        self._heat.delete(self._stack(request))
        return web.Response(status=204)

    async def _act(self, request: web.Request) -> web.Response:
        self._heat.act(self._stack(request), sorted(await request.json()))
        return web.json_response(None)

    async def _mark(self, request: web.Request) -> web.Response:
        resource = self._heat.resource(self._stack(request), request.match_info["resource"])
        self._heat.mark_unhealthy(resource, await request.json())
        return web.json_response(None)

    async def _look_up(self, request: web.Request) -> web.Response:
        """Redirect from a stack's name or id alone to its address."""
        self._check(request)
        address = self._documents.url_of(self._heat.find(request.match_info["reference"]))
        path = request.match_info.get("path")
        location = f"{address}/{path}" if path else address
        query = f"?{request.query_string}" if request.query_string else ""
        text = f'The resource was found at <a href="{location}">{location}</a>.'
        response = _without_document(request, 302, text)
        response.headers["Location"] = location + query
        return response


def _without_document(request: web.Request, status: int, message: str) -> web.Response:
    """Return a response about the request itself: JSON only for those who ask for it."""
    phrase = HTTPStatus(status).phrase
    accepted = request.headers.get("Accept", "")
    if "application/json" in accepted:
        body = {"message": f"{message}<br /><br />", "code": f"{status} {phrase}", "title": phrase}
        return web.json_response(body, status=status)
    if "html" in accepted:
        page = f"<html><head><title>{status} {phrase}</title></head><body>{message}</body></html>"
        return web.Response(status=status, text=page, content_type="text/html")
    return web.Response(status=status, text=f"{status} {phrase}\n\n{message}\n\n")


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _without_values(stack: Stack) -> list[Json]:
    return [
        {key: output[key] for key in ("output_key", "description")} for output in stack.outputs()
    ]


def _output(stack: Stack, request: web.Request) -> Json:
    name = request.match_info["output"]
    for output in stack.outputs():
        if output["output_key"] == name:
            return {"output": output}
    raise OpenStackApiError(404, "NotFound", f"Specified output key {name} not found.")
