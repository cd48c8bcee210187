"""Which cluster or which Heat stack a command works on: its arguments, and the connection."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from container_update.cli import option_arguments, output
from container_update.model.errors import ClusterError
from container_update.model.options import Options

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.operations.strategies.kubernetes import KubernetesSite
    from container_update.operations.strategies.openstack import OpenStackSite
    from container_update.stacks.client import Heat


def add_cluster_arguments(
    command: argparse.ArgumentParser, formats: Sequence[str] = output.FORMATS
) -> None:
    """Add the arguments of every command that works on a VNF instance.

    :param formats: what ``-o`` accepts.
    """
    add = command.add_argument
    add("--kubeconfig", help="default: $KUBECONFIG, ~/.kube/config, else in-cluster")
    add("--context", help="of the kubeconfig")
    add("-n", "--namespace", default="default", help="for manifests that name none")
    add("--instance-id", help="the VNF instance; another one's objects are refused")
    add("-o", "--output", choices=formats, default=output.TEXT)
    add("--leave-on-signal", action="store_true",
        help="on SIGINT or SIGTERM leave the update for a resume, do not undo it")  # fmt: skip
    option_arguments.add_arguments(command)


def add_stack_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments for a VNF that is a Heat stack."""
    add = command.add_argument
    add("--stack", metavar="NAME",
        help="the VNF is this stack of an OpenStack cloud, by name or by NAME/ID")  # fmt: skip
    add("--os-cloud", metavar="CLOUD",
        help="its cloud in clouds.yaml; default: $OS_CLOUD, else other OS_* variables")  # fmt: skip


@contextmanager
def connected_cluster(parsed: argparse.Namespace) -> Iterator[KubernetesCluster]:
    """Connect to the cluster that the arguments name."""
    from container_update.cluster.client import connect  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with connect(parsed.kubeconfig, parsed.context, options=options) as cluster:
        yield cluster


def kubernetes_site(parsed: argparse.Namespace, cluster: KubernetesCluster) -> KubernetesSite:
    """Return the namespace of the cluster that the arguments name."""
    from container_update.operations.strategies.kubernetes import KubernetesSite  # noqa: PLC0415

    access = {"context": parsed.context} if parsed.context else {}
    default = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0] or "~/.kube/config"
    kubeconfig = Path(parsed.kubeconfig or default).expanduser().absolute()
    if kubeconfig.exists():
        access["kubeconfig"] = str(kubeconfig)
    def_files = tuple(getattr(parsed, "def_file", ()))
    return KubernetesSite(cluster, parsed.namespace, def_files, access)


@contextmanager
def connected_heat(parsed: argparse.Namespace, options: Options) -> Iterator[Heat]:
    """Connect to the OpenStack cloud that the arguments name."""
    try:
        from container_update.stacks.client import connect  # noqa: PLC0415, an extra
    except ImportError as error:
        raise ClusterError(
            f"--stack: {error}: install it with pip install 'container-update[openstack]'"
        ) from error
    with connect(parsed.os_cloud, options=options) as heat:
        yield heat


def openstack_site(parsed: argparse.Namespace, heat: Heat) -> OpenStackSite:
    """Return the stack that the arguments name."""
    from container_update.operations.strategies.openstack import OpenStackSite  # noqa: PLC0415

    return OpenStackSite(heat, parsed.stack, getattr(parsed, "flavour_id", None))
