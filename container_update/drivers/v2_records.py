"""What Tacker's v2 API records of an instance: read for an update, written back after it.

In v2 a VNFC's id is the name of its pod.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from container_update.drivers import v2_memory, v2_progress, vim
from container_update.model.cluster import Cluster
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.requests import CONFIG_PATHS, DEF_FILES, UpdateRequest
from container_update.operations.vnf_records import Records

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
    from container_update.operations.update import update  # noqa: PLC0415 (heavy)

    instance = script["vnf_instance"]
    metadata = script["request"].get("metadata") or {}
    config_paths = tuple(metadata.get(CONFIG_PATHS) or ())
    old = script["tmp_csar_dir"]
    progress = v2_progress.from_environment()
    try:
        request = request_of(instance, old, script.get("new_csar_dir") or old, config_paths)
        with cluster_of(instance) as (cluster, options):
            outcome = update(request, cluster, options, progress=progress)
    except ContainerUpdateError as error:
        v2_progress.report_end(progress, error)
        v2_memory.remember(output, v2_memory.after_failure(error))
        raise
    v2_memory.remember(output, v2_memory.after_update(outcome.plan))
    records = Records.of_update(outcome)
    output["vnf_instance"] = records.applied(instance)
    output[RESTARTED] = sorted(records.restarted)


def request_of(
    instance: Json, old: str, new: str, config_paths: tuple[str, ...] = ()
) -> UpdateRequest:
    """Return the update of an instance from the package at *old* to the one at *new*.

    :raises PackageError: the instance was not created from def-files, but from a Helm chart.
    """
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    def_files = metadata.get(DEF_FILES)
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
        def_files=tuple(def_files),
        config_paths=config_paths,
        namespace=metadata.get("namespace") or "default",
        one_namespace=True,
        instance_id=instance["id"],
    )


@contextlib.contextmanager
def cluster_of(instance: Json) -> Iterator[tuple[Cluster, Options]]:
    """Connect to the cluster of an instance for a ``with`` block; yield it and the options.

    :raises PackageError: the record of the VIM is of no cluster.
    :raises ClusterError: its access data is incomplete or refused.
    """
    connection = vim.kubernetes_vim(instance.get("vimConnectionInfo") or {})
    interface = connection.get("interfaceInfo") or {}
    options = read_options(os.environ.get(CONFIG_VARIABLE))
    endpoint, access = interface.get("endpoint", ""), connection.get("accessInfo") or {}
    cluster = vim.connect(endpoint, access, interface.get("ssl_ca_cert"), options)
    with contextlib.closing(cluster):
        yield cluster, options


def read_options(path: str | None) -> Options:
    """Return the options of a configuration file; None: the defaults."""
    if not path:
        return Options()
    from oslo_config import cfg  # noqa: PLC0415 (only for operators who set options)

    conf = cfg.ConfigOpts()
    try:
        conf(args=[], default_config_files=[path])
        return Options.from_conf(conf)
    except (cfg.Error, ValueError) as error:
        raise PackageError(
            f"{CONFIG_VARIABLE}={path}: {error}: correct this file", next_step=NextStep.FIX_TARGET
        ) from error
