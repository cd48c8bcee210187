# SPDX-License-Identifier: Apache-2.0
"""``/vnfpkgm/v1/vnf_packages``: VNF packages (SOL005, clause 9).

``onboarded_vnf_packages`` are the same by the ids of their VNFDs (SOL003, clause 10).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, PlainTextResponse
from sqlalchemy import Select, select
from starlette.requests import ClientDisconnect

from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.lists import Attributes, Page, TableQuery
from container_update.vnfm.http.authentication import user_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package, by_id
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset({"id", "onboardingState", "operationalState", "usageState", "_links"}),
    hidden=("softwareImages", "additionalArtifacts", "userDefinedData", "checksum"),
)
"""SOL005 hides onboardingFailureDetails too; here a list says why a package is in ERROR."""

_ZIP_TYPE = "application/zip"
_ZIP = {"content": {_ZIP_TYPE: {"schema": {"type": "string", "format": "binary"}}}}

_FILE_TYPE = "application/octet-stream"
"""Of every artifact: no browser may run a page or a script of a package as one of this service."""
_FILE = {"content": {_FILE_TYPE: {"schema": {"type": "string"}}}}
_VNFD = {"content": {**_ZIP["content"], "text/plain": {"schema": {"type": "string"}}}}


def router(service: ServiceContext, workers: Workers) -> APIRouter:
    """Return the resources."""
    accepting = [Depends(parts.check_accept)]
    routes = APIRouter(prefix="/vnfpkgm/v1", tags=["VNF packages"], dependencies=accepting)
    _add_changes(routes, service)
    _add_uploads(routes, service, workers)

    def with_id(package_id: str) -> Package:
        with service.database.reading() as session:
            return by_id(session, Package, package_id)

    def with_vnfd(vnfd_id: str) -> Package:
        with service.database.reading() as session:
            return packages.of_vnfd_id(session, vnfd_id)

    every, onboarded = select(Package), select(Package).where(Package.vnfd_id.is_not(None))
    _add_reading(routes, service, _PATH, every, with_id)
    _add_reading(routes, service, "/onboarded_vnf_packages", onboarded, with_vnfd)
    return routes


_PATH = "/vnf_packages"
_ID = f"{_PATH}/{{package_id}}"


def _add_changes(routes: APIRouter, service: ServiceContext) -> None:

    @routes.post(_PATH, status_code=201, responses=parts.refusals(413))
    def create(body: models.CreatePackage, response: Response) -> Json:
        """Create a package, without content."""
        with service.database.writing() as session:
            package = packages.create(session, body.userDefinedData)
            answer = _LISTING.show(session, package.id)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.patch(_ID, responses=parts.refusals(404, 409, 412, 413))
    def modify(package_id: str, body: models.ModifyPackage, http: Request) -> Json:
        """Enable or disable a package, or change its user-defined data."""
        with service.database.writing() as session:
            package = by_id(session, Package, package_id, lock=True)
            parts.require_match(http, _LISTING.show(session, package.id))
            return packages.modify(service, session, package, body.as_sent())

    @routes.delete(_ID, status_code=204, responses=parts.refusals(404, 409))
    def delete(package_id: str) -> None:
        """Delete a package that is disabled and not in use."""
        with service.database.writing() as session:
            package = by_id(session, Package, package_id, lock=True)
            packages.delete(service, session, package)
        packages.delete_content(service, package.id)


def _add_uploads(routes: APIRouter, service: ServiceContext, workers: Workers) -> None:
    @routes.put(
        f"{_ID}/package_content",
        **parts.accepting(404, 409, 413, 415, 429),
        dependencies=[Depends(service.package_transfers.count)],
        openapi_extra={"requestBody": {"required": True, **_ZIP}},
    )
    async def upload(package_id: str, request: Request) -> Response:
        """Upload the content of a package: a CSAR zip."""
        _require_zip(request.headers.get("content-type", _ZIP_TYPE))
        package_id = package_id.lower()
        part = await run_in_threadpool(packages.begin_upload, service, package_id)
        try:
            with part.open("wb") as file:  # a middleware limits its size
                async for chunk in request.stream():
                    await run_in_threadpool(file.write, chunk)
            await run_in_threadpool(packages.end_upload, service, package_id)
        except BaseException as error:
            give_up = partial(packages.give_up_upload, service, package_id)
            await run_in_threadpool(service.database.lasting, give_up)
            if isinstance(error, ClientDisconnect):
                raise ProblemError(400, "the connection ended before the content did") from error
            raise
        workers.package(package_id)
        return Response(status_code=202)

    @routes.post(f"{_ID}/package_content/upload_from_uri", **parts.accepting(404, 409, 413, 429))
    def upload_from_uri(package_id: str, body: models.UploadFromUri, http: Request) -> Response:
        """Fetch the content of a package from a URI that the service may reach."""
        package_id = package_id.lower()
        source = packages.PackageSource(body.addressInformation, body.userName, body.password)
        with ExitStack() as counted:
            counted.enter_context(service.package_transfers.take(user_of(http).name))
            packages.begin_upload(service, package_id)
            workers.download(package_id, source, counted.pop_all())
        return Response(status_code=202)


def _add_reading(
    routes: APIRouter,
    service: ServiceContext,
    path: str,
    listed: Select[Any],
    find: Callable[[str], Package],
) -> None:
    """Add the resources of packages that are only read; *find* returns the one of a path."""
    (parameter,) = signature(find).parameters
    one, named = f"{path}/{{{parameter}}}", Depends(find)

    @routes.get(path, responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the packages."""
        return page.read(service, listed, _LISTING)

    @routes.get(one, responses=parts.refusals(404))
    def show(response: Response, package: Package = named) -> Json:
        """Return a package."""
        with service.database.reading() as session:
            answer = _LISTING.show(session, package.id)
        response.headers["ETag"] = parts.etag_of(answer)
        return answer

    @routes.get(
        f"{one}/package_content",
        response_class=FileResponse,
        responses={**parts.refusals(404, 409), 200: {"description": "The CSAR zip.", **_ZIP}},
    )
    def download(package: Package = named) -> FileResponse:
        """Return the content of a package, as it was uploaded."""
        packages.require_onboarded(package)
        return FileResponse(packages.content(service, package.id), media_type=_ZIP_TYPE)

    @routes.get(
        f"{one}/vnfd",
        response_class=Response,
        responses={**parts.refusals(404, 409), 200: {"description": "The VNFD.", **_VNFD}},
    )
    def vnfd(package: Package = named, accept: str = Header(default="*/*")) -> Response:
        """Return the VNFD: its only file as text, or a zip of all its files, as Accept asks."""
        files = packages.vnfd_files(service, package)
        definitions = [path for path in files.values() if path.suffix in (".yaml", ".yml")]
        is_text = "text/plain" in accept and len(definitions) == 1
        if is_text:
            return PlainTextResponse(definitions[0].read_text("utf-8"))
        if "text/plain" in accept and "zip" not in accept:
            raise ProblemError(
                406, f"Accept: the VNFD has {len(definitions)} files: ask for {_ZIP_TYPE}"
            )
        return Response(_zip(files), media_type=_ZIP_TYPE)

    @routes.get(
        f"{one}/artifacts/{{path:path}}",
        response_class=FileResponse,
        responses={**parts.refusals(404, 409), 200: {"description": "The file.", **_FILE}},
    )
    def artifact(path: str, package: Package = named) -> FileResponse:
        """Return one file of an onboarded package."""
        file = packages.artifact(service, package, path)
        return FileResponse(file, media_type=_FILE_TYPE)


def _require_zip(content_type: str) -> None:
    """Raise ProblemError 415 for an upload that says that it is no zip (SOL005, 9.4.5.3.3)."""
    found = content_type.partition(";")[0].strip().lower()
    if found not in (_ZIP_TYPE, "application/x-zip-compressed"):
        raise ProblemError(415, f"Content-Type: expected {_ZIP_TYPE}, found {found[:64]!r}")


def _zip(files: Mapping[str, Path]) -> bytes:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.write(path, name)
    return zipped.getvalue()


_LISTING = TableQuery(representations.PACKAGE, Package.created, Package.id, _ATTRIBUTES)
