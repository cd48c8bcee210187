"""``container-update plan`` and ``apply``: an update to a new package."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection, saved_plan
from container_update.cli.arguments import option_arguments
from container_update.cli.arguments.parser import UsageError, hide
from container_update.cli.terminal import output, signals
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.model.outcome import Event
from container_update.model.plan import Plan
from container_update.model.requests import UpdateRequest

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.model.options import Options


def add_plan_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``plan``."""
    add = command.add_argument
    connection.add_package_arguments(command)
    add("--out", metavar="FILE", type=Path,
        help="save the plan in this file, for 'apply FILE'")  # fmt: skip
    add("--server", action="store_true",
        help="send every write to the API server too, as a dry run, to see what it "
        "refuses")  # fmt: skip
    _add_common(command)


def add_apply_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``apply``."""
    connection.add_package_arguments(command, saved=True)
    _add_common(command)
    output.add_approval_arguments(command)
    output.add_progress_arguments(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    hide(command.add_argument("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update, as in configmap_secret_paths "
        "(repeatable; default: all that differ)"))  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command)


def plan(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an update would do; return the exit status."""
    connection.expect_packages(parsed)
    from container_update.operations.update import plan_update  # noqa: PLC0415, slow to load

    with connection.connected_cluster(parsed) as cluster:
        header = connection.cluster_header(parsed, cluster)
        request, options = request_of(parsed), option_arguments.read(parsed)
        planned = plan_update(request, cluster, options)
        if parsed.output == output.TEXT:
            status = output.show_plan(planned, header, parsed, out)
        if parsed.server:
            sentence = _check_on_server(planned, cluster, options)
            output.remark(sentence, parsed, out)
        if parsed.out is not None:
            saved_plan.save(parsed.out, planned, request, cluster.context.server)
            output.remark(f"Saved in {parsed.out}.", parsed, out)
        if parsed.output != output.TEXT:  # one document: the plan, or why it is refused
            status = output.show_plan(planned, header, parsed, out)
        return status


def _check_on_server(planned: Plan, cluster: KubernetesCluster, options: Options) -> str:
    from container_update.operations.checks.server_check import check_on_server  # noqa: PLC0415

    number = check_on_server(planned, cluster, options)
    return f"The API server accepts all {number} writes (dry run)."


def apply(parsed: argparse.Namespace, out: TextIO) -> int:
    """Update the CNF; return the exit status."""
    saved = None
    if parsed.new is None:
        saved = saved_plan.load(Path(parsed.old))
        _take_over(parsed, saved_plan.request_of(saved))
    connection.expect_packages(parsed)
    from container_update.operations.update import update  # noqa: PLC0415, slow to load

    with (
        connection.connected_cluster(parsed) as cluster,
        output.progress(connection.cluster_header(parsed, cluster), parsed, out) as progress,
        signals.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
    ):

        def checked(event: Event) -> None:
            if saved is not None and isinstance(event, Plan):
                saved_plan.refuse_another(saved, event, cluster.context.server)
            progress(event)

        outcome = update(
            request_of(parsed), cluster, option_arguments.read(parsed), cancel, checked
        )
    output.show_outcome(outcome, parsed, out)
    return DONE if outcome.results else NOTHING_TO_DO


def _take_over(parsed: argparse.Namespace, request: UpdateRequest) -> None:
    """Set the arguments as they were when the plan was saved; it was approved, nobody is asked.

    :raises UsageError: another one was given.
    """
    for name, value in (
        ("namespace", request.namespace),
        ("instance_id", request.instance_id),
        ("def_file", list(request.def_files)),
        ("config_path", list(request.config_paths)),
    ):
        given = getattr(parsed, name)
        if given and given != value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: the saved plan has its own: expected none, found {given}")
        setattr(parsed, name, value)
    parsed.old, parsed.new, parsed.yes = request.old, request.new, True


def request_of(parsed: argparse.Namespace) -> UpdateRequest:
    """Return the request that the arguments describe."""
    return UpdateRequest(
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        config_paths=tuple(parsed.config_path),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
    )
