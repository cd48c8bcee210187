"""``container-update history``, ``show``, ``diff`` and ``undo``: operations that have ended."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.reports import history_report
from container_update.cli.reports.lines import Line
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import PlanError

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.cluster.history.revision import Revision
    from container_update.operations.goal import Goal

FORMATS = (output.TEXT, output.JSON)


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
    operate.add_arguments(command)


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

    def goal_of(cluster: KubernetesCluster, instance_id: str | None) -> Goal:
        request = {**_request_of(parsed), "instanceId": instance_id}
        return undo_goal(request, parsed, cluster)

    if parsed.plan:
        return operate.show(parsed, out, goal_of, lambda: _request_of(parsed))
    return operate.carry_out(parsed, out, goal_of)


def _request_of(parsed: argparse.Namespace) -> dict[str, Any]:
    """Return what the arguments ask for, as values that a saved plan keeps."""
    return {
        "verb": "undo",
        "revision": parsed.revision,
        "defFiles": [],
        "namespace": parsed.namespace,
        "instanceId": parsed.instance_id,
    }


def undo_goal(
    request: Mapping[str, Any], parsed: argparse.Namespace, cluster: KubernetesCluster
) -> Goal:
    """Return the goal of a way back."""
    from container_update.operations.history import GoBack  # noqa: PLC0415, slow to load

    where = (request["namespace"], request["instanceId"])
    return GoBack(cluster, option_arguments.read(parsed), request["revision"], *where)


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
        parsed.instance_id = connection.find_instance(parsed, cluster)
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
        out.write(output.as_json(document) + "\n")
    else:
        Screen(out).show(lines)
