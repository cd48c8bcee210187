# SPDX-License-Identifier: Apache-2.0
"""``container-update history``: operations that have ended."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.arguments.parser import UsageError
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.cluster.operation import Revision
from container_update.model.errors import PlanError
from container_update.reports import history_report
from container_update.reports.history_report import Kept
from container_update.reports.lines import Line


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    text = "list the operations that have ended, or show one"
    long = "List the operations that have ended; show one of them, or what it changed"
    command = add("history", _history, text, long)
    command.add_argument("revision", metavar="REV", type=int, nargs="?",
        help="show this one, by its number in the list")  # fmt: skip
    connection.add_all_namespaces(command)
    connection.add_uninstalled(command)
    command.add_argument("--last", action="store_true", help="show the newest one")
    command.add_argument("--diff", action="store_true",
        help="show the images and the lines of ConfigMaps that it changed")  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command, used=option_arguments.READING)


def _history(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the operations that have ended, or show one; return the exit status."""
    if parsed.all_namespaces or parsed.uninstalled:
        return _several(parsed, out)
    from container_update.engine.goals import go_back as operations  # noqa: PLC0415, slow to load

    with connection.connected_instance(parsed) as (cluster, where):
        options = option_arguments.read(parsed)
        revisions = operations.history(cluster, options, **where)
        nothing = ""
        if not revisions:
            nothing = connection.with_uninstalled(
                history_report.NOTHING_KEPT, parsed, cluster, parsed.namespace
            )
    is_one = _is_one(parsed)
    if not revisions and (is_one or not output.is_document(parsed)):
        return output.write_nothing(nothing, parsed, out)
    if not is_one:
        found = [(parsed.namespace, parsed.instance_id, each) for each in revisions]
        return _list(found, parsed, out)
    one = _find_revision(parsed, revisions)
    every = history_report.revision_lines(one, every=parsed.all)
    lines = history_report.diff_of_revision(one) if parsed.diff else every
    document, page = history_report.revision_dict(one), history_report.revision_markdown(one)
    _write(lines, document, page, parsed, out)
    return DONE


def _several(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the operations of several instances, of all namespaces, or of those that are gone."""
    from container_update.engine.listing import (  # noqa: PLC0415, slow to load
        list_histories,
        list_uninstalled,
    )

    if _is_one(parsed):
        raise UsageError(
            "-A and --uninstalled list operations: to show one of an instance that is there, name "
            "its namespace with -n"
        )
    with connection.connected_cluster(parsed) as cluster:
        namespace = "" if parsed.all_namespaces else parsed.namespace
        where = cluster, namespace, option_arguments.read(parsed)
        found = list_uninstalled(*where)[1] if parsed.uninstalled else list_histories(*where)
    if parsed.instance_id is not None:
        found = tuple(each for each in found if each[1] == (parsed.instance_id or None))
    if not found and not output.is_document(parsed):
        return output.write_nothing("The history has no operation.", parsed, out)
    return _list(found, parsed, out, of_several=True)


def _list(
    found: Sequence[Kept], parsed: argparse.Namespace, out: TextIO, *, of_several: bool = False
) -> int:
    lines = history_report.history_lines(found, of_several=of_several)
    document = history_report.history_dict(found, of_several=of_several)
    page = history_report.history_markdown(found, of_several=of_several)
    _write(lines, document, page, parsed, out)
    return DONE if found else NOTHING_TO_DO


def _is_one(parsed: argparse.Namespace) -> bool:
    return parsed.revision is not None or parsed.last or parsed.diff


def _write(
    lines: Iterable[Line],
    document: object,
    page: str,
    parsed: argparse.Namespace,
    out: TextIO,
) -> None:
    """Write the result in the format that is asked for."""
    if output.is_document(parsed):
        output.write_document(document, parsed, out)
    elif parsed.output == output.MARKDOWN:
        out.write(page + "\n")
    else:
        Screen(out).show(lines)


def _find_revision(parsed: argparse.Namespace, revisions: Sequence[Revision]) -> Revision:
    if parsed.revision is None:
        return revisions[0]
    for each in revisions:
        if each.number == parsed.revision:
            return each
    known = ", ".join(str(each.number) for each in reversed(revisions))
    raise PlanError(
        f"revision {parsed.revision}: the history in namespace {parsed.namespace} does not have "
        f"it: choose one of {known}"
    )
