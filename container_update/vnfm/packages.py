# SPDX-License-Identifier: Apache-2.0
"""VNF packages and their states (SOL005, clause 9).

Each package has a folder: ``content.zip`` is the upload, ``csar`` is unpacked.
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import exists, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.cluster.credentials import basic
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.objects import Json, merge_patch
from container_update.model.scaling import Scaling
from container_update.model.schema import is_printable
from container_update.package import archive, csar, csar_metadata, fetch
from container_update.package.tosca.process import ReaderEndedError
from container_update.package.vnfd import Flavour
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import ProblemError, without_folder
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import is_away, now, timestamp
from container_update.vnfm.store.rows import Instance, OperationRow, Package, by_id, compare_and_set

CREATED, UPLOADING, PROCESSING = "CREATED", "UPLOADING", "PROCESSING"
ONBOARDED, ERROR = "ONBOARDED", "ERROR"
ENABLED, DISABLED = "ENABLED", "DISABLED"


def folder(service: ServiceContext, package_id: str) -> Path:
    """Return the folder of a package."""
    return service.settings.packages / package_id


def content(service: ServiceContext, package_id: str) -> Path:
    """Return the path of the zip that was uploaded."""
    return folder(service, package_id) / "content.zip"


def unpack(service: ServiceContext, package_id: str) -> Path:
    """Return the folder with the unpacked files."""
    return folder(service, package_id) / "csar"


def of_vnfd(session: Session, vnfd_id: str) -> Package:
    """Return the onboarded package with a VNFD; it is not deleted until the transaction ends.

    :raises ProblemError: 422: there is none, or it is disabled.
    """
    with_id = select(Package).where(Package.vnfd_id == vnfd_id)
    package = session.scalar(with_id.with_for_update(read=True, key_share=True))
    if package is None or package.onboarding_state != ONBOARDED:
        raise ProblemError(
            422, f"vnfdId: no onboarded package has the VNFD {vnfd_id}: upload it first"
        )
    if package.operational_state != ENABLED:
        raise ProblemError(
            422, f"vnfdId: package {package.id} of the VNFD {vnfd_id} is disabled: enable it first"
        )
    return package


def of_vnfd_id(session: Session, vnfd_id: str) -> Package:
    """Return the onboarded package with the VNFD that a request names; ProblemError 404: none."""
    package = session.scalar(select(Package).where(Package.vnfd_id == vnfd_id))
    if package is None:
        raise ProblemError(404, f"VNFD {vnfd_id[:64]!r}: no onboarded package has one with this id")
    return package


def open_package(service: ServiceContext, package: Package) -> AbstractContextManager[csar.Csar]:
    """Open an onboarded package for a ``with`` block."""
    return csar.open_package(str(unpack(service, package.id)), options=service.options)


def with_vnfd(session: Session, vnfd_id: str) -> Package:
    """Return the package of an instance's VNFD, or of one that an operation leads to: it may have
    been disabled meanwhile."""
    return session.scalars(select(Package).where(Package.vnfd_id == vnfd_id)).one()


def scaling_of(flavours: Sequence[Flavour], flavour_id: str | None) -> Scaling:
    """Return how a flavour is scaled: of the only one, whatever its id, if the VNFD has one."""
    named = [flavour for flavour in flavours if flavour.id == flavour_id]
    fitting = named or (list(flavours) if len(flavours) == 1 else [])
    return fitting[0].scaling if fitting else Scaling()


IN_USE = or_(
    exists().where(Instance.vnfd_id == Package.vnfd_id),
    exists().where(OperationRow.vnfd_id == Package.vnfd_id, OperationRow.state.in_(UNSETTLED)),
).label("in_use")
"""Whether an instance has the VNFD of a package, or an unsettled operation leads to it."""


def create(session: Session, user_data: Mapping[str, Any]) -> Package:
    """Create a package without content."""
    package = Package(
        id=str(uuid.uuid4()),
        created=now(),
        onboarding_state=CREATED,
        operational_state=DISABLED,
        user_data=dict(user_data),
        body={},
    )
    session.add(package)
    return package


def require_onboarded(package: Package) -> None:
    """Raise ProblemError 409 unless a package is onboarded."""
    if package.onboarding_state != ONBOARDED:
        raise ProblemError(
            409,
            f"package {package.id}: expected it to be ONBOARDED, found {package.onboarding_state}",
        )


def modify(service: ServiceContext, session: Session, package: Package, changes: Json) -> Json:
    """Enable or disable a package, or change its user data; return what changed, as in SOL005.

    :raises ProblemError: 409: it is in that state already, or not onboarded.
    """
    state = changes.get("operationalState")
    if state is not None:
        require_onboarded(package)
        if package.operational_state == state:
            raise ProblemError(409, f"package {package.id} is {state} already")
        package.operational_state = state
        in_use = _is_in_use(session, package)
        outbox.add_package_change(session, package, service.settings.base_url, in_use=in_use)
    if "userDefinedData" in changes:
        package.user_data = merge_patch(package.user_data, changes["userDefinedData"])
    return changes


def _is_in_use(session: Session, package: Package) -> bool:
    return bool(session.scalar(select(IN_USE).where(Package.id == package.id)))


def delete(service: ServiceContext, session: Session, package: Package) -> None:
    """Delete a package that is not in use; the caller commits, then deletes its content.

    :raises ProblemError: 409: it is enabled, in use, being uploaded or onboarded.
    """
    if package.onboarding_state in (UPLOADING, PROCESSING):
        raise ProblemError(
            409, f"package {package.id} is {package.onboarding_state}: wait until that has ended"
        )
    if package.operational_state != DISABLED:
        raise ProblemError(409, f"package {package.id} is ENABLED: disable it first")
    used = ProblemError(409, f"package {package.id} is in use: delete its VNF instances first")
    if _is_in_use(session, package):
        raise used
    if package.vnfd_id is not None:
        base_url = service.settings.base_url
        outbox.add_package_change(session, package, base_url, in_use=False, deleted=True)
    session.delete(package)
    try:
        session.flush()
    except IntegrityError as error:  # an instance was created meanwhile
        raise used from error


def delete_content(service: ServiceContext, package_id: str) -> None:
    """Delete what was uploaded."""
    shutil.rmtree(folder(service, package_id), ignore_errors=True)


# --- parts of the content -----------------------------------------------------------------------


def artifact(service: ServiceContext, package: Package, path: str) -> Path:
    """Return the file of an artifact (SOL005, 9.4.7).

    :raises ProblemError: 404: the package has no such file; 409: it is not onboarded.
    """
    require_onboarded(package)
    try:
        with open_package(service, package) as files:
            name = archive.inside(path)
            is_inside = name in files.names()
    except PackageError:
        is_inside = False
    if not is_inside:
        raise ProblemError(404, f"package {package.id} has no file {path}")
    return unpack(service, package.id) / name


def vnfd_files(service: ServiceContext, package: Package) -> Mapping[str, Path]:
    """Return the files of the VNFD by their paths in the package (SOL005, 9.4.4): the definitions,
    and the metadata that names the first of them.

    :raises ProblemError: 409: it is not onboarded.
    """
    require_onboarded(package)
    root = unpack(service, package.id)
    with open_package(service, package) as files:
        beside = os.path.dirname(files.entry_definitions)
        return {
            name: root / name
            for name in files.names()
            if name == csar_metadata.TOSCA_META or os.path.dirname(name) == beside
        }


# --- the content: from an uploaded zip to a folder that operations read --------------------------
# What has a name with .part is incomplete and ignored.


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
        """The headers with the credentials (RFC 7617)."""
        if self.user is None:
            return fetch.NO_HEADERS
        return {"Authorization": basic(self.user, self.password)}


def _part(service: ServiceContext, package_id: str) -> Path:
    return folder(service, package_id) / "content.part"


def begin_upload(service: ServiceContext, package_id: str) -> Path:
    """Return the file for the content; ProblemError 404, or 409: it has content already."""
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
    part.rename(content(service, package_id))
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
        _fail(service, package_id, 422, f"addressInformation: {error}", was=UPLOADING)
    except Exception as error:
        if is_away(error):
            raise
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
    """Count an attempt before it begins, as it may end this service; 0 if there were enough."""
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
    """Read, unpack and record a package; ReaderEndedError where its reader had to be ended."""
    try:
        path = content(service, package_id)
        with csar.open_package(str(path), options=service.options) as package:
            package.verify()  # its hashes
            body = package_info(package, path)
        vnfd_id = body["vnfdId"]
        _unpack(service, package_id)
        with service.database.writing() as session:
            values = {"operational_state": ENABLED, "vnfd_id": vnfd_id, "body": body, "owner": None}
            if _move(session, package_id, (PROCESSING,), ONBOARDED, **values):
                package_row = session.get_one(Package, package_id)
                outbox.add_package_onboarded(session, package_row, service.settings.base_url)
    except ReaderEndedError:
        raise
    except IntegrityError:
        _fail(service, package_id, 409, f"there is a package with the VNFD {vnfd_id} already")
    except ContainerUpdateError as error:
        _fail(service, package_id, 422, _without_path(service, package_id, error))
    except Exception as error:
        if is_away(error):
            raise
        LOG.exception("package %s could not be read in", package_id)
        _fail(service, package_id, 500, "the service failed to read it in; its log says why")


def _without_path(service: ServiceContext, package_id: str, error: Exception) -> str:
    path = str(content(service, package_id))
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
    part = folder(service, package_id) / "csar.part"
    shutil.rmtree(part, ignore_errors=True)
    path = str(content(service, package_id))
    with closing(archive.open_archive(path, service.options)) as files:
        for name in files.names():
            target = part / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with files.open(name) as source, target.open("xb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
    shutil.rmtree(unpack(service, package_id), ignore_errors=True)
    part.rename(unpack(service, package_id))


def _move(
    session: Session, package_id: str, before: tuple[str, ...], after: str, **values: Any
) -> bool:
    """Change the onboarding state; return False if the package is in none of the states before."""
    in_state = (Package.id == package_id, Package.onboarding_state.in_(before))
    return compare_and_set(session, Package, *in_state, onboarding_state=after, **values)


def take_over(service: ServiceContext, at_work: Collection[str]) -> list[str]:
    """Return the packages that dead services were onboarding, which this service owns now, and its
    own ones that no thread is at: their end could not be recorded.

    An upload that ended with its service is given up.
    """
    own = service.process_lock.id
    with service.database.reading() as session:
        left = session.execute(
            select(Package.id, Package.owner, Package.onboarding_state).where(
                Package.onboarding_state.in_((UPLOADING, PROCESSING)), Package.id.not_in(at_work)
            )
        ).all()
    taken = [each.id for each in left if (each.owner, each.onboarding_state) == (own, PROCESSING)]
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


_LONGEST = 255
"""Characters of an id, as its column has them, and of the other texts."""


def package_info(package: csar.Csar, zipped: Path) -> Json:
    """Return the attributes of an opened package.

    :raises PackageError: the VNFD has no id, or something that is not to be shown in one line.
    """
    if not package.vnfd_id:
        raise PackageError("expected a VNFD with a descriptor_id, found none")
    product = package.flavours[0].product
    for name, text in {"descriptor_id": package.vnfd_id, **product}.items():
        if len(text) > _LONGEST or not is_printable(text):
            raise PackageError(
                f"VNFD, {name}: expected at most {_LONGEST} printable characters, found "
                f"{len(text)}: {text[:_LONGEST]!a}"
            )
    with zipped.open("rb") as file:
        digest = fetch.digest_of(file, "sha512")
    return {
        "vnfdId": package.vnfd_id,
        **{name: product.get(key, "") for name, key in PRODUCT.items()},
        "checksum": {"algorithm": "SHA-512", "hash": digest},
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

    Its id is the VDU or storage that has the image, as the VNFD knows no other. What SOL005 demands
    and a VNFD may leave out: the provider is then the VNF's, and there is no least disk or memory.
    """
    images = {
        node: (image, each.product.get("provider"))
        for each in flavours
        for node, image in each.software_images.items()
    }
    created = timestamp(now())
    for node, (image, vnf_provider) in images.items():
        given = image.get("checksum")
        checksum = given if isinstance(given, dict) else {}
        info = {
            "id": node,
            "name": image.get("name"),
            "provider": image.get("provider") or vnf_provider,
            "version": image.get("version"),
            "checksum": {name: checksum.get(name) for name in ("algorithm", "hash")},
            "containerFormat": _upper(image.get("container_format")),
            "diskFormat": _upper(image.get("disk_format")),
            "createdAt": created,
            "minDisk": _number(image.get("min_disk"), "B") or 0,
            "minRam": _number(image.get("min_ram"), "B") or 0,
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
    except (OverflowError, TypeError, ValueError):
        return None
