# SPDX-License-Identifier: Apache-2.0
"""The content of a package: from an uploaded zip to a folder that operations read.

What has a name with ``.part`` is incomplete and ignored.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.objects import Json
from container_update.package import archive, csar, fetch
from container_update.package.tosca.process import ReaderEndedError
from container_update.package.vnfd import Flavour
from container_update.vnfm import packages
from container_update.vnfm.packages import CREATED, ENABLED, ERROR, ONBOARDED, PROCESSING, UPLOADING
from container_update.vnfm.problems import ProblemError, without_folder
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package, by_id, compare_and_set

LOG = logging.getLogger(__name__)

_CHUNK = 1024 * 1024
_ATTEMPTS = 2
"""How often a package is read that ends its reader."""


@dataclass(frozen=True)
class PackageSource:
    """Where the content of a package is fetched from."""

    uri: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that prove who asks (RFC 7617)."""
        if self.user is None:
            return fetch.NO_HEADERS
        pair = f"{self.user}:{self.password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _part(service: ServiceContext, package_id: str) -> Path:
    return packages.folder(service, package_id) / "content.part"


def begin_upload(service: ServiceContext, package_id: str) -> Path:
    """Return the file that the content is to be written to.

    :raises ProblemError: 404, or 409: it has content already.
    """
    with service.database.writing() as session:
        by_id(session, Package, package_id)
        owner = service.process_lock.id
        begun = {"owner": owner, "attempts": 0, "body": {}}
        if not _move(session, package_id, (CREATED, ERROR), UPLOADING, **begun):
            raise ProblemError(
                409, f"package {package_id}: its content was uploaded already: create a new package"
            )
    part = _part(service, package_id)
    part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return part


def end_upload(service: ServiceContext, package_id: str) -> None:
    """Flush the complete content to the disk; the package is then ready for onboarding."""
    part = _part(service, package_id)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.rename(packages.content(service, package_id))
    with service.database.writing() as session:
        _move(session, package_id, (UPLOADING,), PROCESSING)


def download(service: ServiceContext, package_id: str, source: PackageSource) -> bool:
    """Fetch the content that :func:`begin_upload` was called for; where that fails the package
    becomes ERROR, with the cause.

    :returns: whether the package is ready for onboarding.
    """
    settings = service.settings
    options = replace(
        service.options, url_bytes=settings.upload_bytes, url_seconds=settings.download_seconds
    )
    try:
        with _part(service, package_id).open("wb") as file:
            fetch.fetch_into(file, source.uri, options, source.headers)
        end_upload(service, package_id)
    except PackageError as error:
        # what is behind the question mark may be a signature
        shown = str(error).replace(source.uri, source.uri.partition("?")[0])
        _fail(service, package_id, 422, f"addressInformation: {shown}", was=UPLOADING)
    except Exception:
        LOG.exception("package %s could not be stored", package_id)
        text = "the service failed to store it; its log says why"
        _fail(service, package_id, 500, text, was=UPLOADING)
    else:
        return True
    _part(service, package_id).unlink(missing_ok=True)
    return False


def give_up_upload(service: ServiceContext, package_id: str) -> None:
    """Reset a package whose upload failed to the state before the upload."""
    _part(service, package_id).unlink(missing_ok=True)
    with service.database.writing() as session:
        _move(session, package_id, (UPLOADING,), CREATED, owner=None)


def onboard(service: ServiceContext, package_id: str) -> None:
    """Onboard an uploaded package; an invalid one becomes ERROR, with the cause.

    One that ends its reader is read twice: what the host was short of may be there again.
    """
    problem = "the service ended meanwhile; it may have been killed for the memory that it used"
    while attempt := _begin_attempt(service, package_id):
        try:
            _onboard(service, package_id)
            return
        except ReaderEndedError as error:
            problem = _without_path(service, package_id, error)
        if service.ending.is_set() and attempt < _ATTEMPTS:
            return  # the next service goes on
    detail = f"it was read {_ATTEMPTS} times, and ended its reader each time: {problem}"
    _fail(service, package_id, 422, detail)


def _begin_attempt(service: ServiceContext, package_id: str) -> int:
    """Return the number of the attempt that begins; 0 if there were enough.

    It is counted before it begins, as it may end this service.
    """
    with service.database.writing() as session:
        package = session.get(Package, package_id, with_for_update=True)
        if (
            package is None
            or package.onboarding_state != PROCESSING
            or package.attempts >= _ATTEMPTS
        ):
            return 0
        package.attempts += 1
        return package.attempts


def _onboard(service: ServiceContext, package_id: str) -> None:
    """Read, unpack and record a package.

    :raises ReaderEndedError: the process that reads it had to be ended.
    """
    try:
        path = packages.content(service, package_id)
        with csar.open_package(str(path), options=service.options) as package:
            package.verify()  # its hashes
            body = package_info(package, path)
        vnfd_id = body["vnfdId"]
        _unpack(service, package_id)
        with service.database.writing() as session:
            values = {"operational_state": ENABLED, "vnfd_id": vnfd_id, "body": body, "owner": None}
            _move(session, package_id, (PROCESSING,), ONBOARDED, **values)
    except ReaderEndedError:
        raise
    except IntegrityError:
        _fail(service, package_id, 409, f"there is a package with the VNFD {vnfd_id} already")
    except ContainerUpdateError as error:
        _fail(service, package_id, 422, _without_path(service, package_id, error))
    except Exception:
        LOG.exception("package %s could not be read in", package_id)
        _fail(service, package_id, 500, "the service failed to read it in; its log says why")


def _without_path(service: ServiceContext, package_id: str, error: Exception) -> str:
    path = str(packages.content(service, package_id))
    return str(error).replace(f"the package {path}", "the package").replace(path, "the package")


def _fail(
    service: ServiceContext, package_id: str, status: int, detail: str, was: str = PROCESSING
) -> None:
    detail = without_folder(detail, service.settings.folder)
    details = ProblemError(status, detail, title="The package could not be read in").as_dict()
    with service.database.writing() as session:
        body = {"onboardingFailureDetails": details}
        moved = _move(session, package_id, (was,), ERROR, body=body, owner=None)
    if moved:
        LOG.warning("package %s is in ERROR: %s", package_id, detail)


def _unpack(service: ServiceContext, package_id: str) -> None:
    """Write the files of the archive, whose paths are checked, readable only to the service."""
    part = packages.folder(service, package_id) / "csar.part"
    shutil.rmtree(part, ignore_errors=True)
    path = str(packages.content(service, package_id))
    with closing(archive.open_archive(path, service.options)) as files:
        for name in files.names():
            target = part / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with files.open(name) as source, target.open("xb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
    shutil.rmtree(packages.unpacked(service, package_id), ignore_errors=True)
    part.rename(packages.unpacked(service, package_id))


def _move(
    session: Session, package_id: str, before: tuple[str, ...], after: str, **values: Any
) -> bool:
    """Change the onboarding state; return False if the package is in none of the states before."""
    in_state = (Package.id == package_id, Package.onboarding_state.in_(before))
    return compare_and_set(session, Package, *in_state, onboarding_state=after, **values)


def take_over(service: ServiceContext) -> list[str]:
    """Return the packages that dead services were onboarding; this service owns them now.

    An upload that ended with its service is given up.
    """
    with service.database.reading() as session:
        left = session.execute(
            select(Package.id, Package.owner, Package.onboarding_state).where(
                Package.onboarding_state.in_((UPLOADING, PROCESSING)),
                Package.owner != service.process_lock.id,
            )
        ).all()
    own, taken = service.process_lock.id, []
    for package_id, owner, state in left:
        with service.process_lock.dead(str(owner)) as dead:
            if dead and state == UPLOADING:
                give_up_upload(service, package_id)
            elif dead:
                with service.database.writing() as session:
                    if _move(session, package_id, (PROCESSING,), PROCESSING, owner=own):
                        taken.append(package_id)
    return taken


# --- the attributes of a VnfPkgInfo that the package itself gives (SOL005, 9.5.2.5) -------------


PRODUCT: Mapping[str, str] = {
    "vnfProvider": "provider",
    "vnfProductName": "product_name",
    "vnfSoftwareVersion": "software_version",
    "vnfdVersion": "descriptor_version",
}
"""The attributes that an instance takes from its package, with their names in the VNFD."""


def package_info(package: csar.Csar, content: Path) -> Json:
    """Return the attributes of an opened package.

    :param content: the zip that was uploaded.
    :raises PackageError: the VNFD has no id.
    """
    if not package.vnfd_id:
        raise PackageError("expected a VNFD with a descriptor_id, found none")
    product = package.flavours[0].product
    return {
        "vnfdId": package.vnfd_id,
        **{name: product.get(key, "") for name, key in PRODUCT.items()},
        "checksum": {"algorithm": "SHA-512", "hash": _digest(content)},
        "softwareImages": list(software_images(package.flavours)),
        "additionalArtifacts": [
            {
                "artifactPath": artifact.path,
                "checksum": {"algorithm": artifact.algorithm, "hash": artifact.hash},
                "metadata": {},
            }
            for artifact in package.artifacts
        ],
    }


def software_images(flavours: Iterable[Flavour]) -> Iterator[Json]:
    """Yield a VnfPackageSoftwareImageInfo (SOL005, 9.5.3.2) for each image of the VNFD.

    Its id is the VDU or storage that has the image, as the VNFD knows no other.
    """
    images = {node: image for each in flavours for node, image in each.software_images.items()}
    for node, image in images.items():
        given = image.get("checksum")
        checksum = given if isinstance(given, dict) else {}
        info = {
            "id": node,
            "name": image.get("name"),
            "provider": image.get("provider"),
            "version": image.get("version"),
            "checksum": {name: checksum.get(name) for name in ("algorithm", "hash")},
            "containerFormat": _upper(image.get("container_format")),
            "diskFormat": _upper(image.get("disk_format")),
            "minDisk": _number(image.get("min_disk"), "B"),
            "minRam": _number(image.get("min_ram"), "B"),
            "size": _number(image.get("size"), "B"),
            "imagePath": image.get("image_path"),
        }
        yield {name: value for name, value in info.items() if value is not None}


def _upper(value: Any) -> str | None:
    return None if value is None else str(value).upper()


def _number(value: Any, unit: str) -> int | None:
    """Return a size of TOSCA (``2 GB``) in bytes; None for what is none."""
    from toscaparser.elements.scalarunit import ScalarUnit_Size  # noqa: PLC0415, slow to load

    if value is None:
        return None
    try:
        return int(ScalarUnit_Size(str(value)).get_num_from_scalar_unit(unit))
    except (TypeError, ValueError):
        return None


def _digest(path: Path) -> str:
    digest = hashlib.sha512()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
