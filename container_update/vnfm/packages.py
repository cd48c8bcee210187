# SPDX-License-Identifier: Apache-2.0
"""VNF packages and their states (SOL005, clause 9).

Each package has a folder: ``content.zip`` is the upload, ``csar`` is unpacked.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import exists, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.model.scaling import Scaling
from container_update.package import archive, csar, csar_metadata
from container_update.package.vnfd import Flavour
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, OperationRow, Package

CREATED, UPLOADING, PROCESSING = "CREATED", "UPLOADING", "PROCESSING"
ONBOARDED, ERROR = "ONBOARDED", "ERROR"
ENABLED, DISABLED = "ENABLED", "DISABLED"


def folder(service: ServiceContext, package_id: str) -> Path:
    """Return the folder of a package."""
    return service.settings.packages / package_id


def content(service: ServiceContext, package_id: str) -> Path:
    """Return the path of the zip that was uploaded."""
    return folder(service, package_id) / "content.zip"


def unpacked(service: ServiceContext, package_id: str) -> Path:
    """Return the folder with the unpacked files."""
    return folder(service, package_id) / "csar"


def of_vnfd(session: Session, vnfd_id: str) -> Package:
    """Return the onboarded package with a VNFD.

    :raises ProblemError: 422: there is none, or it is disabled.
    """
    package = session.scalar(select(Package).where(Package.vnfd_id == vnfd_id))
    if package is None or package.onboarding_state != ONBOARDED:
        raise ProblemError(
            422, f"vnfdId: no onboarded package has the VNFD {vnfd_id}: upload it first"
        )
    if package.operational_state != ENABLED:
        raise ProblemError(
            422, f"vnfdId: package {package.id} of the VNFD {vnfd_id} is disabled: enable it first"
        )
    return package


def opened(service: ServiceContext, package: Package) -> AbstractContextManager[csar.Csar]:
    """Open an onboarded package for a ``with`` block."""
    return csar.open_package(str(unpacked(service, package.id)), options=service.options)


def with_vnfd(session: Session, vnfd_id: str) -> Package:
    """Return the onboarded package of an instance's VNFD."""
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


def modify(package: Package, changes: Json) -> Json:
    """Enable or disable a package, or change its user data; return what changed, as in SOL005.

    :raises ProblemError: 409: it is in that state already, or not onboarded.
    """
    state = changes.get("operationalState")
    if state is not None:
        require_onboarded(package)
        if package.operational_state == state:
            raise ProblemError(409, f"package {package.id} is {state} already")
        package.operational_state = state
    if changes.get("userDefinedData") is not None:
        package.user_data = {**package.user_data, **changes["userDefinedData"]}
    return changes


def delete(service: ServiceContext, session: Session, package: Package) -> None:
    """Delete a package that is not in use.

    :raises ProblemError: 409: it is enabled, in use, being uploaded or onboarded.
    """
    if package.onboarding_state in (UPLOADING, PROCESSING):
        raise ProblemError(
            409, f"package {package.id} is {package.onboarding_state}: wait until that has ended"
        )
    if package.operational_state != DISABLED:
        raise ProblemError(409, f"package {package.id} is ENABLED: disable it first")
    used = ProblemError(409, f"package {package.id} is in use: delete its VNF instances first")
    if session.scalar(select(IN_USE).where(Package.id == package.id)):
        raise used
    session.delete(package)
    try:
        session.flush()
    except IntegrityError as error:  # an instance was created meanwhile
        raise used from error
    shutil.rmtree(folder(service, package.id), ignore_errors=True)


# --- parts of the content -----------------------------------------------------------------------


def artifact(service: ServiceContext, package: Package, path: str) -> Path:
    """Return the file of an artifact (SOL005, 9.4.7).

    :raises ProblemError: 404: the package has no such file; 409: it is not onboarded.
    """
    require_onboarded(package)
    try:
        with opened(service, package) as files:
            name = archive.inside(path)
            found = name in files.names()
    except PackageError:
        found = False
    if not found:
        raise ProblemError(404, f"package {package.id} has no file {path}")
    return unpacked(service, package.id) / name


def vnfd_files(service: ServiceContext, package: Package) -> Mapping[str, Path]:
    """Return the files of the VNFD by their paths in the package (SOL005, 9.4.4): the definitions,
    and the metadata that names the first of them.

    :raises ProblemError: 409: it is not onboarded.
    """
    require_onboarded(package)
    root = unpacked(service, package.id)
    with opened(service, package) as files:
        beside = os.path.dirname(files.entry_definitions)
        return {
            name: root / name
            for name in files.names()
            if name == csar_metadata.TOSCA_META or os.path.dirname(name) == beside
        }
