# SPDX-License-Identifier: Apache-2.0
"""``container-update list``: the VNF instances of a namespace, or of the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cli.terminal.screen import Screen
from container_update.planning.plan_json import document
from container_update.reports import listing_report


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    text = "list the VNF instances: package, state, operation under way"
    command = add("list", _list, text)
    connection.add_all_namespaces(command)
    connection.add_uninstalled(command)
    connection.add_cluster_arguments(command, output.DOCUMENTS, used=option_arguments.READING)


def _list(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the instances; return the exit status."""
    from container_update.engine.listing import (  # noqa: PLC0415, slow to load
        list_instances,
        list_uninstalled,
    )

    with connection.connected_cluster(parsed) as cluster:
        namespace = "" if parsed.all_namespaces else parsed.namespace
        options = option_arguments.read(parsed)
        if parsed.uninstalled:
            found, _ = list_uninstalled(cluster, namespace, options)
        else:
            found = list_instances(cluster, namespace, options)
        where = f"namespace {namespace}" if namespace else "the cluster"
        what = "was uninstalled" if parsed.uninstalled else "is known"
        nothing = f"No VNF instance {what} in {where}."
        if not (found or parsed.uninstalled):
            nothing = connection.with_uninstalled(nothing, parsed, cluster, namespace)
    if parsed.instance_id is not None:
        found = tuple(each for each in found if each.instance_id == (parsed.instance_id or None))
    if output.is_document(parsed):
        body = {"instances": [each.as_dict() for each in found]}
        output.write_document(document("Instances", body), parsed, out)
    elif found:
        Screen(out).show(listing_report.instance_lines(found, datetime.now(timezone.utc)))
    else:
        out.write(f"{nothing}\n")
    return DONE
