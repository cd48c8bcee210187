# SPDX-License-Identifier: Apache-2.0
"""What Tacker's v2 API records of an instance: read for an update, written back after it.

In v2 a VNFC's id is the name of its pod.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from container_update.drivers import change_by_modify, v2_memory, vim
from container_update.drivers.change_by_modify import Modification
from container_update.model.cluster import Cluster, ReadOnlyCluster
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
from container_update.model.outcome import Vnfc
from container_update.model.requests import (
    CONFIG_PATHS,
    DEF_FILES,
    ChangePackageRequest,
    UpdateRequest,
)
from container_update.planning.comparison import live_objects
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
    try:
        request = modification_of(
            instance, script["request"], old, script.get("new_csar_dir") or old
        )
        if isinstance(
            request, ChangePackageRequest
        ):  # its parameters may hold passwords: they are not kept
            metadata = change_by_modify.without_parameters(instance.get("metadata"))
            instance = {**instance, "metadata": metadata}
        shown = {name: value for name, value in instance.items() if name != "vimConnectionInfo"}
        connection = vim.kubernetes_vim(instance.get("vimConnectionInfo") or {})
        with cluster_of(instance, packages=2) as (cluster, options):
            outcome, records = change_by_modify.carry_out(
                request, cluster, options, connection, shown
            )
    except ContainerUpdateError as error:
        v2_memory.remember(output, v2_memory.join(earlier, v2_memory.after_failure(error)))
        raise
    v2_memory.remember(output, v2_memory.join(earlier, v2_memory.after_success(outcome)))
    output["vnf_instance"] = with_records(records, instance)
    output[RESTARTED] = sorted(records.restarted)


def with_records(records: Records, instance: Json) -> Json:
    """Return the instance with these records.

    Where they have whole manifests, these get what Tacker adds and works by: its heal and its scale
    find the namespace in them, and its terminate knows by the label which Pods are its own.
    """
    namespace = (instance["instantiatedVnfInfo"].get("metadata") or {}).get("namespace")
    added = {"labels": {INSTANCE_LABEL: instance["id"]}, "namespace": namespace or "default"}
    workloads = records.workloads and {
        vdu: merge_patch(body, {"metadata": added}) for vdu, body in records.workloads.items()
    }
    return replace(records, workloads=workloads).apply_to(instance)


def modification_of(instance: Json, request: Json, old: str, new: str) -> Modification:
    """Return what a modify request does to a CNF of the package *old*; *new* is the named one.

    :raises PackageError: the request or the record is wrong.
    """
    metadata = request.get("metadata") or {}
    change = change_by_modify.requested_change(request.get("vnfdId"), metadata)
    update = request_of(instance, old, new, metadata.get(CONFIG_PATHS))
    return change_by_modify.modification(update, change)


def request_of(
    instance: Json, old: str, new: str, config_paths: Sequence[str] | None = None
) -> UpdateRequest:
    """Return the update of an instance from the package at *old* to the one at *new*.

    :raises PackageError: the instance was not created from def-files, but from a Helm chart.
    """
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    return change_by_modify.request_of(
        instance["id"],
        metadata.get(DEF_FILES),
        metadata.get("namespace"),
        old=old,
        new=new,
        config_paths=config_paths,
        place="the metadata of its instantiatedVnfInfo",
    )


@contextlib.contextmanager
def cluster_of(instance: Json, *, packages: int = 0) -> Iterator[tuple[Cluster, Options]]:
    """Connect to the cluster of an instance for a ``with`` block; yield it and the options.

    :param packages: how many will be read: a process is started that parses their VNFDs.
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


def with_live_pods(instance: Json, cluster: ReadOnlyCluster) -> Json:
    """Return a VnfInstance whose VNFCs are the live pods of its recorded workloads.

    No package is needed for that: Tacker keeps the manifest of each VDU's workload in the instance
    (``vdu_reses``). An instance without recorded workloads stays as it is.

    :raises ClusterError: the API server cannot be read.
    """
    recorded = recorded_workloads(instance)
    if not recorded:
        return instance
    vdus = {vdu: manifest.key.name for vdu, manifest in recorded.items()}
    vnfcs, _ = live_vnfcs(vdus, recorded.values(), cluster)
    return Records(vnfcs=vnfcs, named_by_pods=True).apply_to(instance)


def live_vnfcs(
    vdus: Mapping[str, str], manifests: Iterable[Manifest], cluster: ReadOnlyCluster
) -> tuple[tuple[Vnfc, ...], tuple[Manifest, ...]]:
    """Return the pods of VDUs now, and the manifests under their live names.

    :raises ClusterError: the API server cannot be read.
    """
    from container_update.cluster.informer import Informer  # noqa: PLC0415 (heavy)
    from container_update.cluster.scope import Scope  # noqa: PLC0415 (heavy)
    from container_update.planning.update import collections  # noqa: PLC0415 (heavy)

    manifests = tuple(manifests)
    keys = [manifest.key for manifest in manifests]
    with Informer(cluster, Scope(keys)) as informer:
        informer.list(collections(keys))
        names = live_objects.live_names(informer.live)
        live = tuple(replace(each, key=names.get(each.key, each.key)) for each in manifests)
        return ownership.vnfcs(vdus, live, informer.live), live


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
