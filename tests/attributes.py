# SPDX-License-Identifier: Apache-2.0
"""The specification's "attributes in the TackerDB to be updated": their names, and what becomes of
their values."""

from __future__ import annotations

import json
from typing import Any

NEW, SAME, GONE = "all are other ones", "all stay", "there are none any more"

VNFD = "VnfInstance.vnfdId"
METADATA = "VnfInstance.metadata"
STACK = "VnfInstance.instantiatedVnfInfo.instance_id"
VNFC = "VnfInstance.instantiatedVnfInfo.vnfcResourceInfo"
VNFC_ID, VNFC_METADATA = f"{VNFC}.id", f"{VNFC}.metadata"
COMPUTE = f"{VNFC}.computeResource.resourceId"
NETWORK = "VnfInstance.instantiatedVnfInfo.vnfVirtualLinkResourceInfo.networkResource.resourceId"
STORAGE = "VnfInstance.instantiatedVnfInfo.virtualStorageResourceInfo.storageResource.resourceId"
NAME = "VnfResource.resourceName"

HANDLES = {
    COMPUTE: ("vnfcResourceInfo", "computeResource"),
    NETWORK: ("vnfVirtualLinkResourceInfo", "networkResource"),
    STORAGE: ("virtualStorageResourceInfo", "storageResource"),
}

Values = dict[str, set[str]]


def values(instance: dict[str, Any]) -> Values:
    """Return the values of each attribute of a VnfInstance."""
    info = instance["instantiatedVnfInfo"]
    attribute_values = {VNFD: {instance["vnfdId"]}}
    for attribute, (name, handle) in HANDLES.items():
        attribute_values[attribute] = {entry[handle]["resourceId"] for entry in info[name]}
    attribute_values[VNFC_ID] = {entry["id"] for entry in info["vnfcResourceInfo"]}
    attribute_values[VNFC_METADATA] = {
        json.dumps(entry["metadata"], sort_keys=True) for entry in info["vnfcResourceInfo"]
    }
    if "instance_id" in info:
        attribute_values[STACK] = {info["instance_id"]}
    return attribute_values


def became(before: set[str], after: set[str]) -> str:
    """Describe the difference in the table's terms."""
    if before == after:
        return SAME
    if not after:
        return GONE
    return f"some stay: {before & after}" if before & after else NEW
