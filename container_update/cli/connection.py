# SPDX-License-Identifier: Apache-2.0
"""The packages and the cluster of a command: its arguments, and the connection."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from container_update.cli.arguments import option_arguments
from container_update.cli.arguments.parser import hide
from container_update.cli.terminal import advice, output
from container_update.model.errors import PackageError
from container_update.reports.lines import Header

PACKAGE = "a folder, YAML file, CSAR, kustomization, chart, URL, oci://HOST/NAME:TAG, or - for \
standard input"
"""What an argument for a package may be."""
_ADDRESSED_BY = ("kubeconfig", "context", "namespace", "instance_id")
"""The arguments that a command to be typed next needs too."""

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster


def add_package_arguments(
    command: argparse.ArgumentParser, *, saved: bool = False, recorded: bool = True
) -> None:
    """Add the old package, the new one, and the files of the old one that the instance has.

    :param saved: one file with a saved plan may stand for both.
    :param recorded: a record may stand for the old one.
    """
    add = command.add_argument
    if recorded:  # a single one is the new one
        or_plan = "; or one file of 'plan --out'" if saved else ""
        add("old", metavar="[OLD] NEW", help="the current package (default: the one on record) "
            f"and the new one, each {PACKAGE}{or_plan}")  # fmt: skip
        add("new", nargs="?", help=argparse.SUPPRESS)
    else:
        add("old", metavar="OLD", help=f"the current package: {PACKAGE}")
        add("new", metavar="NEW", help="the new package")
    hide(add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of OLD)"))  # fmt: skip


def add_cluster_arguments(
    command: argparse.ArgumentParser,
    formats: Sequence[str] = output.FORMATS,
    *,
    used: Collection[str] = option_arguments.ALL,
) -> None:
    """Add the arguments of every command that works on a VNF instance in a cluster.

    :param used: the settings that it uses.
    """
    add = command.add_argument
    add("--kubeconfig", metavar="FILE",
        help="default: $KUBECONFIG, ~/.kube/config, or the pod's"
    )  # fmt: skip
    add("--context", metavar="NAME",
        help="of the kubeconfig (default: its current context)")  # fmt: skip
    add("-n", "--namespace", metavar="NAME",
        help="the VNF's (default: that in the manifests, else that of the context or the pod)"
    )  # fmt: skip
    add("--instance-id", metavar="ID",
        help="the VNF instance ('': the one without an id)")  # fmt: skip
    command.set_defaults(family="", addressed_by=_ADDRESSED_BY)
    add_output(command, formats)
    option_arguments.add_arguments(command, used=used)


def add_all_namespaces(command: argparse.ArgumentParser) -> None:
    """Add the option for the instances of all namespaces."""
    command.add_argument("-A", "--all-namespaces", action="store_true",
        help="those of all namespaces; needs the right to list Secrets in the cluster")  # fmt: skip


def add_uninstalled(command: argparse.ArgumentParser) -> None:
    """Add the option for the instances that are gone."""
    command.add_argument("--uninstalled", action="store_true",
        help="uninstalled instances: when, by whom, why")  # fmt: skip


def add_output(command: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """Add the option for the format of the output."""
    command.add_argument("-o", "--output", metavar="FORMAT", choices=formats, default=output.TEXT,
        help=f"{', '.join(formats)} (default: %(default)s)")  # fmt: skip


def expect_packages(parsed: argparse.Namespace) -> None:
    """Start the process that parses the VNFDs, while the client of the cluster is imported.

    A single package is the new one: the old one is what the record says.
    """
    from container_update.package import csar  # noqa: PLC0415, slow to load
    from container_update.package.tosca import process  # noqa: PLC0415, slow to load

    if parsed.new is None:
        parsed.old, parsed.new = "", parsed.old
    number = sum(csar.may_have_vnfd(package) for package in (parsed.old, parsed.new) if package)
    process.start(number, option_arguments.read(parsed))


def connected_cluster(parsed: argparse.Namespace) -> KubernetesCluster:
    """Connect to the cluster that the arguments name.

    Afterwards ``parsed.namespace`` is set, for the command as for the advice after an error: the
    one that is given, or that the manifests name, or that of the context.

    :raises PackageError: the manifests name several namespaces, of which none is that one.
    """
    from container_update.cluster.client import connect  # noqa: PLC0415, slow to load

    cluster = connect(parsed.kubeconfig, parsed.context, options=option_arguments.read(parsed))
    if not parsed.namespace:
        with ExitStack() as stack:
            stack.callback(cluster.close)
            named = _namespace_of_packages(parsed, cluster.context.namespace)
            stack.pop_all()
        parsed.is_namespace_named = bool(named)
        parsed.namespace = named or cluster.context.namespace
    return cluster


def _sources(parsed: argparse.Namespace) -> list[str]:
    """Return the packages that describe what the VNF is to have, or has."""
    named = (getattr(parsed, name, None) for name in ("old", "new", "package"))
    return [each for each in named if isinstance(each, str) and each]


def _namespace_of_packages(parsed: argparse.Namespace, default: str) -> str:
    """Return the only namespace that the objects of the packages name; '': some name none."""
    if not (sources := _sources(parsed)):
        return ""
    from container_update.engine.read_packages import named_namespaces  # noqa: PLC0415

    options = option_arguments.read(parsed)
    found = sorted({space for each in sources for space in named_namespaces(each, options)})
    if not found or {"", default}.intersection(found):
        return ""
    if len(found) > 1:
        raise PackageError(
            f"the objects of {shlex.join(sources)} are in the namespaces {', '.join(found)}: "
            "name with -n the one that keeps the history of the VNF instance"
        )
    return found[0]


def instance_header(
    parsed: argparse.Namespace, cluster: KubernetesCluster, instance_id: str | None
) -> None:
    """Begin the reports about an instance: which one it is, where that was not given.

    Afterwards it is ``parsed.header``, for a report about an error too.
    """
    is_named = getattr(parsed, "is_namespace_named", False)
    remarks = {"Namespace": "named by the manifests"} if is_named else {}
    header = replace(Header.of_cluster(cluster.context, parsed.namespace), remarks=remarks)
    if instance_id and not parsed.instance_id:
        header = replace(header, target=(*header.target, ("Instance", instance_id)))
        if hasattr(parsed, "create_namespace"):
            remarks["Instance"] = "--instance-id sets another"
    parsed.header, parsed.instance_id = header, instance_id


def find_instance(
    parsed: argparse.Namespace, cluster: KubernetesCluster, *, may_be_new: bool = False
) -> str | None:
    """Return the id that is given, or else that of the only instance of the namespace.

    The empty id is given where the instance without one is meant, beside others.

    :param may_be_new: the id may be that of an instance that is not installed yet.
    :raises PlanError: the id is not known, and no package says what is meant.
    """
    from container_update.engine import instances  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    if parsed.instance_id is None:
        return instances.only_instance(cluster, parsed.namespace, options)
    parsed.is_without_id = not parsed.instance_id
    instance_id = str(parsed.instance_id) or None
    if not (may_be_new or _sources(parsed)):
        instances.refuse_unknown(cluster, parsed.namespace, instance_id, options)
    return instance_id


def with_uninstalled(
    sentence: str, parsed: argparse.Namespace, cluster: KubernetesCluster, namespace: str
) -> str:
    """Return a sentence that there is no instance, with the command that lists those that are gone
    where there are any.

    :param namespace: '': all of them.
    """
    from container_update.engine.listing import list_uninstalled  # noqa: PLC0415, slow to load
    from container_update.model.cluster import if_allowed  # noqa: PLC0415, as above

    options = option_arguments.read(parsed)
    gone, _ = if_allowed(lambda: list_uninstalled(cluster, namespace, options), ((), ()))
    return f"{sentence} {advice.uninstalled_sentence(parsed)}" if gone else sentence


@contextmanager
def connected_instance(
    parsed: argparse.Namespace,
) -> Iterator[tuple[KubernetesCluster, dict[str, Any]]]:
    """Connect to the cluster, find the instance; yield the cluster, and where the instance is."""
    with connected_cluster(parsed) as cluster:
        parsed.instance_id = find_instance(parsed, cluster)
        yield cluster, {"namespace": parsed.namespace, "instance_id": parsed.instance_id}
