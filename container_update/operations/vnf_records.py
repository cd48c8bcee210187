"""Which attributes of a VNF instance change with its package, as a value. Pure.

Source: the specification's lists of attributes to be updated, one for each VIM and upgrade type.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.model.requests import DEF_FILES


@dataclass(frozen=True)
class Storage:
    """A volume that a VNFC has and had none of before."""

    name: str
    """The VNFD's storage node: virtualStorageDescId."""
    resource_id: str
    server_id: str
    """The VNFC's computeResource.resourceId."""


@dataclass(frozen=True)
class Records:
    """What a VNFM writes down after a change of the package."""

    vnfd_id: str
    vnfcs: tuple[Vnfc, ...] = ()
    """The live instances of every VDU."""
    new_vnfc_ids: bool = False
    """A VNFC that was replaced gets a new id (rolling update); else it keeps it (Blue-Green)."""
    def_files: tuple[str, ...] | None = None
    """The new list of def-files; None where it stays."""
    resource_names: Mapping[str, str] = field(default_factory=dict)
    """VnfResource.resourceName: old name to new name of what runs a VDU."""
    network_resources: Mapping[str, str] = field(default_factory=dict)
    """vnfVirtualLinkResourceInfo.networkResource.resourceId: old to new."""
    storage_resources: Mapping[str, str] = field(default_factory=dict)
    """virtualStorageResourceInfo.storageResource.resourceId: old to new."""
    gone_storages: frozenset[str] = frozenset()
    """resourceIds of volumes that are no more: what was recorded of them goes."""
    new_storages: tuple[Storage, ...] = ()
    """Volumes where there were none."""
    instance_ref: str | None = None
    """instantiatedVnfInfo.instance_id, where the VIM has one: the new stack's id."""

    def applied(self, instance: Json) -> Json:
        """A copy of a VnfInstance (SOL003, 5.5.2.2) as it is after the change."""
        changed = copy.deepcopy(instance)
        changed["vnfdId"] = self.vnfd_id
        info = changed.setdefault("instantiatedVnfInfo", {})
        info["vnfcResourceInfo"] = self._vnfc_resources(info.get("vnfcResourceInfo") or ())
        _rename(info.get("vnfVirtualLinkResourceInfo"), "networkResource", self.network_resources)
        _rename(info.get("virtualStorageResourceInfo"), _STORAGE, self.storage_resources)
        self._come_and_gone(info)
        if self.instance_ref is not None:
            info["instance_id"] = self.instance_ref
        if self.def_files is not None:
            holder = info if DEF_FILES in (info.get("metadata") or {}) else changed
            holder["metadata"] = {
                **(holder.get("metadata") or {}),
                DEF_FILES: list(self.def_files),
            }
        return changed

    def _come_and_gone(self, info: Json) -> None:
        """Storages that are no more, or new, with what their VNFCs say of them."""
        if not self.gone_storages and not self.new_storages:
            return
        entries: list[Json] = info.get("virtualStorageResourceInfo") or []
        gone = [entry for entry in entries if _resource_id(entry, _STORAGE) in self.gone_storages]
        came = [(storage, _entry_of(storage)) for storage in self.new_storages]
        kept = [entry for entry in entries if entry not in gone]
        info["virtualStorageResourceInfo"] = [*kept, *(entry for _, entry in came)]
        gone_ids = {entry.get("id") for entry in gone}
        for vnfc in info["vnfcResourceInfo"]:
            named = [id_ for id_ in vnfc.get("storageResourceIds") or () if id_ not in gone_ids]
            server = _resource_id(vnfc)
            named += [entry["id"] for storage, entry in came if storage.server_id == server]
            if named or "storageResourceIds" in vnfc:
                vnfc["storageResourceIds"] = named

    def _vnfc_resources(self, recorded: Iterable[Json]) -> list[Json]:
        """One entry for each live VNFC: an old one goes on with the pod that takes its place."""
        entries = list(recorded)
        live = {vnfc.pod_name for vnfc in self.vnfcs}
        by_resource = {_resource_id(entry): entry for entry in entries}
        free = [entry for entry in entries if _resource_id(entry) not in live]
        return [
            by_resource.get(vnfc.pod_name) or self._entry(vnfc, _take(free, vnfc.vdu_id))
            for vnfc in self.vnfcs
        ]

    def _entry(self, vnfc: Vnfc, old: Json | None) -> Json:
        compute = {**((old or {}).get("computeResource") or {}), "resourceId": vnfc.pod_name}
        compute.setdefault("vimLevelResourceType", vnfc.workload_kind)
        if old is not None and not self.new_vnfc_ids:
            return {**old, "computeResource": compute}
        pod = {"name": vnfc.pod_name, "namespace": vnfc.namespace, "labels": dict(vnfc.labels)}
        return {
            **(old or {}),
            "id": str(uuid.uuid4()),
            "vduId": vnfc.vdu_id,
            "computeResource": compute,
            "metadata": {**((old or {}).get("metadata") or {}), **pod},
        }


_STORAGE = "storageResource"


def _entry_of(storage: Storage) -> Json:
    handle = {"resourceId": storage.resource_id, "vimLevelResourceType": "OS::Cinder::Volume"}
    return {"id": str(uuid.uuid4()), "virtualStorageDescId": storage.name, _STORAGE: handle}


def _resource_id(entry: Json, handle: str = "computeResource") -> str:
    return str((entry.get(handle) or {}).get("resourceId", ""))


def _take(free: list[Json], vdu_id: str) -> Json | None:
    for number, entry in enumerate(free):
        if entry.get("vduId") == vdu_id:
            return free.pop(number)
    return None


def _rename(entries: Sequence[Json] | None, handle: str, names: Mapping[str, str]) -> None:
    for entry in entries or ():
        resource = entry.get(handle) or {}
        if resource.get("resourceId") in names:
            resource["resourceId"] = names[resource["resourceId"]]
