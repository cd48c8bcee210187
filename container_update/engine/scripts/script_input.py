# SPDX-License-Identifier: Apache-2.0
"""The dict that a coordination script reads, pickled, on its standard input. Pure.

It is a superset of what Tacker 16 gives one: flat, the VNFC's parameters of the request
(``cp_name``, ``username``, ``password``), ``ssh_ip``, ``is_rollback``, ``LcmCoordRequest``,
``inst`` and ``vnfc_info_id``. A script that was written for Tacker runs unchanged. What Tacker does
not have is under names of our own, above all ``coordination``.

Source: the host's ``_execute_coordinate_vnf_script``, and LcmCoordRequest of ETSI GS NFV-SOL 002,
10.5.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_update.engine.goals.change_request import ChangeRequest, FromVnfm
from container_update.model.objects import Json
from container_update.model.scripts import VduChange


@dataclass(frozen=True)
class Coordinated:
    """The change that scripts are about."""

    change: ChangeRequest
    instance_id: str | None
    vnfm: FromVnfm = field(default_factory=FromVnfm)
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How a script reaches the VIM."""


def script_input(
    about: Coordinated, operation: str, which: str, vdu: VduChange, package: Path
) -> Json:
    """Return the dict for one run of a script.

    :param operation: its id in the journal.
    :param which: 'new' or 'old': the VNF that is coordinated.
    :param package: the folder with the script's copy of the package.
    """
    access, recorded = about.access, about.vnfm.instance
    vnfc_param = dict(about.change.vnfc_param(vdu.vdu_id, which))
    instance = {"id": about.instance_id, **recorded}
    if access.get("vim_connection_info"):
        instance["vimConnectionInfo"] = access["vim_connection_info"]
    return {
        **vnfc_param,
        **_entry_if_known("ssh_ip", vdu.ssh_ips.get(which)),
        "is_rollback": bool(vdu.details.get("back")),
        "LcmCoordRequest": _coordination_request(about, operation),
        "inst": instance,
        **_entry_if_known("vnfc_info_id", _vnfc_info_id(recorded, vdu)),
        "request": dict(about.change.body),
        "vnf_instance": instance,
        "grant_request": {},
        "grant_response": {},
        "tmp_csar_dir": str(package),
        "coordination": {
            "vnf": which,
            "instance_id": about.instance_id,
            "vdu_id": vdu.vdu_id,
            "vnfc_param": vnfc_param,
            "old_resource": vdu.old_resource,
            "new_resource": vdu.new_resource,
            **vdu.details,
            "access": dict(access),
        },
    }


def _entry_if_known(name: str, value: str | None) -> Json:
    """Return the entry, unless the value is not known: then Tacker has no such entry either."""
    return {name: value} if value else {}


def _coordination_request(about: Coordinated, operation: str) -> Json:
    """Return an LcmCoordRequest; without a VNFM that shows the operation it has no links."""
    occurrence = about.vnfm.occurrence
    body: Json = {
        "vnfInstanceId": about.instance_id,
        "vnfLcmOpOccId": occurrence.id if occurrence else operation,
        "lcmOperationType": "CHANGE_VNFPKG",
        "coordinationActionName": "the script has to name its action",
    }
    if occurrence:
        body["_links"] = {
            "vnfLcmOpOcc": {"href": occurrence.url},
            "vnfInstance": {"href": occurrence.instance_url},
        }
    return body


def _vnfc_info_id(instance: Mapping[str, Any], vdu: VduChange) -> str | None:
    """Return the id of the VNFC that the script runs for in the record, or the VDU's first."""
    info = instance.get("instantiatedVnfInfo") or {}
    of_vdu = [e for e in info.get("vnfcResourceInfo") or () if e.get("vduId") == vdu.vdu_id]
    same = [e for e in of_vdu if e["computeResource"].get("resourceId") == vdu.resource_id]
    ids = {entry.get("vnfcResourceInfoId"): entry["id"] for entry in info.get("vnfcInfo") or ()}
    return next((ids.get(entry["id"]) for entry in same or of_vdu), None)
