"""``/vnfpkgm/v1/vnf_packages``: VNF packages (SOL005, clause 9)."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import ClientDisconnect

from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.api import models, representations
from container_update.vnfm.api.attribute_selectors import Attributes
from container_update.vnfm.api.parts import known_id, listed, refusals
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset({"id", "onboardingState", "operationalState", "usageState", "_links"}),
    hidden=("softwareImages", "additionalArtifacts", "userDefinedData", "checksum",
            "onboardingFailureDetails"),
)  # fmt: skip

_ZIP = {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}


def router(service: ServiceContext, workers: Workers) -> APIRouter:
    """Return the resource."""
    routes = APIRouter(prefix="/vnfpkgm/v1/vnf_packages", tags=["VNF packages"])
    _add_resource(routes, service)
    _add_content(routes, service, workers)
    return routes


def _add_resource(routes: APIRouter, service: ServiceContext) -> None:
    @routes.post("", status_code=201, responses=refusals(413))
    def create(body: models.CreatePackage, response: Response) -> Json:
        """Create a package, without content."""
        with service.database.writing() as session:
            created = packages.create(session, body.userDefinedData)
            answer = _shown(session, created)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.get("", responses=refusals())
    def list_all(request: Request, response: Response) -> list[Json]:
        """Return the packages."""
        with service.database.reading() as session:
            return listed(
                select(Package).order_by(Package.created, Package.id),
                lambda query: [_shown(session, row) for row in session.scalars(query).all()],
                request,
                response,
                attributes=_ATTRIBUTES,
                page_size=service.settings.page_size,
            )

    @routes.get("/{package_id}", responses=refusals(404))
    def show(package_id: str) -> Json:
        """Return a package."""
        with service.database.reading() as session:
            return _shown(session, packages.get(session, _id(package_id)))

    @routes.patch("/{package_id}", responses=refusals(404, 409, 413))
    def modify(package_id: str, body: models.ModifyPackage) -> Json:
        """Enable or disable a package, or change what the user keeps with it."""
        with service.database.writing() as session:
            return packages.modify(packages.get(session, _id(package_id)), body.as_sent())

    @routes.delete("/{package_id}", status_code=204, responses=refusals(404, 409))
    def delete(package_id: str) -> None:
        """Delete a package that is disabled and not in use."""
        with service.database.writing() as session:
            packages.delete(service, session, packages.get(session, _id(package_id)))


def _add_content(routes: APIRouter, service: ServiceContext, workers: Workers) -> None:
    @routes.put(
        "/{package_id}/package_content",
        status_code=202,
        response_class=Response,
        responses=refusals(404, 409, 413),
        openapi_extra={"requestBody": {"required": True, **_ZIP}},
    )
    async def upload(package_id: str, request: Request) -> Response:
        """Upload the content of a package: a CSAR zip."""
        found = _id(package_id)
        part = await run_in_threadpool(packages.begin_upload, service, found)
        try:
            await _receive(request, part)
            await run_in_threadpool(packages.end_upload, service, found)
        except BaseException as error:
            await run_in_threadpool(packages.give_up_upload, service, found)
            if isinstance(error, ClientDisconnect):
                raise ProblemError(400, "the connection ended before the content did") from error
            raise
        workers.package(found)
        return Response(status_code=202)

    @routes.get(
        "/{package_id}/package_content",
        response_class=FileResponse,
        responses={**refusals(404, 409), 200: {"description": "The CSAR zip.", **_ZIP}},
    )
    def download(package_id: str) -> FileResponse:
        """Return the content of a package, as it was uploaded."""
        with service.database.reading() as session:
            found = packages.get(session, _id(package_id))
        if found.onboarding_state != packages.ONBOARDED:
            state = found.onboarding_state
            raise ProblemError(
                409, f"package {found.id}: expected it to be ONBOARDED, found {state}"
            )
        return FileResponse(packages.content(service, found.id), media_type="application/zip")


async def _receive(request: Request, part: Path) -> None:
    """Write the body out as it comes; how big it may be is the middleware's to say."""
    with part.open("wb") as file:
        async for chunk in request.stream():
            await run_in_threadpool(file.write, chunk)


def _id(text: str) -> str:
    return known_id(text, "VNF package")


def _shown(session: Session, row: Package) -> Json:
    used = "IN_USE" if packages.in_use(session, row) else "NOT_IN_USE"
    return {**representations.package(row), "usageState": used}
