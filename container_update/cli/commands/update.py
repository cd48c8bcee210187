"""``container-update plan`` and ``apply``: an update to a new package."""

from __future__ import annotations

import argparse
from typing import TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import output, signals
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.model.requests import UpdateRequest


def add_apply_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``apply``."""
    add_arguments(command)
    output.add_approval_arguments(command)
    output.add_progress_arguments(command)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that both commands have."""
    connection.add_package_arguments(command)
    command.add_argument("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update, as in configmap_secret_paths "
        "(repeatable; default: all that differ)")  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command)


def plan(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an update would do; return the exit status."""
    from container_update.operations.update import plan_update  # noqa: PLC0415, slow to load

    with connection.connected_cluster(parsed) as cluster:
        header = connection.cluster_header(parsed, cluster)
        planned = plan_update(_request(parsed), cluster, option_arguments.read(parsed))
        return output.show_plan(planned, header, parsed, out)


def apply(parsed: argparse.Namespace, out: TextIO) -> int:
    """Update the CNF; return the exit status."""
    from container_update.operations.update import update  # noqa: PLC0415, slow to load

    with (
        connection.connected_cluster(parsed) as cluster,
        output.progress(connection.cluster_header(parsed, cluster), parsed, out) as progress,
        signals.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
    ):
        outcome = update(_request(parsed), cluster, option_arguments.read(parsed), cancel, progress)
    output.show_outcome(outcome, parsed, out)
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
