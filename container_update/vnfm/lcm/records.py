"""What a VNFM records of an instantiated VNF: instantiatedVnfInfo, as Tacker's two APIs have it.

The lists of VNFCs are made by the same code that the Mgmt Drivers use, so that an update finds what
it expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from container_update.cluster.informer import Informer
from container_update.drivers import v1_records
from container_update.model.cluster import Cluster
from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Vnfc
from container_update.model.requests import DEF_FILES
from container_update.operations.install import described_by
from container_update.operations.vnf_records import VDU_RESES, Records, workloads_of
from container_update.package import csar
from container_update.planning import renames
from container_update.planning.update import collections
from container_update.vnfm.lcm.mgmt_drivers import v1_objects
from container_update.vnfm.lcm.mgmt_drivers.v1 import Host
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.workloads import ownership


def instantiated(
    context: OperationContext,
    manifests: Sequence[Manifest],
    cluster: Cluster,
    namespace: str,
) -> Record:
    """Return the record of an instance that was just created from *manifests*."""
    request = context.request
    params = dict(request.get("additionalParams") or {})
    folder = str(context.package(context.record.vnfd_id))
    vdus = vdus_of(context, folder, request.get("flavourId"))
    with Informer(cluster) as informer:
        informer.list(collections([manifest.key for manifest in manifests]))
        vnfcs = ownership.vnfcs(vdus, manifests, informer.live)
    info: Json = {"flavourId": request.get("flavourId"), "vnfState": "STARTED", "extCpInfo": []}
    body = dict(context.record.body)
    if context.api == "v1":
        info |= {"additionalParams": params, "vnfcResourceInfo": []}
        body["metadata"] = {**(body.get("metadata") or {}), "namespace": namespace}
    else:
        info["metadata"] = {
            "namespace": namespace,
            "tenant": namespace,
            DEF_FILES: list(params.get(DEF_FILES) or ()),
            VDU_RESES: workloads_of(vdus, manifests),
        }
    record = replace(context.record, instantiated=True, body={**body, "instantiatedVnfInfo": info})
    def_files = tuple(params.get(DEF_FILES) or _listed(context, folder))
    return with_vnfcs(context, record, vnfcs, manifests, def_files)


def with_vnfcs(
    context: OperationContext,
    record: Record,
    vnfcs: Sequence[Vnfc],
    manifests: Sequence[Manifest],
    def_files: Sequence[str],
) -> Record:
    """Return the record with one VNFC for each of these pods, and these def-files."""
    written = Records(
        vnfcs=tuple(vnfcs),
        named_by_pods=True,
        def_files=tuple(def_files),
        manifests=tuple(manifests),
    )
    if context.api == "v2":
        return replace(record, body=written.applied(record.body))
    instance = v1_objects.instance(context.instance_id, record, {})
    v1_records.write_records(instance, written, Host(context))
    return replace(record, body=v1_objects.body(instance, record.body))


def with_live_pods(context: OperationContext, record: Record, cluster: Cluster) -> Record:
    """Return the record with the pods that run now: an undo may have made new ones."""
    folder = str(context.package(record.vnfd_id))
    described = described_by(
        folder,
        record.def_files,
        record.namespace,
        one_namespace=True,
        options=context.service.options,
    )
    keys = [manifest.key for manifest in described]
    with Informer(cluster) as informer:
        informer.list(collections(keys))
        called = renames.live_names(informer.live)
        manifests = [renames.with_live_name(manifest, called) for manifest in described]
        vdus = vdus_of(context, folder, record.flavour_id)
        vnfcs = ownership.vnfcs(vdus, manifests, informer.live)
    return with_vnfcs(context, record, vnfcs, manifests, record.def_files)


def vdus_of(context: OperationContext, folder: str, flavour_id: str | None) -> Mapping[str, str]:
    """VDU id to the name of its workload, of a flavour where the VNFD has it, else of all."""
    with csar.open_package(folder, options=context.service.options) as package:
        known = {flavour.id for flavour in package.flavours}
        return package.vdus(flavour_id if flavour_id in known else None)


def _listed(context: OperationContext, folder: str) -> Sequence[str]:
    with csar.open_package(folder, options=context.service.options) as package:
        return package.manifest_files()


# --- resourceChanges ------------------------------------------------------------------------------


def affected(before: Record, after: Record) -> Json | None:
    """resourceChanges: what came, went, got another resource or runs something else now; None where
    nothing did (SOL003, 5.5.2.13 and 5.5.3.13 to 5.5.3.16)."""
    found = {
        changes: entries
        for changes, (listed, name, handle) in _LISTS.items()
        if (entries := list(_affected(before, after, listed, name, handle)))
    }
    return found or None


_LISTS: Mapping[str, tuple[str, str, str]] = {
    "affectedVnfcs": ("vnfcResourceInfo", "vduId", "computeResource"),
    "affectedVirtualLinks": (
        "vnfVirtualLinkResourceInfo",
        "vnfVirtualLinkDescId",
        "networkResource",
    ),
    "affectedVirtualStorages": (
        "virtualStorageResourceInfo",
        "virtualStorageDescId",
        "storageResource",
    ),
}
"""Each list of changes to the list in instantiatedVnfInfo, and what its entries are told by."""


def _affected(before: Record, after: Record, listed: str, name: str, handle: str) -> Iterator[Json]:
    old, new = (_by_resource(record, listed, handle) for record in (before, after))
    kept_ids = {entry["id"] for entry in new.values()} & {entry["id"] for entry in old.values()}

    def told(entry: Json, how: str) -> Json:
        kept = {"id": entry["id"], name: entry[name]}
        return {**kept, "changeType": how, handle: entry[handle]}

    for resource, entry in new.items():
        if resource not in old or resource in after.touched:
            yield told(entry, "MODIFIED" if entry["id"] in kept_ids else "ADDED")
    for resource, entry in old.items():
        if resource not in new and entry["id"] not in kept_ids:
            yield told(entry, "REMOVED")


def _by_resource(record: Record, listed: str, handle: str) -> dict[str, Json]:
    return {str(entry[handle].get("resourceId")): entry for entry in record.info.get(listed) or ()}
