# SPDX-License-Identifier: Apache-2.0
"""A VNF instance for Mgmt Drivers of the v1 API: objects with attributes in snake_case.

The attributes are those of Tacker's objects that drivers use; what a driver changes is read back
into the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from container_update.drivers.v1_host import vnfc_entry
from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.records.vnf_records import Records
from container_update.vnfm.lcm.operation_context import VnfRecord


def instance(instance_id: str, record: VnfRecord, connection: Json) -> SimpleNamespace:
    """Return the VnfInstance of a record.

    :param connection: its VIM, with credentials.
    """
    info = record.info
    return SimpleNamespace(
        id=instance_id,
        vnfd_id=record.vnfd_id,
        instantiation_state=record.state,
        vnf_instance_name=record.body.get("vnfInstanceName"),
        vnf_instance_description=record.body.get("vnfInstanceDescription"),
        vnf_metadata=dict(record.body.get("metadata") or {}),
        vim_connection_info=[_vim(connection)],
        instantiated_vnf_info=_info(info) if info else None,
        save=_nothing,
    )


def _nothing() -> None:
    """Do nothing: the record is stored when the operation ends."""


def _vim(connection: Json) -> SimpleNamespace:
    interface = connection.get("interfaceInfo") or {}
    access = {**(connection.get("accessInfo") or {}), "auth_url": interface.get("endpoint", "")}
    if interface.get("ssl_ca_cert"):
        access["ssl_ca_cert"] = interface["ssl_ca_cert"]
    return SimpleNamespace(
        id=connection.get("id"),
        vim_id=connection.get("vimId"),
        vim_type=connection.get("vimType"),
        interface_info=interface,
        access_info=access,
    )


def _info(info: Json) -> SimpleNamespace:
    return SimpleNamespace(
        flavour_id=info.get("flavourId"),
        vnf_state=info.get("vnfState"),
        additional_params=dict(info.get("additionalParams") or {}),
        vnfc_resource_info=[_vnfc(entry) for entry in info.get("vnfcResourceInfo") or ()],
    )


def _vnfc(entry: Json) -> SimpleNamespace:
    """Return a VnfcResourceInfo."""
    compute = entry.get("computeResource") or {}
    return SimpleNamespace(
        id=entry["id"],
        vdu_id=entry["vduId"],
        compute_resource=SimpleNamespace(
            resource_id=compute.get("resourceId"),
            vim_level_resource_type=compute.get("vimLevelResourceType"),
        ),
        storage_resource_ids=list(entry.get("storageResourceIds") or ()),
        metadata=dict(entry.get("metadata") or {}),
    )


def vnfc_record(vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> SimpleNamespace:
    """Return a new VnfcResourceInfo."""
    handle = {"resourceId": vnfc.pod_name, "vimLevelResourceType": vnfc.workload_kind}
    entry = {"id": vnfc_id, "vduId": vnfc.vdu_id, "computeResource": handle, "metadata": metadata}
    return _vnfc(entry)


def body(changed: SimpleNamespace, before: Json, written: Records | None = None) -> Json:
    """Return the record's body, with what a driver changed in the objects.

    :param written: what was written into the objects, which have no links and storages.
    """
    after = dict(before)
    if changed.vnf_metadata or "metadata" in before:
        after["metadata"] = dict(changed.vnf_metadata or {})
    if (info := changed.instantiated_vnf_info) is not None:
        after["instantiatedVnfInfo"] = {
            **(before.get("instantiatedVnfInfo") or {}),
            "additionalParams": dict(info.additional_params or {}),
            "vnfcResourceInfo": [_entry(record) for record in info.vnfc_resource_info],
        }
        if written is not None:
            written.write_resources(after["instantiatedVnfInfo"])
    return after


def _entry(record: Any) -> Json:
    return {
        **vnfc_entry(record),
        "storageResourceIds": list(record.storage_resource_ids),
        "metadata": dict(record.metadata or {}),
    }


def request(values: Json) -> SimpleNamespace:
    """Return a request of the API: its attributes in snake_case."""
    return SimpleNamespace(
        **{re.sub("[A-Z]", r"_\g<0>", name).lower(): value for name, value in values.items()}
    )
