# SPDX-License-Identifier: Apache-2.0
"""``/vnflcm/{v1,v2}/vnf_instances``: VNF instances and their operations."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select

from container_update.model.objects import Json
from container_update.package.fetch import is_url
from container_update.vnfm import instances, operations
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.lists import Attributes, Page, TableQuery
from container_update.vnfm.api.queries.rest_resources import RestResource
from container_update.vnfm.api.request_checks import check_request
from container_update.vnfm.http.authentication import READING, user_of
from container_update.vnfm.lcm import tasks
from container_update.vnfm.lcm.live.resources import resources_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance, by_id
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset(
        {"id", "vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion",
         "instantiationState", "_links"}
    ),
    hidden=("vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata",
            "extensions"),
)  # fmt: skip


def router(service: ServiceContext, workers: Workers, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = parts.sol_router(api, "vnf_instances", "VNF instances")
    resource = representations.instance(
        service.settings.base_url, lambda row: instances.vims_of(service, row)
    )
    _add_resource(routes, service, api, resource)
    _add_operations(routes, service, workers, api, resource)
    _add_insights(routes, service, api)
    return routes


def _add_resource(
    routes: APIRouter, service: ServiceContext, api: str, resource: RestResource
) -> None:
    listing = TableQuery(resource, Instance.created, Instance.id, _ATTRIBUTES)

    @routes.post("", status_code=201, responses=parts.refusals(409, 413))
    def create(body: models.CreateVnf, response: Response) -> Json:
        """Create a VNF instance of an onboarded package."""
        with service.database.writing() as session:
            instance = instances.create(service, session, api, body.as_sent())
            answer = resource.represent(instance)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.get("", responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the VNF instances of this API."""
        return page.read(service, select(Instance).where(Instance.api == api), listing)

    @routes.get("/{instance_id}", responses=parts.refusals(404))
    def show(instance_id: str, response: Response) -> Json:
        """Return a VNF instance."""
        with service.database.reading() as session:
            answer = resource.represent(by_id(session, Instance, instance_id, api))
        response.headers["ETag"] = parts.etag_of(answer)
        return answer

    @routes.delete("/{instance_id}", status_code=204, responses=parts.refusals(404, 409))
    def delete(instance_id: str) -> None:
        """Delete a VNF instance that is not instantiated."""
        with service.database.writing() as session:
            instance = by_id(session, Instance, instance_id, api, lock=True)
            instances.delete(service, session, instance)


_OTHER_TASKS = {
    "v1": ("scale_to_level", "operate", "change_flavour", "change_ext_conn"),
    "v2": ("scale_to_level", "operate", "change_flavour", "change_ext_conn", "create_snapshot",
           "revert_to_snapshot"),
}  # fmt: skip
"""Those that SOL003 has besides. A POST is answered as for a VNF that does not support the task
(404: for it "the task resource does not exist"); other methods as for any task (405)."""
_ACCEPTING = parts.accepting(404, 409, 413)


def _add_operations(
    routes: APIRouter, service: ServiceContext, workers: Workers, api: str, resource: RestResource
) -> None:
    def start(http: Request, instance_id: str, operation: str, request: Json, why: str) -> Response:
        """Store the operation, queue it, answer 202."""
        with service.database.writing() as session, parts.unprocessable(service):
            instance = by_id(session, Instance, instance_id, api, lock=True)
            if operation == "MODIFY_INFO":
                parts.require_match(http, resource.represent(instance))
            request, hidden = check_request(service, session, instance, operation, request)
            occurrence = operations.begin(
                service,
                session,
                instance,
                operation,
                request,
                requested_by=user_of(http).name,
                hidden=hidden,
                why=why,
            )
        workers.operation(occurrence.id)
        return parts.accept_operation(service, occurrence)

    @routes.post("/{instance_id}/instantiate", **_ACCEPTING)
    @parts.taking(models.INSTANTIATE[api])
    def instantiate(
        http: Request, instance_id: str, body: models.InstantiateVnf, why: parts.Why
    ) -> Response:
        """Instantiate a VNF instance."""
        return start(http, instance_id, "INSTANTIATE", body.as_sent(), why)

    @routes.patch("/{instance_id}", **parts.accepting(404, 409, 412, 413))
    @parts.taking(models.MODIFY[api])
    def modify(http: Request, instance_id: str, body: models.ModifyVnf, why: parts.Why) -> Response:
        """Modify a VNF instance; with a vnfdId it may be moved to another package."""
        return start(http, instance_id, "MODIFY_INFO", body.as_sent(), why)

    def change_vnfpkg(
        http: Request, instance_id: str, body: models.ChangeVnfPkg, why: parts.Why
    ) -> Response:
        """Change the package of a VNF instance: Blue-Green or rolling."""
        return start(http, instance_id, "CHANGE_VNFPKG", body, why)

    if api == "v2":
        routes.post("/{instance_id}/change_vnfpkg", **_ACCEPTING)(change_vnfpkg)

    @routes.post("/{instance_id}/heal", **_ACCEPTING)
    def heal(http: Request, instance_id: str, body: models.HealVnf, why: parts.Why) -> Response:
        """Replace VNFCs that are broken, or bring the whole VNF to what its package says."""
        return start(http, instance_id, "HEAL", body.as_sent(), why or body.cause or "")

    @routes.post("/{instance_id}/scale", **_ACCEPTING)
    def scale(http: Request, instance_id: str, body: models.ScaleVnf, why: parts.Why) -> Response:
        """Scale a VNF instance out or in by one of its aspects."""
        return start(http, instance_id, "SCALE", body.as_sent(), why)

    def refuse(instance_id: str) -> None:
        """Refuse a task of SOL003 that this service does not have."""
        with service.database.reading() as session:
            by_id(session, Instance, instance_id, api)
        raise ProblemError(
            404, f"VNF instance {instance_id}: this VNFM does not support the task for any VNF"
        )

    for task in _OTHER_TASKS[api]:
        path = f"/{{instance_id}}/{task}"
        routes.post(path, include_in_schema=False)(refuse)

    @routes.post("/{instance_id}/terminate", **_ACCEPTING)
    def terminate(
        http: Request, instance_id: str, body: models.TerminateVnf, why: parts.Why
    ) -> Response:
        """Terminate a VNF instance."""
        return start(http, instance_id, "TERMINATE", body.as_sent(), why)


def _add_insights(routes: APIRouter, service: ServiceContext, api: str) -> None:
    """Add what SOL003 does not have: live resources, and the plan of a request. It only reads."""

    @routes.get(
        "/{instance_id}/resources",
        responses=parts.refusals(404, 429, 502),
        dependencies=[Depends(service.vim_requests.count)],
        tags=[parts.EXTENSION],
    )
    def resources(instance_id: str) -> Json:
        """Return the live resources: VDUs, workloads, pods or servers; an extension of SOL003."""
        with service.database.reading() as session:
            instance = by_id(session, Instance, instance_id, api)
        return resources_of(service, instance.id)

    @routes.post(
        "/{instance_id}/plan",
        responses=parts.refusals(404, 409, 413, 429, 502),
        dependencies=[Depends(service.vim_requests.count)],
        tags=[parts.EXTENSION],
        openapi_extra={READING: True},
    )
    @parts.taking(models.PLAN[api])
    def plan(instance_id: str, body: models.RequestBody, http: Request) -> Json:
        """Return what a request would do, and do nothing; an extension of SOL003."""
        sent, user = body.as_sent(), user_of(http)
        operation, request = sent["operation"], sent["request"]
        if not user.may_change and (names := _names_of_peers(request)):
            raise ProblemError(
                403,
                f"the token of {user.name} may only read: {names} says where the service connects "
                "to, and a plan with it needs a token that may write: leave it out",
            )
        with service.database.reading() as session, parts.unprocessable(service):
            instance = by_id(session, Instance, instance_id, api)
            request, _ = check_request(service, session, instance, operation, request)
            recorded = instances.vims_of(service, instance)
        return tasks.plan_of(service, instance, recorded, operation, request)


def _names_of_peers(value: object) -> str:
    """Return what in a request names a server to connect to, in words; empty if nothing does."""
    if isinstance(value, dict):
        if value.get("vimConnectionInfo"):
            return "vimConnectionInfo"
        return next(filter(None, map(_names_of_peers, value.values())), "")
    if isinstance(value, list):
        return next(filter(None, map(_names_of_peers, value)), "")
    return "a URL" if isinstance(value, str) and is_url(value) else ""
