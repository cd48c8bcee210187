# SPDX-License-Identifier: Apache-2.0
"""What SOL003 does not have: live resources, and the plan of a request. All of it only reads."""

from __future__ import annotations

from fastapi import APIRouter, Request

from container_update.model.objects import Json
from container_update.package.fetch import is_url
from container_update.vnfm import instances
from container_update.vnfm.api import models, parts
from container_update.vnfm.api.request_checks import check_state, checked
from container_update.vnfm.http.authentication import READING
from container_update.vnfm.http.users import user_of
from container_update.vnfm.lcm import preview
from container_update.vnfm.lcm.live import resources as live_resources
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.queries import by_id
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance


def router(service: ServiceContext, api: str) -> APIRouter:
    """Return the resources of one of the two APIs, below its instances."""
    routes = parts.lcm_router(api, "vnf_instances", "VNF instances")

    @routes.get(
        "/{instance_id}/resources", responses=parts.refusals(404, 502), tags=[parts.EXTENSION]
    )
    def resources(instance_id: str) -> Json:
        """Return what runs in the VIM: VDUs, workloads, pods or servers; an extension of SOL003."""
        with service.database.reading() as session:
            instance = by_id(session, Instance, instance_id, api)
        return live_resources.resources_of(service, instance)

    @routes.post(
        "/{instance_id}/plan",
        responses=parts.refusals(404, 409, 413, 502),
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
            check_state(instance, operation, True if operation == preview.CHANGE else None)
            request, _ = checked(service, session, instance, operation, request)
            recorded = instances.vims_of(service, instance)
        return preview.plan_of(service, instance, recorded, operation, request)

    return routes


def _names_of_peers(value: object) -> str:
    """Return what in a request names somebody to connect to, in words; empty if nothing does."""
    if isinstance(value, dict):
        if value.get("vimConnectionInfo"):
            return "vimConnectionInfo"
        return next(filter(None, map(_names_of_peers, value.values())), "")
    if isinstance(value, list):
        return next(filter(None, map(_names_of_peers, value)), "")
    return "a URL" if isinstance(value, str) and is_url(value) else ""
