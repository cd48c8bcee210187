# SPDX-License-Identifier: Apache-2.0
"""What a service has in its database after years: written into its tables, without a cluster."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import insert

from container_update.model.objects import Json
from container_update.vnfm.states import State
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import Base, Instance, OperationRow, Package, Subscription

BEGIN = datetime(2026, 1, 1, 10, 0, 0, 123_456)
KINDS = ("INSTANTIATE", "MODIFY_INFO", "SCALE", "HEAL", "TERMINATE", "CHANGE_VNFPKG")
ENDED = (State.COMPLETED, State.COMPLETED, State.COMPLETED, State.FAILED, State.ROLLED_BACK)
API = "v2"
_AT_ONCE = 1000


def identity(table: str, number: int) -> str:
    """Return the id of a row: the same in every run, in no order."""
    chance = random.Random(f"{table} {number}")
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def start_of(number: int) -> datetime:
    """Return when an operation started."""
    return BEGIN + timedelta(minutes=number)


def store(database: Database, operations: int) -> None:
    """Store so many operations, and a tenth as many instances, packages and subscriptions."""
    few = operations // 10
    tables: dict[type[Base], Iterator[Json]] = {
        Package: (_package(number) for number in range(few)),
        Instance: (_instance(number, few) for number in range(few)),
        Subscription: (_subscription(number) for number in range(few)),
        OperationRow: (_operation(number, few) for number in range(operations)),
    }
    for table, rows in tables.items():
        pending = list(rows)
        for start in range(0, len(pending), _AT_ONCE):
            with database.writing() as session:
                session.execute(insert(table), pending[start : start + _AT_ONCE])


def _package(number: int) -> Json:
    vnfd_id = identity("vnfd", number)
    return {
        "id": identity("package", number),
        "created": BEGIN + timedelta(minutes=number),
        "onboarding_state": "ONBOARDED",
        "operational_state": "ENABLED" if number % 5 else "DISABLED",
        "vnfd_id": vnfd_id,
        "user_data": {"site": f"site {number % 7}", "number": number},
        "body": {
            "vnfdId": vnfd_id,
            "vnfProvider": "Company",
            "vnfProductName": "Sample CNF",
            "vnfSoftwareVersion": f"1.{number}",
            "vnfdVersion": "1.0",
            "checksum": {"algorithm": "SHA-256", "hash": f"{number:064x}"},
            "softwareImages": [{"id": f"image{n}", "name": f"app{n}"} for n in range(3)],
            "additionalArtifacts": [
                {"artifactPath": f"Files/kubernetes/{n}.yaml", "metadata": {}} for n in range(6)
            ],
        },
    }


def _vnfcs(number: int) -> list[Json]:
    return [
        {
            "id": f"vnfc-{number}-{pod}",
            "vduId": f"VDU{pod % 3}",
            "computeResource": {
                "vimConnectionId": "kubernetes",
                "resourceId": f"vdu{pod % 3}-{number:08x}-{pod:05x}",
                "vimLevelResourceType": "Deployment",
            },
            "metadata": {"Deployment": {"name": f"vdu{pod % 3}"}},
        }
        for pod in range(4)
    ]


def _instance(number: int, packages: int) -> Json:
    is_instantiated = bool(number % 4)
    info = {
        "flavourId": "simple",
        "vnfState": "STARTED",
        "scaleStatus": [{"aspectId": "vdu1_aspect", "scaleLevel": number % 3}],
        "vnfcResourceInfo": _vnfcs(number),
        "metadata": {"namespace": f"cnf-{number}"},
    }
    return {
        "id": identity("instance", number),
        "created": BEGIN + timedelta(minutes=number),
        "api": API,
        "vnfd_id": identity("vnfd", number % packages),
        "instantiated": is_instantiated,
        "body": {
            "vnfInstanceName": f"CNF number {number}",
            "vnfProvider": "Company",
            "vnfProductName": "Sample CNF",
            "vnfSoftwareVersion": f"1.{number % 50}",
            "vnfdVersion": "1.0",
            "vnfConfigurableProperties": {},
            **({"instantiatedVnfInfo": info} if is_instantiated else {}),
        },
    }


def _subscription(number: int) -> Json:
    return {
        "id": identity("subscription", number),
        "created": BEGIN + timedelta(minutes=number),
        "api": API,
        "callback_uri": f"https://nfvo.example/notifications/{number}",
        "filter": {"operationTypes": [KINDS[number % 6]]} if number % 2 else None,
        "verbosity": "SHORT" if number % 3 else "FULL",
    }


def _operation(number: int, instances: int) -> Json:
    kind, state = KINDS[number % len(KINDS)], ENDED[number % len(ENDED)]
    started = start_of(number)
    changed = {"vnfSoftwareVersion": f"1.{number}", "vnfdId": identity("vnfd", number % 500)}
    return {
        "id": identity("operation", number),
        "api": API,
        "instance_id": identity("instance", number % instances),
        "operation": kind,
        "state": state.value,
        "started": started,
        "entered": started + timedelta(seconds=40),
        "requested_by": f"operator {number % 9}",
        "instance_name": f"CNF number {number % instances}",
        "params": {
            "vnfdId": identity("vnfd", number % 500),
            "additionalParams": {
                "number": number,
                "note": f"change request {number}",
                "vdu_params": [{"vdu_id": f"VDU{n}", "old_vnfc_param": {}} for n in range(2)],
            },
        },
        "sealed": "x" * 600,
        "changes": {
            "affectedVnfcs": [{**vnfc, "changeType": "MODIFIED"} for vnfc in _vnfcs(number)]
        },
        "changed": changed if kind in ("MODIFY_INFO", "CHANGE_VNFPKG") else None,
        "error": {"status": 500, "title": "Failed", "detail": f"pod {number} does not start"}
        if state is State.FAILED
        else None,
    }
