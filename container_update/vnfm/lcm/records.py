# SPDX-License-Identifier: Apache-2.0
"""What the service records of an instantiated VNF: instantiatedVnfInfo, as in Tacker's two APIs.

The Mgmt Drivers write the lists of VNFCs with the same code, so an update finds what it expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_update.drivers import v1_records
from container_update.drivers.v2_records import live_vnfcs
from container_update.engine.read_packages import described_by
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Vnfc
from container_update.model.requests import DEF_FILES, InstallRequest
from container_update.model.scaling import SCALE_OUT, Level, Scaling
from container_update.records.resource_lists import LINKS, STORAGES, VNFCS, ResourceList
from container_update.records.vnf_records import VDU_RESES, Records, services, workloads_of
from container_update.vnfm import packages
from container_update.vnfm.lcm.mgmt_drivers import v1
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord, known_flavour
from container_update.vnfm.packages import PRODUCT
from container_update.vnfm.problems import without_credentials


def instantiated_record(
    context: OperationContext,
    manifests: Sequence[Manifest],
    cluster: ReadOnlyCluster,
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
    with context.open_package(record.vnfd_id) as package:
        def_files = tuple(params.get(DEF_FILES) or package.manifest_files())
    return with_vnfcs(context, record, vnfcs, manifests, def_files)


def started_info(context: OperationContext) -> Json:
    """Return instantiatedVnfInfo of an instance that was just created, without its resources."""
    request = context.request
    language = request.get("localizationLanguage")
    return {
        "flavourId": request.get("flavourId"),
        "vnfState": "STARTED",
        **_scale_status(context),
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
    """Return the record with what an operation has to record, in the form of its API."""
    if context.api == "v2":
        return replace(record, body=written.apply_to(record.body))
    instance = v1.instance_object(context.instance_id, record, {})
    v1_records.write_records(instance, written, v1.vnfc_record)
    return replace(record, body=v1.changed_body(instance, record.body, written))


def with_live_pods(
    context: OperationContext, record: VnfRecord, cluster: ReadOnlyCluster
) -> VnfRecord:
    """Return the record with the live pods: an undo may have created new ones."""
    package = str(context.package(record.vnfd_id))
    request = InstallRequest(
        package, def_files=record.def_files, namespace=record.namespace, one_namespace=True
    )
    described = described_by(request, context.service.options)
    vdus = vdus_of(context, record.vnfd_id, record.flavour_id)
    vnfcs, manifests = live_vnfcs(vdus, described, cluster)
    return with_vnfcs(context, record, vnfcs, manifests, record.def_files)


def vdus_of(context: OperationContext, vnfd_id: str, flavour_id: str | None) -> Mapping[str, str]:
    """Return the name of each VDU's workload, of the flavour if the VNFD has it, else of all."""
    with context.open_package(vnfd_id) as package:
        return package.vdus(known_flavour(package, flavour_id))


def with_connection(record: VnfRecord, connection_id: str | None) -> VnfRecord:
    """Return the record with the VIM connection of each resource (SOL003, 4.4.1.7)."""
    info = record.info
    if not info or connection_id is None:
        return record
    for resources in _LISTS.values():
        handle = resources.handle
        if entries := info.get(resources.attribute):
            info[resources.attribute] = [
                {**entry, handle: {**entry[handle], "vimConnectionId": connection_id}}
                if entry.get(handle)
                else entry
                for entry in entries
            ]
    return record.with_info(info)


# --- resourceChanges ------------------------------------------------------------------------------


def affected_resources(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return resourceChanges: what was added, removed, has another resource or runs something else;
    None if nothing did (SOL003, 5.5.2.13 and 5.5.3.13 to 5.5.3.16)."""
    changes = {
        attribute: entries
        for attribute, resources in _LISTS.items()
        if (entries := list(_affected_vnfcs(before, after, resources)))
    }
    return changes or None


_LISTS: Mapping[str, ResourceList] = {
    "affectedVnfcs": VNFCS,
    "affectedVirtualLinks": LINKS,
    "affectedVirtualStorages": STORAGES,
}
"""Each list of changes to the list in instantiatedVnfInfo."""


def _affected_vnfcs(before: VnfRecord, after: VnfRecord, resources: ResourceList) -> Iterator[Json]:
    old, new = (
        {str(entry["id"]): entry for entry in record.info.get(resources.attribute) or ()}
        for record in (before, after)
    )

    def change(entry: Json, kind: str) -> Json:
        named = {name: entry[name] for name in ("id", resources.name)}
        if resources is LINKS:  # SOL003 2.6.1 has another name for it than 3.3.1
            named["virtualLinkDescId"] = entry[resources.name]
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


# --- changedInfo and modificationsTriggeredByVnfPkgChange, without credentials --------------------
# Source: SOL003, VnfInfoModifications (5.5.2.12a) and ModificationsTriggeredByVnfPkgChange, with
# vnfcInfoModifications of SOL002. An attribute that is an object has a JSON merge patch (RFC 7396),
# as in a request to modify it.


_OF_PACKAGE = (*PRODUCT, "vnfConfigurableProperties", "metadata", "extensions")
_OF_INSTANCE = ("vnfInstanceName", "vnfInstanceDescription", "vnfPkgId", *_OF_PACKAGE)
_PROPERTIES = "vnfcConfigurableProperties"


def triggered_by_package(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return modificationsTriggeredByVnfPkgChange of a change of the package, None without any."""
    return _redact(_changed_names(before, after, _OF_PACKAGE))


def modifications(before: VnfRecord, after: VnfRecord) -> Json | None:
    """Return changedInfo of a modification, None if it changed nothing."""
    changed = _changed_names(before, after, _OF_INSTANCE)
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
    return _redact(changed)


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


def _changed_names(before: VnfRecord, after: VnfRecord, names: tuple[str, ...]) -> Json:
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


def _redact(changed: Json) -> Json | None:
    shown: Json = without_credentials(changed)
    return shown or None


# --- scale levels and instantiation levels, from VNFD and request to instantiatedVnfInfo ----------
# Source: SOL003, 5.5.2.2 (scaleStatus, maxScaleLevels), 5.5.2.4 and 5.5.2.5.


def scaling_of(context: OperationContext) -> Scaling:
    """Return how the instance is scaled, by its package and flavour."""
    flavour_id = context.record.flavour_id or context.request.get("flavourId")
    with context.open_package(context.record.vnfd_id) as package:
        return packages.scaling_of(package.flavours, flavour_id)


def _first_level(context: OperationContext) -> tuple[Scaling, Level]:
    """Return the instantiation level of the request, else the VNFD's default one."""
    scaling = scaling_of(context)
    return scaling, scaling.level(context.request.get("instantiationLevelId"))


def first_replicas(context: OperationContext) -> dict[str, int]:
    """Return the number of pods of each VDU's workload at the first level."""
    vdus = vdus_of(context, context.record.vnfd_id, context.request.get("flavourId"))
    return {vdus[vdu]: number for vdu, number in first_numbers(context).items() if vdu in vdus}


def first_numbers(context: OperationContext) -> Mapping[str, int]:
    """Return the number of VNFCs of each VDU at the first level, as far as the VNFD says."""
    return _first_level(context)[1].instances


def _scale_status(context: OperationContext) -> Json:
    """Return scaleStatus and maxScaleLevels of an instance that was just created."""
    scaling, level = _first_level(context)
    if not scaling.aspects:
        return {}
    info: Json = {"scaleStatus": _scale_info(level.scale_levels)}
    if context.api == "v2":
        most = {name: aspect.max_level for name, aspect in scaling.aspects.items()}
        info["maxScaleLevels"] = _scale_info(most)
    return info


def scale_info(
    scaling: Scaling, info: Json, request: Mapping[str, Any]
) -> tuple[Json, dict[str, int]]:
    """Return instantiatedVnfInfo with the new scale level, and the new number of each VDU.

    Counted from the recorded VNFCs, as Tacker does: another try has the same result.

    :raises PackageError: the VNFD has no such aspect, or does not allow the level or a number.
    """
    recorded = {entry["aspectId"]: entry["scaleLevel"] for entry in info.get("scaleStatus") or ()}
    levels = {**scaling.level(None).scale_levels, **recorded}
    aspect_id, number = request["aspectId"], int(request.get("numberOfSteps") or 1)
    steps = number if request["type"] == SCALE_OUT else -number
    level = levels.get(aspect_id, 0)
    numbers = scaling.scaled_instances(aspect_id, level, steps, vnfcs_of(info))
    return {**info, "scaleStatus": _scale_info({**levels, aspect_id: level + steps})}, numbers


def vnfcs_of(info: Json) -> Counter[str]:
    """Return the number of VNFCs of each VDU in instantiatedVnfInfo."""
    return Counter(str(vnfc["vduId"]) for vnfc in info.get("vnfcResourceInfo") or ())


def _scale_info(levels: Mapping[str, int]) -> list[Json]:
    return [{"aspectId": name, "scaleLevel": level} for name, level in levels.items()]
