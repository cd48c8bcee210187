"""What a VNFM records of a VNF that was updated or changed, and the one writer for v2. Pure.

:class:`Records` says what there is now; :meth:`Records.applied` writes it into a VnfInstance of the
v2 API (a dict). The writer for v1, whose instances are Tacker's objects, is
:func:`container_update.drivers.v1_records.write_records`.

Source: the specification's lists of attributes to be updated, one for each VIM and upgrade type.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Outcome, Vnfc
from container_update.model.requests import DEF_FILES
from container_update.workloads.pod_template import containers, pod_spec
from container_update.workloads.registry import is_workload

Entry = TypeVar("Entry")

VDU_RESES = "vdu_reses"
"""In the metadata of a v2 instance: VDU to the manifest of its workload, as it was deployed."""


@dataclass(frozen=True)
class Storage:
    """A volume that a VNFC did not have before."""

    name: str
    """The VNFD's storage node: virtualStorageDescId."""
    resource_id: str
    server_id: str
    """The VNFC's computeResource.resourceId."""


@dataclass(frozen=True)
class Records:
    """What a VNFM records."""

    vnfd_id: str | None = None
    """The new package's; None where it stays, or the VNFM writes it itself."""
    vnfcs: tuple[Vnfc, ...] = ()
    """The live instances of every VDU."""
    new_vnfc_ids: bool = False
    """A VNFC that was replaced gets a new id (rolling update); else it keeps it (Blue-Green)."""
    named_by_pods: bool = False
    """A VNFC's id is its pod's name, as Tacker's own operations have it in v2: another pod is
    another VNFC."""
    def_files: tuple[str, ...] | None = None
    """The new list of def-files; None where it stays."""
    manifests: tuple[Manifest, ...] = ()
    """The manifests of the recorded workloads and of new VNFCs."""
    workloads: Mapping[str, Json] | None = None
    """VDU to the manifest of its workload, where all of it may have changed; None: at most the
    images did, which *manifests* have."""
    resource_names: Mapping[str, str] = field(default_factory=dict)
    """VnfResource.resourceName: old to new name of a VDU's workload."""
    network_resources: Mapping[str, str] = field(default_factory=dict)
    """vnfVirtualLinkResourceInfo.networkResource.resourceId: old to new."""
    storage_resources: Mapping[str, str] = field(default_factory=dict)
    """virtualStorageResourceInfo.storageResource.resourceId: old to new."""
    gone_storages: frozenset[str] = frozenset()
    """resourceIds of deleted volumes, whose entries are removed."""
    new_storages: tuple[Storage, ...] = ()
    """Volumes where there were none."""
    instance_ref: str | None = None
    """instantiatedVnfInfo.instance_id, where the VIM has one: the new stack's id."""

    @classmethod
    def of_update(cls, outcome: Outcome) -> Records:
        """Return what a VNFM records of an update of configuration and images."""
        plan = outcome.plan
        return cls(
            vnfcs=outcome.vnfcs,
            named_by_pods=True,
            def_files=plan.def_files,
            manifests=plan.manifests,
        )

    def applied(self, instance: Json) -> Json:
        """Return a copy of a VnfInstance (SOL003, 5.5.2.2) as it is now."""
        changed = copy.deepcopy(instance)
        if self.vnfd_id is not None:
            changed["vnfdId"] = self.vnfd_id
        info = changed.setdefault("instantiatedVnfInfo", {})
        info["vnfcResourceInfo"] = self._vnfc_resources(info.get("vnfcResourceInfo") or ())
        info["vnfcInfo"] = vnfc_info(info)
        _rename(info.get("vnfVirtualLinkResourceInfo"), "networkResource", self.network_resources)
        _rename(info.get("virtualStorageResourceInfo"), _STORAGE, self.storage_resources)
        self._write_storages(info)
        if self.instance_ref is not None:
            info["instance_id"] = self.instance_ref
        self._write_workloads(info.get("metadata") or {})
        if self.def_files is not None:
            holder = info if DEF_FILES in (info.get("metadata") or {}) else changed
            holder["metadata"] = {
                **(holder.get("metadata") or {}),
                DEF_FILES: list(self.def_files),
            }
        return changed

    def _write_workloads(self, metadata: Json) -> None:
        if VDU_RESES not in metadata:
            return
        if self.workloads is not None:
            metadata[VDU_RESES] = dict(self.workloads)
            return
        for workload in metadata[VDU_RESES].values():
            set_images(workload, _images_of(workload, self.manifests))

    def _write_storages(self, info: Json) -> None:
        """Remove the entries of deleted storages, add those of new ones, and name them in the
        VNFCs."""
        if not self.gone_storages and not self.new_storages:
            return
        entries: list[Json] = info.get("virtualStorageResourceInfo") or []
        gone = [entry for entry in entries if _resource_id(entry, _STORAGE) in self.gone_storages]
        gone_ids = {entry.get("id") for entry in gone}
        added = [(storage.server_id, _storage_entry(storage)) for storage in self.new_storages]
        info["virtualStorageResourceInfo"] = [
            *(entry for entry in entries if entry not in gone),
            *(entry for _, entry in added),
        ]
        for vnfc in info["vnfcResourceInfo"]:
            ids = [id_ for id_ in vnfc.get("storageResourceIds") or () if id_ not in gone_ids]
            ids += [entry["id"] for server, entry in added if server == _resource_id(vnfc)]
            if ids or "storageResourceIds" in vnfc:
                vnfc["storageResourceIds"] = ids

    def _vnfc_resources(self, recorded: Iterable[Json]) -> list[Json]:
        pairs = assign(
            list(recorded),
            [(vnfc.vdu_id, vnfc.pod_name) for vnfc in self.vnfcs],
            lambda entry: (str(entry.get("vduId")), _resource_id(entry)),
        )
        return [self._vnfc_resource(vnfc, old) for old, vnfc in zip(pairs, self.vnfcs, strict=True)]

    def _vnfc_resource(self, vnfc: Vnfc, old: Json | None) -> Json:
        handle = {"resourceId": vnfc.pod_name, "vimLevelResourceType": vnfc.workload_kind}
        if old is not None and _resource_id(old) == vnfc.pod_name:
            return {**old, "id": vnfc.pod_name} if self.named_by_pods else old
        if self.named_by_pods:
            entry = {"id": vnfc.pod_name, "vduId": vnfc.vdu_id}
            return {**entry, "computeResource": handle, "metadata": {}}
        before = old or {}
        compute = {**handle, **(before.get("computeResource") or {}), "resourceId": vnfc.pod_name}
        if old is not None and not self.new_vnfc_ids:
            return {**old, "computeResource": compute}
        pod = {"name": vnfc.pod_name, "namespace": vnfc.namespace, "labels": dict(vnfc.labels)}
        return {
            **before,
            "id": str(uuid.uuid4()),
            "vduId": vnfc.vdu_id,
            "computeResource": compute,
            "metadata": {**(before.get("metadata") or {}), **pod},
        }


def assign(
    entries: Sequence[Entry],
    live: Sequence[tuple[str, str]],
    identify: Callable[[Entry], tuple[str, str]],
) -> list[Entry | None]:
    """Return the entry of each live resource; None: it needs a new one.

    An entry keeps its resource while that lives, else takes over a new one of the same name.
    Surplus entries are left out.

    :param live: name (a VDU, a connection point, a storage) and resource id of each.
    :param identify: returns name and resource id of an entry.
    """
    by_resource = {identify(entry)[1]: entry for entry in entries}
    live_ids = {resource_id for _, resource_id in live}
    free: dict[str, list[Entry]] = {}
    for entry in entries:
        name, resource_id = identify(entry)
        if resource_id not in live_ids:
            free.setdefault(name, []).append(entry)
    return [
        by_resource[resource_id]
        if resource_id in by_resource
        else (free[name].pop(0) if free.get(name) else None)
        for name, resource_id in live
    ]


def vnfc_info(info: Json) -> list[Json]:
    """Return vnfcInfo for the VNFCs of an instantiatedVnfInfo; other attributes of the entries are
    kept."""
    before: Mapping[str, Json] = {
        entry.get("vnfcResourceInfoId", ""): entry for entry in info.get("vnfcInfo") or ()
    }
    return [
        {
            **before.get(entry["id"], {}),
            "id": f"{entry['vduId']}-{entry['id']}",
            "vduId": entry["vduId"],
            "vnfcResourceInfoId": entry["id"],
            "vnfcState": "STARTED",
        }
        for entry in info["vnfcResourceInfo"]
    ]


def workloads_of(vdus: Mapping[str, str], manifests: Iterable[Manifest]) -> dict[str, Json]:
    """Return the manifest of the workload of each VDU.

    :param vdus: VDU to the name of its workload.
    """
    bodies = {
        manifest.body["metadata"]["name"]: manifest.body
        for manifest in manifests
        if is_workload(manifest.key)
    }
    return {vdu: bodies[name] for vdu, name in vdus.items() if name in bodies}


def set_images(workload: Json, images: Mapping[str, str]) -> None:
    """Give the containers of a workload the images of that name."""
    for _, container in containers(pod_spec(workload)):
        if container.get("name") in images:
            container["image"] = images[container["name"]]


def _images_of(workload: Json, manifests: Iterable[Manifest]) -> Mapping[str, str]:
    for manifest in manifests:
        key = manifest.key
        if (key.kind, key.name) == (workload.get("kind"), workload["metadata"].get("name")):
            return {
                container["name"]: container["image"]
                for _, container in containers(pod_spec(manifest.body))
                if "image" in container
            }
    return {}


_STORAGE = "storageResource"


def _storage_entry(storage: Storage) -> Json:
    handle = {"resourceId": storage.resource_id, "vimLevelResourceType": "OS::Cinder::Volume"}
    return {"id": str(uuid.uuid4()), "virtualStorageDescId": storage.name, _STORAGE: handle}


def _resource_id(entry: Json, handle: str = "computeResource") -> str:
    return str((entry.get(handle) or {}).get("resourceId", ""))


def _rename(entries: Sequence[Json] | None, handle: str, names: Mapping[str, str]) -> None:
    for entry in entries or ():
        resource = entry.get(handle) or {}
        if resource.get("resourceId") in names:
            resource["resourceId"] = names[resource["resourceId"]]
