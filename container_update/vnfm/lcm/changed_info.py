# SPDX-License-Identifier: Apache-2.0
"""What an operation changed in the attributes of its VNF instance, without credentials. Pure.

Source: SOL003, VnfInfoModifications (5.5.2.12a) and ModificationsTriggeredByVnfPkgChange, with
vnfcInfoModifications of SOL002. An attribute that is an object has a JSON merge patch (RFC 7396),
as in a request to modify it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.http import redaction
from container_update.vnfm.lcm.operation_context import VnfRecord
from container_update.vnfm.onboarding import package_info

_OF_PACKAGE = (*package_info.PRODUCT, "vnfConfigurableProperties", "metadata", "extensions")
_OF_INSTANCE = ("vnfInstanceName", "vnfInstanceDescription", "vnfPkgId", *_OF_PACKAGE)
_PROPERTIES = "vnfcConfigurableProperties"


def triggered_by_package(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return modificationsTriggeredByVnfPkgChange of a change of the package, None without any."""
    return _redacted(_changed(before, after, _OF_PACKAGE))


def modifications(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return changedInfo of a modification, None if it changed nothing."""
    changed = _changed(before, after, _OF_INSTANCE)
    if isinstance(after.vims, list):
        changed |= _changed_vims(before.vims or (), after.vims)
    elif patch := patch_between(before.vims or {}, after.vims or {}):
        changed["vimConnectionInfo"] = patch
    old, new = _vnfc_properties(before), _vnfc_properties(after)
    vnfcs = [
        {"id": id_, _PROPERTIES: patch_between(old[id_], properties)}
        for id_, properties in new.items()
        if properties != old.get(id_, properties)
    ]
    if vnfcs:
        changed["vnfcInfoModifications"] = vnfcs
    return _redacted(changed)


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """Return the JSON merge patch that leads from one object to another."""
    patch: Json = dict.fromkeys(name for name in before if name not in after)
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            if below := patch_between(old, value):
                patch[name] = below
        elif name not in before or value != old:
            patch[name] = value
    return patch


def _changed(before: VnfRecord, after: VnfRecord, names: tuple[str, ...]) -> Json:
    old, new = (
        {"vnfdId": record.vnfd_id, **{n: record.body[n] for n in names if n in record.body}}
        for record in (before, after)
    )
    return patch_between(old, new)


def _changed_vims(before: Any, after: Any) -> Json:
    """Return the changes of a list, as v1 has it: by the ids of its entries."""
    old, new = ({str(entry.get("id")): entry for entry in vims} for vims in (before, after))
    entries = [entry for id_, entry in new.items() if entry != old.get(id_)]
    deleted = [id_ for id_ in old if id_ not in new]
    values = {"vimConnectionInfo": entries, "vimConnectionInfoDeleteIds": deleted}
    return {name: value for name, value in values.items() if value}


def _vnfc_properties(record: VnfRecord) -> dict[str, Json]:
    entries = record.info.get("vnfcInfo") or ()
    return {entry["id"]: entry.get(_PROPERTIES) or {} for entry in entries}


def _redacted(changed: Json) -> Json | None:
    shown: Json = redaction.without(changed)
    return shown or None
