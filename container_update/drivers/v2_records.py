"""What Tacker's v2 API knows about an instance, read into an update and written back after it.

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
from container_update.model.outcome import Outcome
from container_update.model.requests import DEF_FILES, UpdateRequest
from container_update.operations.vnf_records import Records

CONFIG_VARIABLE = "CONTAINER_UPDATE_CONFIG"
"""An environment variable of the conductor: an oslo.config file with a ``[container_update]``
section. Tacker's own configuration is not loaded in a script."""


def update_instance(script: Json, output: Json) -> None:
    """Move the instance to the package of the request.

    *output* gets ``vnf_instance`` once the cluster is right, and in any case what a rollback has to
    know. ContainerUpdateError where the update cannot be made; it was undone then.
    """
    from container_update.operations.update import update  # noqa: PLC0415 (heavy)

    instance = script["vnf_instance"]
    metadata = script["request"].get("metadata") or {}
    config_paths = tuple(metadata.get("configmap_secret_paths") or ())
    progress = v2_progress.from_environment()
    try:
        request = request_of(instance, script["tmp_csar_dir"], script["new_csar_dir"], config_paths)
        with cluster_of(instance) as (cluster, options):
            outcome = update(request, cluster, options, progress=progress)
    except ContainerUpdateError as error:
        v2_progress.tell_end(progress, error)
        v2_memory.remember(output, v2_memory.after_failure(error))
        raise
    v2_memory.remember(output, v2_memory.after_update(outcome.plan))
    output["vnf_instance"] = with_records(instance, outcome)


def request_of(
    instance: Json, old: str, new: str, config_paths: tuple[str, ...] = ()
) -> UpdateRequest:
    """Return the update that brings an instance from the package at *old* to the one at *new*.

    PackageError for an instance that was not made from def-files: of a Helm chart, say.
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
    """Return the cluster that an instance runs in, and the operator's options.

    PackageError or ClusterError where the VIM's record does not lead to a cluster.
    """
    connection = vim.kubernetes_vim(instance.get("vimConnectionInfo") or {})
    interface = connection.get("interfaceInfo") or {}
    options = read_options(os.environ.get(CONFIG_VARIABLE))
    cluster = vim.connect(
        interface.get("endpoint", ""),
        connection.get("accessInfo") or {},
        interface.get("ssl_ca_cert"),
        options,
    )
    try:
        yield cluster, options
    finally:
        cluster.close()


def read_options(path: str | None) -> Options:
    """Return the options in a configuration file, or their defaults where none is named."""
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


def with_records(instance: Json, outcome: Outcome) -> Json:
    """Return the instance as it is after the update: live pods, def-files, workloads' images."""
    return Records.of_update(outcome).applied(instance)
