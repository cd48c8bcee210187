# SPDX-License-Identifier: Apache-2.0
"""``status``, ``resume``, ``rollback``, ``promote``, ``abort``: what is under way, or stopped."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import advice, approval, output
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.cli.terminal.screen import Screen
from container_update.cluster.operation import Result, Revision
from container_update.model.cancellation import CancelToken
from container_update.model.errors import UpdateFailedError
from container_update.model.operation import Status
from container_update.model.outcome import Outcome, Progress, StepState
from container_update.planning.plan_json import document
from container_update.planning.summary import count_noun
from container_update.reports import history_report, outcome_report
from container_update.reports.lines import Header

if TYPE_CHECKING:
    from container_update.engine.instances import WorkloadState


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; see :mod:`container_update.cli.commands.update`."""
    text = "show the operation under way, and the workloads"
    long = "Show the operation under way, the last one if it was undone, and the workloads"
    command = add("status", _status, text, long)
    command.add_argument("--watch", action="store_true",
        help="follow an operation that runs until it has ended; write nothing")  # fmt: skip
    output.add_plan_arguments(command)
    output.add_progress_arguments(command)
    connection.add_cluster_arguments(command, output.DOCUMENTS, used=option_arguments.READING)
    for verb, text in (
        ("resume", "finish an operation that was interrupted"),
        ("rollback", "undo an operation that was interrupted"),
        ("promote", "continue a change that waits for a person"),
        ("abort", "undo a change that waits for a person"),
    ):
        command = add(verb, partial(run, verb), text)
        command.add_argument("packages", metavar="PACKAGE", nargs="*",
            help="the packages of the operation: needed if it writes to other namespaces, RBAC "
            "or cluster-scoped objects, or runs scripts")  # fmt: skip
        operate.add_message_argument(command)
        output.add_approval_arguments(command)
        output.add_detailed_exitcode(command)
        connection.add_cluster_arguments(command)


def _status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show an operation that is running or was interrupted; return the exit status."""
    if parsed.watch:
        return _watch(parsed, out)
    from container_update.engine import instances  # noqa: PLC0415, slow to load
    from container_update.engine import resume as recovery  # noqa: PLC0415, slow to load
    from container_update.engine.goals import go_back  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    states: Sequence[WorkloadState] = ()
    remark, last = "", None
    with connection.connected_instance(parsed) as (cluster, where):
        current = recovery.status(cluster, options, **where)
        if not (current.record or current.holder):
            states = instances.workloads(cluster, **where, options=options)
            last = next(iter(go_back.history(cluster, options, **where)), None)
            if not states:
                remark = instances.no_instance(cluster, parsed.namespace, options)
            if remark:
                remark = connection.with_uninstalled(remark, parsed, cluster, parsed.namespace)
    return show_status(current, states, parsed, out, remark, last)


def show_status(  # noqa: PLR0913, PLR0917
    current: Status,
    states: Sequence[WorkloadState],
    parsed: argparse.Namespace,
    out: TextIO,
    remark: str = "",
    last: Revision | None = None,
) -> int:
    """Write the operation under way, or else how the last one ended if it was undone, and the state
    of the workloads; return the exit status."""
    if output.is_document(parsed):
        workloads = [state.as_dict() for state in states]
        ended = last and history_report.revision_summary(last)
        body = {**current.as_dict(), "lastOperation": ended, "workloads": workloads}
        output.write_document(document("Status", body), parsed, out)
    else:
        told = "" if remark and current == Status(None) else str(current)
        step = current.next_step
        command = f"{advice.next_sentence(step, parsed)}." if step else ""
        undone: Sequence[str] = ()
        if last is not None and last.result is Result.UNDONE:
            details = advice.revision_command("history", last.number, parsed)
            undone = history_report.undone_text(last), f"What it did: {details}"
        out.write("\n".join(filter(None, [told, remark, command, *undone])) + "\n")
        if states:
            Screen(out).show(outcome_report.workload_lines(states, datetime.now(timezone.utc)))
    return DONE if current.record or current.holder else NOTHING_TO_DO


def run(verb: str, parsed: argparse.Namespace, out: TextIO) -> int:
    """End the operation under way by ``resume``, ``rollback``, ``promote`` or ``abort``."""
    from container_update.engine import resume as recovery  # noqa: PLC0415, slow to load
    from container_update.engine.goals.of_request import for_charts  # noqa: PLC0415, as above

    def end(cancel: CancelToken, progress: Progress) -> Outcome | None:
        way: recovery.Verb = getattr(recovery, verb)
        options = option_arguments.read(parsed)
        with connection.connected_instance(parsed) as (cluster, where):
            operate.ask_about_others(parsed, out, cluster, parsed.instance_id)
            options = for_charts(options, **where, packages=parsed.packages, cluster=cluster)
            how = {"packages": parsed.packages, "why": parsed.message}
            return way(cluster, options, cancel, progress, **where, **how)

    return recover_and_show(end, parsed, out)


def recover_and_show(
    recover: Callable[[CancelToken, Progress], Outcome | None],
    parsed: argparse.Namespace,
    out: TextIO,
) -> int:
    """End the interrupted operation and show its outcome; return the exit status."""
    began = time.monotonic()
    with (
        output.progress(parsed, out) as progress,
        approval.stopped_by_signals(leave=True) as cancel,
    ):
        outcome = recover(cancel, progress)
    if outcome is None:
        return output.write_nothing("Nothing to do: no operation was interrupted.", parsed, out)
    output.show_outcome(replace(outcome, seconds=time.monotonic() - began), parsed, out)
    return DONE


# --- an operation that another process carries out ----------------------------------------------


def _watch(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an operation does until it has ended; return the exit status."""
    from container_update.engine import watch  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with connection.connected_instance(parsed) as (cluster, where):
        watched = watch.attach(cluster, options, **where)
        if watched is None:
            return output.write_nothing("No operation is under way.", parsed, out)
        record = watched.record
        connection.instance_header(parsed, cluster, parsed.instance_id)
        row = ("Operation", f"{record.operation} of {record.host}, started {record.started}")
        parsed.header = Header((*parsed.header.target, row))
        try:
            with output.progress(parsed, out) as progress:
                outcome = watched.follow(progress)
        except KeyboardInterrupt:
            output.complain("no longer watching; the operation goes on")
            return DONE
    undone = sum(result.state is StepState.UNDONE for result in outcome.results)
    if parsed.output != output.TEXT or output.is_stream(parsed):
        output.show_outcome(outcome, parsed, out)
    else:
        steps = count_noun(undone or len(outcome.results), "step")
        ending = f"was undone: {steps} as before" if undone else f"has finished: {steps} done"
        for result in outcome.of_state(StepState.STOPPED):
            ending = f"has ended: {result.message}"
        out.write(f"Operation {record.operation} {ending}.\n")
    return UpdateFailedError.exit_status if undone else DONE
