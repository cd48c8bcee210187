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
from container_update.vnfm.lcm import heal, levels
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


def check_heal(api: str, instance: Instance, request: Mapping[str, Any]) -> None:
    """Check that the record has the VNFCs that are to be healed."""
    known = heal.vnfc_entries(api, instance.body.get("instantiatedVnfInfo") or {})
    for vnfc_id in request.get("vnfcInstanceId") or ():
        if vnfc_id not in known:
            attribute = "vnfcResourceInfo" if api == "v1" else "vnfcInfo"
            raise PackageError(
                f"vnfcInstanceId: expected ids of the instance's {attribute} "
                f"({', '.join(known) or 'it has none'}), found {vnfc_id}"
            )


def check_scaling(
    service: ServiceContext, session: Session, instance: Instance, request: Mapping[str, Any]
) -> None:
    """Check that the VNFD has the aspect, and allows the level and the numbers of instances."""
    info = instance.body.get("instantiatedVnfInfo") or {}
    flavours = packages.flavours(service, session, instance.vnfd_id)
    scaling = packages.scaling_of(flavours, info.get("flavourId"))
    levels.scaled(scaling, info, request)


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
    elif operation == "HEAL":
        check_heal(instance.api, instance, request)
    elif operation == "SCALE":
        check_scaling(service, session, instance, request)
