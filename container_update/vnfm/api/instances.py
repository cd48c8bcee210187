# SPDX-License-Identifier: Apache-2.0
"""``/vnflcm/{v1,v2}/vnf_instances``: VNF instances and their operations."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from container_update.model.objects import Json
from container_update.vnfm import instances, operations
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.attribute_selectors import Attributes
from container_update.vnfm.api.queries.lists import Page, TableQuery
from container_update.vnfm.api.request_checks import check_state, checked
from container_update.vnfm.http.users import user_of
from container_update.vnfm.queries import by_id
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance
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
    routes = parts.lcm_router(api, "vnf_instances", "VNF instances")
    _add_resource(routes, service, api)
    _add_operations(routes, _Starter(service, workers, api))
    return routes


def _add_resource(routes: APIRouter, service: ServiceContext, api: str) -> None:
    resource = representations.instance(
        service.settings.base_url, lambda row: instances.vims_of(service, row)
    )
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
    def show(instance_id: str) -> Json:
        """Return a VNF instance."""
        with service.database.reading() as session:
            return resource.represent(by_id(session, Instance, instance_id, api))

    @routes.delete("/{instance_id}", status_code=204, responses=parts.refusals(404, 409))
    def delete(instance_id: str) -> None:
        """Delete a VNF instance that is not instantiated."""
        with service.database.writing() as session:
            instance = by_id(session, Instance, instance_id, api, lock=True)
            instances.delete(service, session, instance)


@dataclass(frozen=True)
class _Starter:
    """Starts lifecycle operations."""

    service: ServiceContext
    workers: Workers
    api: str

    def start(
        self,
        http: Request,
        instance_id: str,
        operation: str,
        request: Json,
        instantiated: bool | None = None,
    ) -> Response:
        """Store the operation, queue it, answer 202.

        :param http: the request as it arrived.
        :param instantiated: what the instance has to be; None: either.
        """
        service = self.service
        with service.database.writing() as session, parts.unprocessable(service):
            instance = by_id(session, Instance, instance_id, self.api, lock=True)
            check_state(instance, operation, instantiated)
            request, hidden = checked(service, session, instance, operation, request)
            occurrence = operations.begin(
                service,
                session,
                instance,
                operation,
                request,
                requested_by=user_of(http).name,
                hidden=hidden,
            )
        self.workers.operation(occurrence.id)
        return parts.accepted(service, occurrence)


_ACCEPTING = parts.accepting(404, 409, 413)


def _add_operations(routes: APIRouter, starter: _Starter) -> None:
    @routes.post("/{instance_id}/instantiate", **_ACCEPTING)
    @parts.taking(models.INSTANTIATE[starter.api])
    def instantiate(http: Request, instance_id: str, body: models.InstantiateVnf) -> Response:
        """Instantiate a VNF instance."""
        return starter.start(http, instance_id, "INSTANTIATE", body.as_sent(), instantiated=False)

    @routes.patch("/{instance_id}", **_ACCEPTING)
    @parts.taking(models.MODIFY[starter.api])
    def modify(http: Request, instance_id: str, body: models.ModifyVnf) -> Response:
        """Modify a VNF instance; with a vnfdId it may be moved to another package."""
        return starter.start(http, instance_id, "MODIFY_INFO", body.as_sent())

    def change_vnfpkg(http: Request, instance_id: str, body: models.ChangeVnfPkg) -> Response:
        """Change the package of a VNF instance: Blue-Green or rolling."""
        return starter.start(http, instance_id, "CHANGE_VNFPKG", body, instantiated=True)

    if starter.api == "v2":
        routes.post("/{instance_id}/change_vnfpkg", **_ACCEPTING)(change_vnfpkg)

    @routes.post("/{instance_id}/heal", **_ACCEPTING)
    def heal(http: Request, instance_id: str, body: models.HealVnf) -> Response:
        """Replace VNFCs that are broken, or bring the whole VNF to what its package says."""
        return starter.start(http, instance_id, "HEAL", body.as_sent(), instantiated=True)

    @routes.post("/{instance_id}/scale", **_ACCEPTING)
    def scale(http: Request, instance_id: str, body: models.ScaleVnf) -> Response:
        """Scale a VNF instance out or in by one of its aspects."""
        return starter.start(http, instance_id, "SCALE", body.as_sent(), instantiated=True)

    @routes.post("/{instance_id}/terminate", **_ACCEPTING)
    def terminate(http: Request, instance_id: str, body: models.TerminateVnf) -> Response:
        """Terminate a VNF instance."""
        return starter.start(http, instance_id, "TERMINATE", body.as_sent(), instantiated=True)
