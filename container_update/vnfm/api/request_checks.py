"""Checks of a lifecycle request against the package and the record, before it is accepted.

Every function raises ProblemError 422 (or a PackageError, which becomes one) with what is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance


def check_instantiation(
    service: ServiceContext, session: Session, instance: Instance, request: Mapping[str, Any]
) -> None:
    """Check that the VNFD has the deployment flavour and the instantiation level."""
    flavours = packages.flavours(service, session, instance.vnfd_id)
    known = {flavour.id: flavour for flavour in flavours if flavour.id}
    flavour_id = str(request["flavourId"])
    if known and flavour_id not in known:
        raise PackageError(
            f"flavourId: expected a deployment flavour of the VNFD (it has {', '.join(known)}), "
            f"found {flavour_id}"
        )
    packages.scaling_of(flavours, flavour_id).level(request.get("instantiationLevelId"))


def check_request(
    service: ServiceContext,
    session: Session,
    instance: Instance,
    operation: str,
    request: Json,
) -> None:
    """Check a request of an operation that needs nothing but package and record."""
    if operation == "INSTANTIATE":
        check_instantiation(service, session, instance, request)
