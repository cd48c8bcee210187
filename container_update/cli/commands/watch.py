# SPDX-License-Identifier: Apache-2.0
"""``container-update status --watch``: follows an operation that another process carries out."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.reports.header import Header
from container_update.cli.terminal import output
from container_update.cli.terminal import progress as progress_views
from container_update.cli.terminal.output import DONE
from container_update.model.errors import UpdateFailedError
from container_update.model.operation import OperationRecord
from container_update.model.outcome import Outcome, StepState
from container_update.planning.summary import counted


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an operation does until it has ended; return the exit status."""
    from container_update.engine import watch  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with connection.connected_instance(parsed) as (cluster, where):
        watched = watch.attach(cluster, options, **where)
        if watched is None:
            return output.write_nothing("No operation is under way.", parsed, out)
        record = watched.record
        header = Header.of_cluster(cluster.context, parsed.namespace)
        row = ("Operation", f"{record.operation} of {record.host}, started {record.started}")
        parsed.header = replace(header, target=(*header.target, row))
        try:
            with output.progress(parsed, out) as progress:
                outcome = watched.follow(progress)
        except KeyboardInterrupt:
            output.complain("no longer watching; the operation goes on")
            return DONE
    return _show(outcome, record, parsed, out)


def _show(
    outcome: Outcome, record: OperationRecord, parsed: argparse.Namespace, out: TextIO
) -> int:
    undone = sum(result.state is StepState.UNDONE for result in outcome.results)
    if parsed.output != output.TEXT or parsed.progress_style == progress_views.JSON:
        output.show_outcome(outcome, parsed, out)
    else:
        steps = counted(undone or len(outcome.results), "step")
        ending = f"was undone: {steps} as before" if undone else f"has finished: {steps} done"
        out.write(f"Operation {record.operation} {ending}.\n")
    return UpdateFailedError.exit_status if undone else DONE
