# SPDX-License-Identifier: Apache-2.0
"""``container-update status``, ``resume`` and ``rollback``: an operation that was interrupted."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.commands import watch
from container_update.cli.reports import json_report, status_report
from container_update.cli.terminal import output, signals
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.model.cancellation import CancelToken
from container_update.model.operation import Status
from container_update.model.outcome import Outcome, Progress

if TYPE_CHECKING:
    from container_update.engine.instances import WorkloadState


def status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show an operation that is running or was interrupted; return the exit status."""
    if parsed.watch:
        return watch.run(parsed, out)
    from container_update.engine import instances  # noqa: PLC0415, slow to load
    from container_update.engine import recover as recovery  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    states: Sequence[WorkloadState] = ()
    with connection.connected_instance(parsed) as (cluster, where):
        found = recovery.status(cluster, options, **where)
        if not (found.record or found.holder):
            states = instances.workloads(cluster, **where, options=options)
    return show_status(found, states, parsed, out)


def show_status(
    current: Status, states: Sequence[WorkloadState], parsed: argparse.Namespace, out: TextIO
) -> int:
    """Write what is under way, and how the workloads are where nothing is; return the exit
    status."""
    if parsed.output == output.JSON:
        found = [state.as_dict() for state in states]
        body = json_report.document("Status", {**current.as_dict(), "workloads": found})
        out.write(output.as_json(body) + "\n")
    else:
        out.write(f"{current}\n")
        if states:
            Screen(out).show(status_report.workload_lines(states, datetime.now(timezone.utc)))
    return DONE if current.record or current.holder else NOTHING_TO_DO


STATUS_FORMATS = (output.TEXT, output.JSON)


def add_status_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``status``."""
    command.add_argument("--watch", action="store_true",
        help="follow an operation that runs until it has ended; write nothing")  # fmt: skip
    output.add_plan_arguments(command)
    output.add_progress_arguments(command)
    reading = option_arguments.READING
    connection.add_cluster_arguments(command, STATUS_FORMATS, shown=(), used=reading)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the journal is not believed."""
    command.add_argument("packages", metavar="PACKAGE", nargs="*",
        help="the packages of the operation: needed where it is about other namespaces, "
        "objects in no namespace or RBAC, or runs scripts")  # fmt: skip
    output.add_approval_arguments(command)
    connection.add_cluster_arguments(command)


def run(verb: str, parsed: argparse.Namespace, out: TextIO) -> int:
    """End the operation that is under way; return the exit status.

    :param verb: how: ``resume``, ``rollback``, ``promote`` or ``abort``.
    """
    from container_update.engine import recover as recovery  # noqa: PLC0415, slow to load

    def end(cancel: CancelToken, progress: Progress) -> Outcome | None:
        way: recovery.Verb = getattr(recovery, verb)
        options = option_arguments.read(parsed)
        with connection.connected_instance(parsed) as (cluster, where):
            operate.ask_about_others(parsed, out, cluster, parsed.instance_id)
            return way(cluster, options, cancel, progress, **where, packages=parsed.packages)

    return recovered(end, parsed, out)


def recovered(
    recover: Callable[[CancelToken, Progress], Outcome | None],
    parsed: argparse.Namespace,
    out: TextIO,
) -> int:
    """End what was interrupted and show what became of it; return the exit status."""
    began = time.monotonic()
    with output.progress(parsed, out) as progress, signals.stopped_by_signals(leave=True) as cancel:
        outcome = recover(cancel, progress)
    if outcome is None:
        return output.write_nothing(output.NOTHING_INTERRUPTED, parsed, out)
    output.show_outcome(replace(outcome, seconds=time.monotonic() - began), parsed, out)
    return DONE
