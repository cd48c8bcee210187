# SPDX-License-Identifier: Apache-2.0
"""What a VNFM records of a VNF that was updated or changed, and the one writer for v2. Pure.

:meth:`Records.apply_to` writes into a VnfInstance of the v2 API (a dict). The writer for v1, whose
instances are Tacker's objects, is
:func:`container_update.drivers.v1_records.write_records`.

Source: the specification's lists of attributes to be updated, one for each VIM and upgrade type.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Outcome, Vnfc
from container_update.model.requests import DEF_FILES
from container_update.records.resource_lists import LINKS, STORAGES, VNFCS, assign
from container_update.workloads.pod_template import containers, pod_spec
from container_update.workloads.registry import is_workload

VDU_RESES = "vdu_reses"
"""In the metadata of a v2 instance: VDU to the manifest of its workload, as it was deployed."""


Links = tuple[tuple[str, str], ...]
"""Name in the package and resource id of everything that VNFCs are reached by."""


@dataclass(frozen=True)
class Records:
    """What a VNFM records."""

    vnfd_id: str | None = None
    """The new package's; None where it stays, or the VNFM writes it itself."""
    vnfcs: tuple[Vnfc, ...] = ()
    """The live instances of every VDU."""
    new_vnfc_ids: bool = False
    """A VNFC that was replaced gets a new id (rolling update); else it keeps it (Blue-Green)."""
    restarted: frozenset[str] = frozenset()
    """The resourceIds of VNFCs that run anew under the name that they had: pods of a StatefulSet,
    Pods restarted in place."""
    named_by_pods: bool = False
    """A new VNFC's id is its pod's name, as Tacker's own operations have it in v2: another pod is
    another VNFC. One whose pod stays keeps the id that it has."""
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
    links: Links | None = None
    """Every virtual link; None: that list stays."""
    link_kind: str = "Service"
    """vimLevelResourceType of a virtual link."""
    storage_kind: str = "PersistentVolumeClaim"
    """vimLevelResourceType of a storage."""
    instance_ref: str | None = None
    """instantiatedVnfInfo.instance_id, where the VIM has one: the new stack's id."""

    @classmethod
    def of_update(cls, outcome: Outcome) -> Records:
        """Return what a VNFM records of an update of configuration and images."""
        plan = outcome.plan
        return cls(
            vnfcs=outcome.vnfcs,
            restarted=frozenset(name for names in outcome.restarted.values() for name in names),
            named_by_pods=True,
            def_files=plan.def_files,
            manifests=plan.manifests,
        )

    def apply_to(self, instance: Json) -> Json:
        """Return a copy of a VnfInstance (SOL003, 5.5.2.2) with these records."""
        changed = copy.deepcopy(instance)
        if self.vnfd_id is not None:
            changed["vnfdId"] = self.vnfd_id
        info = changed.setdefault("instantiatedVnfInfo", {})
        info["vnfcResourceInfo"] = self._vnfc_resources(info.get("vnfcResourceInfo") or ())
        info["vnfcInfo"] = vnfc_info(info)
        self.write_resources(info)
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

    def write_resources(self, info: Json) -> None:
        """Write virtual links and storages, and name each VNFC's storages in its entry.

        An update, which has no links, begins no list that the VNFM does not keep.
        """
        LINKS.rename(info, self.network_resources)
        STORAGES.rename(info, self.storage_resources)
        if self.links is not None:
            info[LINKS.attribute] = LINKS.entries(info, self.links, self.link_kind)
        elif STORAGES.attribute not in info:
            return
        live = dict.fromkeys(pair for vnfc in self.vnfcs for pair in vnfc.storages.items())
        entries = STORAGES.entries(info, list(live), self.storage_kind)
        ids = {STORAGES.resource_id(entry): entry["id"] for entry in entries}
        used = {vnfc.pod_name: vnfc.storages.values() for vnfc in self.vnfcs}
        info[STORAGES.attribute] = entries
        for entry in info["vnfcResourceInfo"]:
            storages = used.get(VNFCS.resource_id(entry), ())
            if storages or entry.get("storageResourceIds"):
                entry["storageResourceIds"] = [ids[storage] for storage in storages]

    def _vnfc_resources(self, recorded: Iterable[Json]) -> list[Json]:
        pairs = assign(
            list(recorded),
            [(vnfc.vdu_id, vnfc.pod_name) for vnfc in self.vnfcs],
            lambda entry: (str(entry.get("vduId")), VNFCS.resource_id(entry)),
        )
        return [self._vnfc_resource(vnfc, old) for old, vnfc in zip(pairs, self.vnfcs, strict=True)]

    def _vnfc_resource(self, vnfc: Vnfc, old: Json | None) -> Json:
        handle = {"resourceId": vnfc.pod_name, "vimLevelResourceType": vnfc.workload_kind}
        renewed = self.new_vnfc_ids and vnfc.pod_name in self.restarted
        if old is not None and VNFCS.resource_id(old) == vnfc.pod_name and not renewed:
            return old
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


def services(manifests: Iterable[Manifest]) -> Links:
    """Return the virtual links of a CNF: its Services, by their names."""
    keys = (manifest.key for manifest in manifests)
    return tuple((key.name, key.name) for key in keys if (key.group, key.kind) == ("", "Service"))


def workloads_of(vdus: Mapping[str, str], manifests: Iterable[Manifest]) -> dict[str, Json]:
    """Return the manifest of the workload of each VDU, with its name in the cluster.

    :param vdus: VDU to the name of its workload in the manifests.
    """
    bodies = {
        manifest.body["metadata"]["name"]: {
            **manifest.body,
            "metadata": {**manifest.body["metadata"], "name": manifest.key.name},
        }
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
