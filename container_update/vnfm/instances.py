"""VNF instances: made of a package, deleted when nothing of them runs (SOL003, 5.4.2, 5.4.3)."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import operations, packages
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, Package

PRODUCT = ("vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion")
"""What an instance takes from its package."""


def get(session: Session, api: str, instance_id: str, *, lock: bool = False) -> Instance:
    """Return an instance of one API, or ProblemError 404.

    :param lock: nobody else begins an operation of it, or deletes it, in the meantime.
    """
    found = session.get(Instance, instance_id, with_for_update=lock or None)
    if found is None or found.api != api:
        raise ProblemError(404, f"VNF instance {instance_id}: there is none with this id")
    return found


def product_of(package: Package) -> Json:
    """Return the attributes that an instance takes from its package."""
    return {name: package.body.get(name, "") for name in PRODUCT}


def create(service: ServiceContext, session: Session, api: str, request: Json) -> Instance:
    """Return a new instance of the package that has the request's VNFD.

    :raises ProblemError: 422: there is no such package.
    """
    package = packages.of_vnfd(session, request["vnfdId"])
    instance_id = str(uuid.uuid4())
    body: Json = {**product_of(package), "vnfConfigurableProperties": {}}
    if api == "v1":
        body["vnfInstanceName"] = request.get("vnfInstanceName") or f"vnf-{instance_id}"
        body["vnfInstanceDescription"] = request.get("vnfInstanceDescription")
        body["vnfPkgId"] = package.id
    else:
        names = ("vnfInstanceName", "vnfInstanceDescription")
        body |= {name: request[name] for name in names if request.get(name) is not None}
    if request.get("metadata"):
        body["metadata"] = request["metadata"]
    created = Instance(
        id=instance_id,
        created=now(),
        api=api,
        vnfd_id=request["vnfdId"],
        instantiated=False,
        body=body,
    )
    session.add(created)
    session.flush()
    outbox.tell_instance(session, created, outbox.CREATED, service.settings.base_url)
    return created


def delete(service: ServiceContext, session: Session, instance: Instance) -> None:
    """Delete an instance.

    :raises ProblemError: 409: it is instantiated, or an operation is not settled.
    """
    refuse_busy(session, instance)
    if instance.instantiated:
        raise ProblemError(409, f"VNF instance {instance.id} is INSTANTIATED: terminate it first")
    session.delete(instance)
    outbox.tell_instance(session, instance, outbox.DELETED, service.settings.base_url)


def refuse_busy(session: Session, instance: Instance) -> None:
    """ProblemError 409 where an operation is not settled."""
    busy = operations.unsettled(session, instance.id)
    if busy is not None:
        raise ProblemError(
            409,
            f"VNF instance {instance.id}: its operation {busy.id} is {busy.state}: wait until it "
            "ends; one that is FAILED_TEMP ends by a request to retry, rollback or fail",
        )


def vims_of(service: ServiceContext, instance: Instance) -> Any:
    """Its vimConnectionInfo with the credentials: a list (v1), a map (v2), None."""
    return service.vault.open(instance.sealed) if instance.sealed else None
