# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v2 API records of an instance: read for an update, written back after it.

In v2 a VNFC's id is the name of its pod.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from container_update.drivers import change_by_modify, v2_memory, vim
from container_update.model.cluster import Cluster
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.objects import (
    INSTANCE_LABEL,
    Json,
    Manifest,
    ObjectKey,
    Source,
    merge_patch,
)
from container_update.model.options import Options
from container_update.model.requests import (
    CONFIG_PATHS,
    DEF_FILES,
    UpdateRequest,
)
from container_update.planning.comparison import renames
from container_update.records.vnf_records import VDU_RESES, Records
from container_update.workloads import ownership

CONFIG_VARIABLE = "CONTAINER_UPDATE_CONFIG"
"""An environment variable of the conductor: an oslo.config file with a ``[container_update]``
section. Tacker's own configuration is not loaded in a script."""


RESTARTED = "container_update_restarted"
"""The key of the restarted pods in the answer; Tacker reads only those that it knows."""


def update_instance(script: Json, output: Json) -> None:
    """Move the instance to the package of the request.

    Without a vnfdId Tacker passes no new package: the listed ConfigMaps and Secrets then become
    again as the present package has them.

    :param output: gets ``vnf_instance`` after a success, and in any case what a rollback needs.
    :raises ContainerUpdateError: the update failed and was undone.
    """
    instance, old = script["vnf_instance"], script["tmp_csar_dir"]
    earlier = v2_memory.recall(script)
    config_paths = config_paths_of(script["request"])
    try:
        packages, change = work_of(
            instance, script["request"], old, script.get("new_csar_dir") or old, config_paths
        )
        if change is None:
            state, records = _updated(packages, instance)
        else:  # the parameters may hold passwords: the instance does not keep them
            metadata = change_by_modify.without_parameters(instance.get("metadata"))
            instance = {**instance, "metadata": metadata}
            state, records = _changed(change, packages, instance)
    except ContainerUpdateError as error:
        v2_memory.remember(output, v2_memory.joined(earlier, v2_memory.after_failure(error)))
        raise
    v2_memory.remember(output, v2_memory.joined(earlier, state))
    output["vnf_instance"] = recorded(records, instance)
    output[RESTARTED] = sorted(records.restarted)


def recorded(records: Records, instance: Json) -> Json:
    """Return the instance with these records.

    Where they have whole manifests, these get what Tacker adds and works by: its heal and its scale
    find the namespace in them, and its terminate knows by the label which Pods are its own.
    """
    namespace = (instance["instantiatedVnfInfo"].get("metadata") or {}).get("namespace")
    added = {"labels": {INSTANCE_LABEL: instance["id"]}, "namespace": namespace or "default"}
    workloads = records.workloads and {
        vdu: merge_patch(body, {"metadata": added}) for vdu, body in records.workloads.items()
    }
    return replace(records, workloads=workloads).applied(instance)


def config_paths_of(request: Json) -> tuple[str, ...]:
    """Return the files of ConfigMaps and Secrets that a modify request lists."""
    return tuple((request.get("metadata") or {}).get(CONFIG_PATHS) or ())


def work_of(
    instance: Json, request: Json, old: str, new: str, config_paths: tuple[str, ...]
) -> tuple[UpdateRequest, Json | None]:
    """Return what a modify request does to what runs: an update, or the change of the package that
    its metadata ask for.

    :param old: the package that the instance runs from.
    :param new: the one that the request names.
    :raises PackageError: the request or the record is wrong.
    """
    change = change_by_modify.requested_change(request.get("vnfdId"), request.get("metadata"))
    return request_of(instance, old, new, config_paths), change


def _updated(request: UpdateRequest, instance: Json) -> tuple[str, Records]:
    """Update configuration and images; return how that ended, and what to record."""
    from container_update.engine.goals.update import update  # noqa: PLC0415 (heavy)

    with cluster_of(instance, packages=2) as (cluster, options):
        outcome = update(request, cluster, options)
    return v2_memory.after_success(outcome), Records.of_update(outcome)


def _changed(change: Json, request: UpdateRequest, instance: Json) -> tuple[str, Records]:
    """Change the package by a strategy; return how that ended, and what to record."""
    shown = {name: value for name, value in instance.items() if name != "vimConnectionInfo"}
    connection = vim.kubernetes_vim(instance.get("vimConnectionInfo") or {})
    with cluster_of(instance, packages=2) as (cluster, options):
        changed = change_by_modify.run(
            change, request, cluster, connection, options, instance=shown
        )
    records = replace(changed.records, vnfd_id=None, named_by_pods=True)
    return v2_memory.after_success(changed.outcome), records


def request_of(
    instance: Json, old: str, new: str, config_paths: tuple[str, ...] = ()
) -> UpdateRequest:
    """Return the update of an instance from the package at *old* to the one at *new*.

    :raises PackageError: the instance was not created from def-files, but from a Helm chart.
    """
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    def_files = tuple(metadata.get(DEF_FILES) or ())
    if not def_files:
        raise PackageError(
            f"VNF instance {instance['id']}: expected {DEF_FILES} in the metadata of its"
            " instantiatedVnfInfo, found none. Only an instance made from such files can be moved"
            " to another package: use change_vnfpkg, or instantiate it again with them",
            next_step=NextStep.FIX_TARGET,
        )
    return UpdateRequest(
        old=old,
        new=new,
        def_files=def_files,
        config_paths=config_paths,
        namespace=metadata.get("namespace") or "default",
        one_namespace=True,
        instance_id=instance["id"],
    )


@contextlib.contextmanager
def cluster_of(instance: Json, *, packages: int = 0) -> Iterator[tuple[Cluster, Options]]:
    """Connect to the cluster of an instance for a ``with`` block; yield it and the options.

    :param packages: how many will be read: so many processes that parse VNFDs are started.
    :raises PackageError: the record of the VIM is of no cluster.
    :raises ClusterError: its access data is incomplete or refused.
    """
    connection = vim.kubernetes_vim(instance.get("vimConnectionInfo") or {})
    options = read_options(os.environ.get(CONFIG_VARIABLE))
    if packages:
        from container_update.package.tosca import process  # noqa: PLC0415 (heavy)

        process.start(packages, options)
    cluster = vim.connect_to(connection, options)
    with contextlib.closing(cluster):
        yield cluster, options


def with_live_pods(instance: Json, cluster: Cluster) -> Json:
    """Return a VnfInstance whose VNFCs are the live pods of its recorded workloads.

    No package is needed for that: Tacker keeps the manifest of each VDU's workload in the instance
    (``vdu_reses``). An instance without recorded workloads stays as it is.

    :raises ClusterError: the API server cannot be read.
    """
    from container_update.cluster.informer import Informer  # noqa: PLC0415 (heavy)
    from container_update.cluster.scope import Scope  # noqa: PLC0415 (heavy)
    from container_update.planning.update import collections  # noqa: PLC0415 (heavy)

    recorded = recorded_workloads(instance)
    if not recorded:
        return instance
    keys = [manifest.key for manifest in recorded.values()]
    with Informer(cluster, Scope(keys)) as informer:
        informer.list(collections(keys))
        names = renames.live_names(informer.live)
        manifests = [renames.with_live_name(manifest, names) for manifest in recorded.values()]
        vdus = {vdu: manifest.key.name for vdu, manifest in recorded.items()}
        vnfcs = ownership.vnfcs(vdus, manifests, informer.live)
    return Records(vnfcs=vnfcs, named_by_pods=True).applied(instance)


def recorded_workloads(instance: Json) -> dict[str, Manifest]:
    """Return the recorded manifest of each VDU's workload, in the instance's namespace."""
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    namespace = metadata.get("namespace") or "default"
    return {
        vdu: Manifest(
            replace(ObjectKey.of(body), namespace=namespace), body, Source(f"{VDU_RESES}.{vdu}", 1)
        )
        for vdu, body in (metadata.get(VDU_RESES) or {}).items()
    }


def read_options(path: str | None) -> Options:
    """Return the options of a configuration file; None: the defaults."""
    if not path:
        return Options().for_vnfm()
    from oslo_config import cfg  # noqa: PLC0415 (only for operators who set options)

    conf = cfg.ConfigOpts()
    try:
        conf(args=[], default_config_files=[path])
        return Options.from_conf(conf).for_vnfm()
    except (cfg.Error, ValueError) as error:
        raise PackageError(
            f"{CONFIG_VARIABLE}={path}: {error}: correct this file", next_step=NextStep.FIX_TARGET
        ) from error
