# SPDX-License-Identifier: Apache-2.0
"""VNF instances: created from a package, deleted when not instantiated (SOL003, 5.4.2, 5.4.3)."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.notify import outbox
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Instance, OperationRow, Package


def product_of(package: Package) -> Json:
    """Return the attributes that an instance takes from its package."""
    return {name: package.body.get(name, "") for name in packages.PRODUCT}


def create(service: ServiceContext, session: Session, api: str, request: Json) -> Instance:
    """Create an instance of the package that has the request's VNFD.

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
    instance = Instance(
        id=instance_id,
        created=now(),
        api=api,
        vnfd_id=request["vnfdId"],
        instantiated=False,
        body=body,
    )
    session.add(instance)
    session.flush()
    outbox.add_instance_change(session, instance, outbox.CREATED, service.settings.base_url)
    return instance


def delete(service: ServiceContext, session: Session, instance: Instance) -> None:
    """Delete an instance; ProblemError 409: it is instantiated, or an operation is not settled."""
    of_instance = select(OperationRow).where(OperationRow.instance_id == instance.id)
    unsettled = session.scalar(of_instance.where(OperationRow.state.in_(UNSETTLED)))
    if unsettled is not None:
        raise ProblemError(
            409,
            f"VNF instance {instance.id}: its operation {unsettled.id} is {unsettled.state}: wait "
            "until it ends; one that is FAILED_TEMP ends by a request to retry, rollback or fail",
        )
    if instance.instantiated:
        raise ProblemError(409, f"VNF instance {instance.id} is INSTANTIATED: terminate it first")
    session.delete(instance)
    outbox.add_instance_change(session, instance, outbox.DELETED, service.settings.base_url)


def vims_of(service: ServiceContext, instance: Instance) -> Any:
    """Return its vimConnectionInfo with the credentials: a list (v1), a map (v2), None."""
    return service.vault.open(instance.sealed) if instance.sealed else None
