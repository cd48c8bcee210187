"""``container-update plan`` and ``apply``: an update to a new package."""

from __future__ import annotations

import argparse
from typing import TextIO

from container_update.cli import connection, option_arguments, output, signals
from container_update.cli.reports import text_report
from container_update.model.requests import UpdateRequest

DONE, NOTHING_TO_DO, CHANGES_PENDING = 0, 2, 3


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that both commands have."""
    add = command.add_argument
    add("old", metavar="OLD", help="the current package: a folder or a CSAR zip")
    add("new", metavar="NEW", help="the new package: a folder or a CSAR zip")
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of OLD)")  # fmt: skip
    add("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update, as in configmap_secret_paths "
        "(repeatable; default: all that differ)")  # fmt: skip
    connection.add_cluster_arguments(command)


def plan(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an update would do; return the exit status."""
    from container_update.operations.update import plan_update  # noqa: PLC0415, slow to load

    with connection.connected_cluster(parsed) as cluster:
        planned = plan_update(_request(parsed), cluster, option_arguments.read(parsed))
    out.write(output.PLAN[parsed.output](planned) + "\n")
    return NOTHING_TO_DO if planned.is_empty else CHANGES_PENDING


def apply(parsed: argparse.Namespace, out: TextIO) -> int:
    """Update the CNF; return the exit status."""
    from container_update.operations.update import update  # noqa: PLC0415, slow to load

    as_text = parsed.output == output.TEXT
    progress = output.progress(out) if as_text else (lambda _: None)
    with (
        connection.connected_cluster(parsed) as cluster,
        signals.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
    ):
        outcome = update(_request(parsed), cluster, option_arguments.read(parsed), cancel, progress)
    if not as_text:
        out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    elif outcome.results:
        out.write(text_report.summary_text(outcome) + "\n")
    return DONE if outcome.results else NOTHING_TO_DO


def _request(parsed: argparse.Namespace) -> UpdateRequest:
    return UpdateRequest(
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        config_paths=tuple(parsed.config_path),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
    )
