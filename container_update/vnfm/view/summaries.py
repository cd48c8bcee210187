# SPDX-License-Identifier: Apache-2.0
"""Packages, VNF instances and operations as the page lists them, from rows. Pure."""

from __future__ import annotations

from typing import Any

from container_update.drivers import v2_memory
from container_update.model.objects import Json
from container_update.vnfm import states
from container_update.vnfm.lcm.upkeep import vnfc_entries
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import Batch, Instance, OperationRow, Package

FILE = "file"
"""In the user-defined data of a package that was uploaded on the page: the name of its file."""


def package(row: Package, *, used: bool) -> Json:
    """Return a package; ``problem`` says why it is in the state ERROR."""
    body = row.body
    return {
        "id": row.id,
        "name": _joined(body.get("vnfProductName"), body.get("vnfSoftwareVersion"))
        or str(row.user_data.get(FILE, "")),
        "created": timestamp(row.created),
        "product": body.get("vnfProductName") or "",
        "vnfdId": row.vnfd_id,
        "vnfdVersion": body.get("vnfdVersion"),
        "provider": body.get("vnfProvider"),
        "onboardingState": row.onboarding_state,
        "operationalState": row.operational_state,
        "isUsed": used,
        "problem": (body.get("onboardingFailureDetails") or {}).get("detail", ""),
    }


def instance(row: Instance) -> Json:
    """Return a VNF instance, with what the requests about it need."""
    body: dict[str, Any] = row.body
    info = body.get("instantiatedVnfInfo") or {}
    holder = info if row.api == "v2" else body
    return {
        "id": row.id,
        "api": row.api,
        "name": body.get("vnfInstanceName") or row.id,
        "description": body.get("vnfInstanceDescription") or "",
        "created": timestamp(row.created),
        "product": body.get("vnfProductName") or "",
        "package": _joined(body.get("vnfProductName"), body.get("vnfSoftwareVersion")),
        "vnfdId": row.vnfd_id,
        "isInstantiated": row.instantiated,
        "namespace": (holder.get("metadata") or {}).get("namespace"),
        "stack": info.get("instance_id"),
        "aspects": [
            {"id": status.get("aspectId"), "level": status.get("scaleLevel")}
            for status in info.get("scaleStatus") or ()
        ],
        "vnfcs": _vnfcs(row.api, info),
    }


def operation(row: OperationRow) -> Json:
    """Return an operation as it was requested: the name is the one that the instance had then."""
    undoable = states.is_undoable(row.operation, row.kept)
    held = states.is_held(row.kept)
    requests = states.allowed(states.State(row.state), undoable=undoable, held=held)
    return {
        "id": row.id,
        "api": row.api,
        "instanceId": row.instance_id,
        "instanceName": row.instance_name or row.instance_id,
        "operation": row.operation,
        "state": row.state,
        "started": timestamp(row.started),
        "entered": timestamp(row.entered),
        "requestedBy": row.requested_by,
        "oldPackage": row.old_package,
        "newPackage": row.new_package,
        "problem": (row.error or {}).get("detail", ""),
        "requests": [request.value for request in requests],
        "isUndone": bool(row.kept) and v2_memory.has_nothing_to_undo(row.kept or {}),
    }


def batch(row: Batch, members: list[Json]) -> Json:
    """Return a batch, among operations.

    :param members: with their states.
    """
    return {
        "id": row.id,
        "kind": "batch",
        "api": row.api,
        "operation": row.operation,
        "state": row.state,
        "started": timestamp(row.started),
        "entered": timestamp(row.entered),
        "requestedBy": row.requested_by,
        "newPackage": row.new_package,
        "waveSize": row.body["waveSize"],
        "maxFailures": row.body["maxFailures"],
        "members": members,
    }


def _vnfcs(api: str, info: Json) -> list[Json]:
    """Return the VNFCs by the ids that a request to heal them names."""
    return [
        {
            "id": id_,
            "vduId": entry.get("vduId", ""),
            "resource": (entry.get("computeResource") or {}).get("resourceId", ""),
        }
        for id_, entry in vnfc_entries(api, info).items()
    ]


def _joined(*texts: str | None) -> str:
    return " ".join(text for text in texts if text)
