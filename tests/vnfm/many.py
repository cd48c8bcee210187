# SPDX-License-Identifier: Apache-2.0
"""Many instances in a service's tables, with their past operations; a few wait for a decision."""

from __future__ import annotations

import uuid
from datetime import timedelta

from sqlalchemy import insert, select

from tests.internals.service import Instance, OperationRow, Package, Service, State, now

INSTANCES, OPERATIONS = 200, 10_000
FAILED = (7, 120)
"""The numbers of those whose last operation failed."""
CAUSE = "Deployment core/smf: pod smf-b6864-k5p8c: ImagePullBackOff"
NOT_YET = 10
"""One of so many is not instantiated."""


def store(service: Service, operations: int = OPERATIONS) -> None:
    """Store upf-0 to upf-199, in the namespaces site-0 to site-39, of all packages in turn."""
    moment = now()
    with service.context.database.writing() as session:
        packages = session.scalars(select(Package).order_by(Package.created)).all()
        of = [packages[number % len(packages)] for number in range(INSTANCES)]
        ids = [str(uuid.uuid4()) for _ in range(INSTANCES)]
        instances = [
            {
                "id": ids[number], "created": moment, "api": "v2", "vnfd_id": of[number].vnfd_id,
                "instantiated": number % NOT_YET != 0,
                "body": {
                    "vnfInstanceName": f"upf-{number}",
                    **{name: of[number].body[name]
                       for name in ("vnfProductName", "vnfSoftwareVersion")},
                    "instantiatedVnfInfo": {"metadata": {"namespace": f"site-{number % 40}"}},
                },
            }
            for number in range(INSTANCES)
        ]  # fmt: skip
        session.execute(insert(Instance), instances)
        session.execute(
            insert(OperationRow), [_operation(service, number, ids) for number in range(operations)]
        )


def _operation(service: Service, number: int, ids: list[str]) -> dict[str, object]:
    started, failed = now() - timedelta(minutes=number), number in FAILED
    return {
        "id": str(uuid.uuid4()), "api": "v2", "instance_id": ids[number % INSTANCES],
        "operation": "MODIFY_INFO",
        "state": (State.FAILED_TEMP if failed else State.COMPLETED).value,
        "started": started, "entered": started + timedelta(seconds=20), "params": {},
        "sealed": service.context.vault.seal({}), "requested_by": "admin",
        "instance_name": f"upf-{number % INSTANCES}", "old_package": "UPF 1",
        "new_package": "UPF 2", "error": {"detail": CAUSE} if failed else None,
    }  # fmt: skip
