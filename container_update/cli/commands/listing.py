# SPDX-License-Identifier: Apache-2.0
"""``container-update list``: the VNF instances of a namespace, or of the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.reports import listing_report
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cli.terminal.screen import Screen
from container_update.planning.plan_json import document


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    text = "list the VNF instances: package, ready pods, last operation, what is under way"
    command = add("list", _list, text)
    command.add_argument("-A", "--all-namespaces", action="store_true",
        help="those of all namespaces; the account lists Secrets of the whole cluster")  # fmt: skip
    formats, reading = (output.TEXT, output.JSON), option_arguments.READING
    connection.add_cluster_arguments(command, formats, shown=(), used=reading)


def _list(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the instances; return the exit status."""
    from container_update.engine.listing import list_instances  # noqa: PLC0415, slow to load

    with connection.connected_cluster(parsed) as cluster:
        namespace = "" if parsed.all_namespaces else parsed.namespace
        found = list_instances(cluster, namespace, option_arguments.read(parsed))
    if parsed.instance_id is not None:
        found = tuple(each for each in found if each.instance_id == (parsed.instance_id or None))
    if parsed.output == output.JSON:
        body = {"instances": [each.as_dict() for each in found]}
        output.write_document(document("Instances", body), parsed, out)
    elif found:
        Screen(out).show(listing_report.instance_lines(found))
    else:
        where = f"namespace {namespace}" if namespace else "the cluster"
        out.write(f"No VNF instance is known in {where}.\n")
    return DONE
