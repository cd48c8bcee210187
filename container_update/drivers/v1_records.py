# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v1 API records of an instance: read for an update, written back after it.

A VNFC keeps its id and gets another resourceId, so that references to the VNFC stay valid.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from container_update.drivers.advice import v1_advice
from container_update.drivers.v1_host import Tacker
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError, with_advice
from container_update.model.requests import CONFIG_PATHS, DEF_FILES, ChangePackageRequest
from container_update.model.schema import LINE, TEXTS, Fields
from container_update.records.resource_lists import assign
from container_update.records.vnf_records import Records
from container_update.workloads.object_schemas import ANY_NAMESPACE
from container_update.workloads.pod_template import pod_template

if TYPE_CHECKING:
    from container_update.drivers.change_by_modify import Modification
    from container_update.model.objects import Manifest
    from container_update.model.outcome import Vnfc
    from container_update.model.requests import UpdateRequest

    NewRecord = Callable[[str, Vnfc, Mapping[str, str]], Any]


def run(operation: str, /, context: Any, vnf_instance: Any, *args: Any, **kwargs: Any) -> None:
    """Run the driver's part of an operation of the v1 API; most have none.

    :raises ContainerUpdateError: the update failed. Tacker records its text, which therefore says
        what to do next.
    """
    if operation != "modify_information_end":
        return
    try:
        modify_information_end(context, vnf_instance, *args, **kwargs)
    except Exception as error:
        if isinstance(error, ContainerUpdateError):
            error.args = (with_advice(error, v1_advice(error.next_step)),)
        Tacker(context).take_back_what_follows()
        raise


def modify_information_end(
    context: Any,
    vnf_instance: Any,
    modify_vnf_request: Any = None,  # noqa: ARG001 (Tacker passes None)
    *,
    old_vnf_package_path: str | None = None,
    configmap_secret_paths: Sequence[str] | None = None,
    **_later_additions: Any,
) -> None:
    """Move the instance from the old package to the one that its record names by now.

    Tacker passes the two paths for a Kubernetes VIM only: without them there is nothing to update.
    It passes no request: the parameters of a change are in the instance's metadata, where it has
    merged the request's, and are removed in any case, since they count for this request only and
    may hold passwords.
    """
    if old_vnf_package_path is None:
        return
    from container_update.drivers import change_by_modify  # noqa: PLC0415 (not for idle calls)

    check(vnf_instance, configmap_secret_paths)
    host, before = Tacker(context), dict(vnf_instance.vnf_metadata or {})
    old = _running_package(before, old_vnf_package_path)
    new = host.package_path(vnf_instance.vnfd_id)
    after = change_by_modify.without_parameters(before)
    after.pop(RUNS_FROM, None)
    try:
        request = modification_of(vnf_instance, old, new, configmap_secret_paths)
    finally:  # before anything is written: a conductor that is killed cannot note it any more
        vnf_instance.vnf_metadata = after if new == old else {**after, RUNS_FROM: old}
        if vnf_instance.vnf_metadata != before:
            vnf_instance.save()
    if request is not None:
        _, records = host.carry_out(request, vnf_instance)
        write_records(vnf_instance, records, host.vnfc_record)
        if isinstance(request, ChangePackageRequest):
            host.record_objects(vnf_instance, records.manifests)
        vnf_instance.vnf_metadata = after
        vnf_instance.save()


RUNS_FROM = "container_update_runs_from"
"""In the metadata of an instance until a success: the folder of the package that it runs from. The
record names the new package by then, which Tacker's v1 API would pass as the old one next time."""

_GIVEN = Fields(
    {CONFIG_PATHS: TEXTS, DEF_FILES: TEXTS, "namespace": ANY_NAMESPACE, RUNS_FROM: LINE}
)


def check(vnf_instance: Any, config_paths: Any) -> None:
    """Check what users have given; all else is what Tacker itself records."""
    info, metadata = vnf_instance.instantiated_vnf_info, vnf_instance.vnf_metadata or {}
    parameters = (info.additional_params if info else None) or {}
    files = parameters.get(DEF_FILES)
    given = {name: metadata.get(name) for name in ("namespace", RUNS_FROM)}
    given |= {CONFIG_PATHS: _plain(config_paths), DEF_FILES: _plain(files)}
    _GIVEN.check(given, f"VNF instance {vnf_instance.id}")


def _plain(value: Any) -> Any:
    """Return a list as a plain one: Tacker has its own classes."""
    return list(value) if isinstance(value, (list, tuple)) else value


def modification_of(
    vnf_instance: Any, old: str, new: str, config_paths: Any
) -> Modification | None:
    """Return what a modification from the package *old* to *new* does to the CNF; None: nothing.

    :raises PackageError: the request or the record is wrong.
    """
    from container_update.drivers import change_by_modify  # noqa: PLC0415 (not for idle calls)

    paths, metadata = tuple(config_paths or ()), vnf_instance.vnf_metadata
    change = change_by_modify.requested_change(vnf_instance.vnfd_id, metadata)
    if new == old and not paths and change is None:
        return None
    request = request_of(vnf_instance, old, new, paths)
    return change_by_modify.modification(request, change)


def _running_package(metadata: Mapping[str, str], old: str) -> str:
    kept = metadata.get(RUNS_FROM)
    return kept if kept and os.path.isdir(kept) else old


def request_of(
    vnf_instance: Any, old: str, new: str, config_paths: tuple[str, ...]
) -> UpdateRequest:
    """Return the update of an instance from the package at *old* to the one at *new*.

    :raises PackageError: the instance was not created from def-files (but from a Helm chart), or
        has VDUs that were mapped to their workloads not by name.
    """
    from container_update.drivers import change_by_modify  # noqa: PLC0415 (not for idle calls)

    info = vnf_instance.instantiated_vnf_info
    if info is None:
        raise PackageError(
            f"VNF instance {vnf_instance.id}: expected an instantiated_vnf_info, found none:"
            " instantiate it first",
            next_step=NextStep.FIX_TARGET,
        )
    parameters = info.additional_params or {}
    request = change_by_modify.request_of(
        vnf_instance.id,
        parameters.get(DEF_FILES),
        (vnf_instance.vnf_metadata or {}).get("namespace"),
        old=old,
        new=new,
        config_paths=config_paths,
        place="the additionalParams it was instantiated with",
    )
    if parameters.get("vdu_mapping"):
        raise PackageError(
            f"VNF instance {vnf_instance.id}: it was instantiated with a vdu_mapping, and an update"
            " knows the workload of a VDU only by the VDU's name in the VNFD: instantiate it again"
            " without vdu_mapping, with VDUs named like their workloads",
            next_step=NextStep.FIX_TARGET,
        )
    return request


def write_records(vnf_instance: Any, records: Records, new_record: NewRecord) -> None:
    """Set the instance's def-files and one VNFC record for each live pod; nothing is saved yet."""
    info = vnf_instance.instantiated_vnf_info
    if records.def_files is not None:
        files = list(records.def_files)
        info.additional_params = {**info.additional_params, DEF_FILES: files}
    old = list(info.vnfc_resource_info)
    pairs = assign(
        old,
        [(vnfc.vdu_id, vnfc.pod_name) for vnfc in records.vnfcs],
        lambda record: (record.vdu_id, record.compute_resource.resource_id),
    )

    def record_of(vnfc: Vnfc, kept: Any | None) -> Any:
        is_renamed = vnfc.workload_name in records.resource_names.values()
        if kept is not None:
            kept.compute_resource.resource_id = vnfc.pod_name
            if is_renamed:
                kept.metadata = metadata_of(vnfc, records.manifests)
            return kept
        same = () if is_renamed else old
        siblings = (record.metadata for record in same if record.vdu_id == vnfc.vdu_id)
        metadata = dict(next(siblings, None) or metadata_of(vnfc, records.manifests))
        return new_record(str(uuid.uuid4()), vnfc, metadata)

    info.vnfc_resource_info = list(map(record_of, records.vnfcs, pairs))


def metadata_of(vnfc: Vnfc, manifests: Iterable[Manifest]) -> dict[str, str]:
    """Return what Tacker records with a VNFC and reads when it heals: the workload's metadata as
    JSON, and the pod template's unless the workload is a Pod itself."""
    from container_update.workloads.registry import kind_of  # noqa: PLC0415 (not for idle calls)

    workload = (vnfc.workload_kind, vnfc.workload_name)
    for manifest in manifests:
        key, kind = manifest.key, kind_of(manifest.key)
        if kind is not None and (key.kind, key.name) == workload:
            metadata = {key.kind: json.dumps({**manifest.body["metadata"], "name": key.name})}
            if not kind.is_pod:
                metadata["Pod"] = json.dumps(pod_template(manifest.body).get("metadata", {}))
            return metadata
    return {vnfc.workload_kind: json.dumps({"name": vnfc.workload_name})}
