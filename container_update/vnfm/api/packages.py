# SPDX-License-Identifier: Apache-2.0
"""``/vnfpkgm/v1/vnf_packages``: VNF packages (SOL005, clause 9)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, PlainTextResponse
from sqlalchemy import select
from starlette.requests import ClientDisconnect

from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.lists import Attributes, Page, TableQuery
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package, by_id
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset({"id", "onboardingState", "operationalState", "usageState", "_links"}),
    hidden=("softwareImages", "additionalArtifacts", "userDefinedData", "checksum"),
)
"""SOL005 hides onboardingFailureDetails too; here a list says why a package is in ERROR."""

_ZIP = {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}

_FILE = {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}
_VNFD = {"content": {**_ZIP["content"], "text/plain": {"schema": {"type": "string"}}}}


def router(service: ServiceContext, workers: Workers) -> APIRouter:
    """Return the resource."""
    routes = APIRouter(prefix="/vnfpkgm/v1/vnf_packages", tags=["VNF packages"])

    @routes.post("", status_code=201, responses=parts.refusals(413))
    def create(body: models.CreatePackage, response: Response) -> Json:
        """Create a package, without content."""
        with service.database.writing() as session:
            package = packages.create(session, body.userDefinedData)
            answer = _LISTING.show(session, package.id)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.get("", responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the packages."""
        return page.read(service, select(Package), _LISTING)

    @routes.get("/{package_id}", responses=parts.refusals(404))
    def show(package_id: str, response: Response) -> Json:
        """Return a package."""
        with service.database.reading() as session:
            answer = _LISTING.show(session, by_id(session, Package, package_id).id)
        response.headers["ETag"] = parts.etag_of(answer)
        return answer

    @routes.patch("/{package_id}", responses=parts.refusals(404, 409, 412, 413))
    def modify(package_id: str, body: models.ModifyPackage, http: Request) -> Json:
        """Enable or disable a package, or change its user-defined data."""
        with service.database.writing() as session:
            package = by_id(session, Package, package_id, lock=True)
            parts.require_match(http, _LISTING.show(session, package.id))
            return packages.modify(package, body.as_sent())

    @routes.delete("/{package_id}", status_code=204, responses=parts.refusals(404, 409))
    def delete(package_id: str) -> None:
        """Delete a package that is disabled and not in use."""
        with service.database.writing() as session:
            package = by_id(session, Package, package_id, lock=True)
            packages.delete(session, package)
        packages.delete_content(service, package.id)

    _add_content(routes, service, workers)
    return routes


def _add_content(routes: APIRouter, service: ServiceContext, workers: Workers) -> None:
    @routes.put(
        "/{package_id}/package_content",
        **parts.accepting(404, 409, 413),
        openapi_extra={"requestBody": {"required": True, **_ZIP}},
    )
    async def upload(package_id: str, request: Request) -> Response:
        """Upload the content of a package: a CSAR zip."""
        package_id = package_id.lower()
        part = await run_in_threadpool(packages.begin_upload, service, package_id)
        try:
            with part.open("wb") as file:  # a middleware limits its size
                async for chunk in request.stream():
                    await run_in_threadpool(file.write, chunk)
            await run_in_threadpool(packages.end_upload, service, package_id)
        except BaseException as error:
            await run_in_threadpool(packages.give_up_upload, service, package_id)
            if isinstance(error, ClientDisconnect):
                raise ProblemError(400, "the connection ended before the content did") from error
            raise
        workers.package(package_id)
        return Response(status_code=202)

    @routes.post("/{package_id}/package_content/upload_from_uri", **parts.accepting(404, 409, 413))
    def upload_from_uri(package_id: str, body: models.UploadFromUri) -> Response:
        """Fetch the content of a package from a URI that the service may reach."""
        package_id = package_id.lower()
        packages.begin_upload(service, package_id)
        source = packages.PackageSource(body.addressInformation, body.userName, body.password)
        workers.package(package_id, source)
        return Response(status_code=202)

    @routes.get(
        "/{package_id}/package_content",
        response_class=FileResponse,
        responses={**parts.refusals(404, 409), 200: {"description": "The CSAR zip.", **_ZIP}},
    )
    def download(package_id: str) -> FileResponse:
        """Return the content of a package, as it was uploaded."""
        with service.database.reading() as session:
            package = by_id(session, Package, package_id)
        packages.require_onboarded(package)
        return FileResponse(packages.content(service, package.id), media_type="application/zip")

    @routes.get(
        "/{package_id}/vnfd",
        response_class=Response,
        responses={**parts.refusals(404, 409), 200: {"description": "The VNFD.", **_VNFD}},
    )
    def vnfd(package_id: str, accept: str = Header(default="*/*")) -> Response:
        """Return the VNFD: its only file as text, or a zip of all its files, as Accept asks."""
        with service.database.reading() as session:
            package = by_id(session, Package, package_id)
        files = packages.vnfd_files(service, package)
        definitions = [path for path in files.values() if path.suffix in (".yaml", ".yml")]
        is_text = "text/plain" in accept and len(definitions) == 1
        if is_text:
            return PlainTextResponse(definitions[0].read_text("utf-8"))
        if "text/plain" in accept and "zip" not in accept:
            raise ProblemError(
                406, f"Accept: the VNFD has {len(definitions)} files: ask for application/zip"
            )
        return Response(_zipped(files), media_type="application/zip")

    @routes.get(
        "/{package_id}/artifacts/{path:path}",
        response_class=FileResponse,
        responses={**parts.refusals(404, 409), 200: {"description": "The file.", **_FILE}},
    )
    def artifact(package_id: str, path: str) -> FileResponse:
        """Return one file of an onboarded package."""
        with service.database.reading() as session:
            package = by_id(session, Package, package_id)
        file = packages.artifact(service, package, path)
        return FileResponse(file, media_type="application/octet-stream")


def _zipped(files: Mapping[str, Path]) -> bytes:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.write(path, name)
    return zipped.getvalue()


_LISTING = TableQuery(representations.PACKAGE, Package.created, Package.id, _ATTRIBUTES)
