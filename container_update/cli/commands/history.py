"""``container-update history``, ``show``, ``diff`` and ``undo``: operations that have ended."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.reports import history_report
from container_update.cli.reports.lines import Line
from container_update.cli.terminal import output, signals
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import PlanError

if TYPE_CHECKING:
    from container_update.cluster.history.revision import Revision

FORMATS = (output.TEXT, output.JSON, output.YAML)


def add_history_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``history``."""
    connection.add_cluster_arguments(command, FORMATS)


def add_show_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``show`` and ``diff``."""
    command.add_argument("revision", metavar="REV", type=int, nargs="?",
        help="its number, as 'history' lists it (default: the newest)")  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command, FORMATS)


def add_undo_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``undo``."""
    command.add_argument("revision", metavar="REV", type=int, nargs="?",
        help="the first update to undo, all after it are undone too (default: the newest that has "
        "not been undone)")  # fmt: skip
    command.add_argument(
        "--plan", action="store_true", help="show what this would do; write nothing"
    )
    output.add_plan_arguments(command)
    output.add_approval_arguments(command)
    output.add_progress_arguments(command)
    connection.add_cluster_arguments(command)


def history(parsed: argparse.Namespace, out: TextIO) -> int:
    """List the operations that have ended; return the exit status."""
    revisions = _revisions(parsed)
    if not revisions and parsed.output == output.TEXT:
        out.write(f"{history_report.NOTHING_KEPT}\n")
    else:
        lines = history_report.history_lines(revisions)
        _write(parsed, out, lines, history_report.history_dict(revisions))
    return DONE if revisions else NOTHING_TO_DO


def show(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show one operation that has ended; return the exit status."""
    return _one(
        parsed, out, lambda each: history_report.revision_lines(each, every=parsed.all)
    )  # fmt: skip


def diff(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what one operation changed in the configuration; return the exit status."""
    return _one(parsed, out, history_report.diff_of_revision)


def undo(parsed: argparse.Namespace, out: TextIO) -> int:
    """Undo finished updates; return the exit status."""
    from container_update.operations import history as operations  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with connection.connected_cluster(parsed) as cluster:
        header = connection.cluster_header(parsed, cluster)
        which: dict[str, Any] = {
            "revision": parsed.revision,
            "namespace": parsed.namespace,
            "instance_id": parsed.instance_id,
        }
        if parsed.plan:
            plan = operations.plan_undo(cluster, options, **which)
            if plan is not None:
                return output.show_plan(plan, header, parsed, out)
            return output.write_nothing(history_report.NOTHING_TO_UNDO, parsed, out)
        with (
            output.progress(header, parsed, out) as progress,
            signals.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
        ):
            outcome = operations.undo(cluster, options, cancel, progress, **which)
    if outcome is None:
        return output.write_nothing(history_report.NOTHING_TO_UNDO, parsed, out)
    output.show_outcome(outcome, parsed, out)
    return DONE if outcome.results else NOTHING_TO_DO


def _one(
    parsed: argparse.Namespace, out: TextIO, lines_of: Callable[[Revision], Iterable[Line]]
) -> int:
    revisions = _revisions(parsed)
    if not revisions:
        return output.write_nothing(history_report.NOTHING_KEPT, parsed, out)
    number = parsed.revision or revisions[0].number
    for each in revisions:
        if each.number == number:
            _write(parsed, out, lines_of(each), history_report.revision_dict(each))
            return DONE
    known = ", ".join(str(each.number) for each in reversed(revisions))
    raise PlanError(
        f"revision {number}: expected one that is kept in namespace {parsed.namespace} ({known}), "
        "found none of this number"
    )


def _revisions(parsed: argparse.Namespace) -> tuple[Revision, ...]:
    from container_update.operations import history as operations  # noqa: PLC0415, slow to load

    with connection.connected_cluster(parsed) as cluster:
        return operations.history(
            cluster,
            option_arguments.read(parsed),
            namespace=parsed.namespace,
            instance_id=parsed.instance_id,
        )


def _write(
    parsed: argparse.Namespace, out: TextIO, lines: Iterable[Line], document: dict[str, Any]
) -> None:
    if parsed.output == output.JSON:
        out.write(json.dumps(document, indent=2) + "\n")
    elif parsed.output == output.YAML:
        out.write(output.as_yaml(document) + "\n")
    else:
        Screen(out).show(lines)
