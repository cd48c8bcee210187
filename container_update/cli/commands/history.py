# SPDX-License-Identifier: Apache-2.0
"""``container-update history`` and ``undo``: operations that have ended."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.reports import history_report
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import PlanError
from container_update.model.requests import UndoRequest

if TYPE_CHECKING:
    from container_update.cluster.history.revision import Revision


def add_history_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``history``."""
    add = command.add_argument
    add("revision", metavar="REV", type=int, nargs="?",
        help="show this one, by its number in the list")  # fmt: skip
    add("--last", action="store_true", help="show the newest one")
    add("--diff", action="store_true",
        help="show the images and the lines of ConfigMaps that it changed")  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command, shown=(), used=option_arguments.READING)


def add_undo_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``undo``."""
    command.add_argument("revision", metavar="REV", type=int, nargs="?",
        help="the first update to undo, all after it are undone too (default: the newest that has "
        "not been undone)")  # fmt: skip
    command.add_argument("--package", metavar="PACKAGE", action="append", default=[],
        help="a package of a change of the package that is undone (repeatable): both are needed "
        "where it has coordination scripts")  # fmt: skip
    operate.add_arguments(command)


def history(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the operations that have ended, or show one; return the exit status."""
    from container_update.engine.goals import go_back as operations  # noqa: PLC0415, slow to load

    with connection.connected_instance(parsed) as (cluster, where):
        revisions = operations.history(cluster, option_arguments.read(parsed), **where)
    is_one = parsed.revision is not None or parsed.last or parsed.diff
    if not revisions and (is_one or parsed.output != output.JSON):
        return output.write_nothing(history_report.NOTHING_KEPT, parsed, out)
    if is_one:
        one = _chosen(parsed, revisions)
        every = history_report.revision_lines(one, every=parsed.all)
        lines = history_report.diff_of_revision(one) if parsed.diff else every
        document, page = history_report.revision_dict(one), history_report.revision_markdown(one)
    else:
        lines = history_report.history_lines(revisions)
        document = history_report.history_dict(revisions)
        page = history_report.history_markdown(revisions)
    if parsed.output == output.JSON:
        out.write(output.as_json(document) + "\n")
    elif parsed.output == output.MARKDOWN:
        out.write(page + "\n")
    else:
        Screen(out).show(lines)
    return DONE if revisions else NOTHING_TO_DO


def undo(parsed: argparse.Namespace, out: TextIO) -> int:
    """Undo finished updates; return the exit status."""

    def request() -> UndoRequest:
        packages = tuple(parsed.package)
        return UndoRequest(parsed.revision, packages, parsed.namespace, parsed.instance_id)

    return (operate.show if parsed.plan else operate.carry_out)(parsed, out, request)


def _chosen(parsed: argparse.Namespace, revisions: Sequence[Revision]) -> Revision:
    if parsed.revision is None:
        return revisions[0]
    for each in revisions:
        if each.number == parsed.revision:
            return each
    known = ", ".join(str(each.number) for each in reversed(revisions))
    raise PlanError(
        f"revision {parsed.revision}: expected one that is kept in namespace {parsed.namespace} "
        f"({known}), found none of this number"
    )
