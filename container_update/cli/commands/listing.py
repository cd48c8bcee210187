# SPDX-License-Identifier: Apache-2.0
"""``container-update list``: the VNF instances of a namespace, or of the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cli.terminal.screen import Screen
from container_update.model.times import moment
from container_update.planning.comparison.diff import printable
from container_update.planning.plan_json import document
from container_update.reports import lines
from container_update.reports.lines import Line

if TYPE_CHECKING:
    from container_update.engine.listing import InstanceState


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
        Screen(out).show(_instance_lines(found, datetime.now(timezone.utc)))
    else:
        out.write(f"{nothing}\n")
    return DONE


# --- the table ----------------------------------------------------------------------------------

_COLUMNS = (
    "NAMESPACE",
    "INSTANCE",
    "PACKAGE",
    "STATE",
    "READY",
    "AGE",
    "LAST OPERATION",
    "ENDED (UTC)",
    "UNDER WAY",
)


def _instance_lines(instances: Sequence[InstanceState], now: datetime) -> Iterator[Line]:
    """Yield a table of the instances at a time in UTC; those that are not ready stand out."""
    texts = lines.align([_COLUMNS, *(_cells(each, now) for each in instances)])
    for text, each in zip(texts, (None, *instances), strict=True):
        style = lines.PLAIN if each and each.state == "ready" else lines.BAD
        yield Line.of((text, style if each else lines.HEADING), is_content=True)


def _cells(each: InstanceState, now: datetime) -> tuple[str, ...]:
    last = each.last
    cells = (
        each.namespace,
        each.instance_id or "-",
        each.package or "-",
        each.state,
        f"{each.ready}/{each.desired}",
        lines.age(each.created, now),
        f"{last.origin.title}: {last.result.value}" if last else "-",
        moment(last.ended) if last else "-",
        each.under_way,
    )
    return tuple(map(printable, cells))
