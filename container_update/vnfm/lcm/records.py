# SPDX-License-Identifier: Apache-2.0
"""What the service records of an instantiated VNF: instantiatedVnfInfo, as in Tacker's two APIs.

The Mgmt Drivers write the lists of VNFCs with the same code, so an update finds what it expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from container_update.drivers import v1_records
from container_update.drivers.v2_records import live_vnfcs
from container_update.engine.read_packages import described_by
from container_update.model.cluster import Cluster
from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Vnfc
from container_update.model.requests import DEF_FILES
from container_update.planning.comparison.package_pair import Placing
from container_update.records.resource_lists import LINKS, STORAGES, VNFCS, ResourceList
from container_update.records.vnf_records import (
    VDU_RESES,
    Records,
    services,
    workloads_of,
)
from container_update.vnfm.lcm import levels
from container_update.vnfm.lcm.mgmt_drivers import v1_objects
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord, known_flavour


def instantiated(
    context: OperationContext,
    manifests: Sequence[Manifest],
    cluster: Cluster,
    namespace: str,
) -> VnfRecord:
    """Return the record of an instance that was just created from *manifests*."""
    params = context.params
    vdus = vdus_of(context, context.record.vnfd_id, context.request.get("flavourId"))
    vnfcs, _ = live_vnfcs(vdus, manifests, cluster)
    info = started_info(context)
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
    with context.opened(record.vnfd_id) as package:
        def_files = tuple(params.get(DEF_FILES) or package.manifest_files())
    return with_vnfcs(context, record, vnfcs, manifests, def_files)


def started_info(context: OperationContext) -> Json:
    """Return instantiatedVnfInfo of an instance that was just created, without its resources."""
    request = context.request
    language = request.get("localizationLanguage")
    return {
        "flavourId": request.get("flavourId"),
        "vnfState": "STARTED",
        **levels.status(context),
        **({"localizationLanguage": language} if language else {}),
    }


def with_vnfcs(
    context: OperationContext,
    record: VnfRecord,
    vnfcs: Sequence[Vnfc],
    manifests: Sequence[Manifest],
    def_files: Sequence[str],
) -> VnfRecord:
    """Return the record with a VNFC for each of these pods, what they use, and these def-files."""
    written = Records(
        vnfcs=tuple(vnfcs),
        named_by_pods=True,
        def_files=tuple(def_files),
        manifests=tuple(manifests),
        links=services(manifests),
    )
    return with_written(context, record, written)


def with_written(context: OperationContext, record: VnfRecord, written: Records) -> VnfRecord:
    """Return the record with what an operation has to record, as that API has it."""
    if context.api == "v2":
        return replace(record, body=written.applied(record.body))
    instance = v1_objects.instance(context.instance_id, record, {})
    v1_records.write_records(instance, written, v1_objects.vnfc_record)
    return replace(record, body=v1_objects.body(instance, record.body, written))


def with_live_pods(context: OperationContext, record: VnfRecord, cluster: Cluster) -> VnfRecord:
    """Return the record with the live pods: an undo may have created new ones."""
    described = described_by(
        str(context.package(record.vnfd_id)),
        Placing(record.def_files, record.namespace, one_namespace=True),
        context.service.options,
    )
    vdus = vdus_of(context, record.vnfd_id, record.flavour_id)
    vnfcs, manifests = live_vnfcs(vdus, described, cluster)
    return with_vnfcs(context, record, vnfcs, manifests, record.def_files)


def vdus_of(context: OperationContext, vnfd_id: str, flavour_id: str | None) -> Mapping[str, str]:
    """Return the name of each VDU's workload, of the flavour if the VNFD has it, else of all."""
    with context.opened(vnfd_id) as package:
        return package.vdus(known_flavour(package, flavour_id))


# --- resourceChanges ------------------------------------------------------------------------------


def affected(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return resourceChanges: what was added, removed, has another resource or runs something else;
    None if nothing did (SOL003, 5.5.2.13 and 5.5.3.13 to 5.5.3.16)."""
    changes = {
        attribute: entries
        for attribute, resources in _LISTS.items()
        if (entries := list(_affected(before, after, resources)))
    }
    return changes or None


_LISTS: Mapping[str, ResourceList] = {
    "affectedVnfcs": VNFCS,
    "affectedVirtualLinks": LINKS,
    "affectedVirtualStorages": STORAGES,
}
"""Each list of changes to the list in instantiatedVnfInfo."""


def _affected(before: VnfRecord, after: VnfRecord, resources: ResourceList) -> Iterator[Json]:
    old, new = (_by_id(record, resources.attribute) for record in (before, after))

    def change(entry: Json, kind: str) -> Json:
        named = {name: entry[name] for name in ("id", resources.name)}
        return {**named, "changeType": kind, resources.handle: entry[resources.handle]}

    for id_, entry in new.items():
        resource = resources.resource_id(entry)
        if id_ not in old:
            yield change(entry, "ADDED")
        elif resource != resources.resource_id(old[id_]) or resource in after.touched:
            yield change(entry, "MODIFIED")
    for id_, entry in old.items():
        if id_ not in new:
            yield change(entry, "REMOVED")


def _by_id(record: VnfRecord, attribute: str) -> dict[str, Json]:
    return {str(entry["id"]): entry for entry in record.info.get(attribute) or ()}
