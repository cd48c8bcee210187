"""``container-update install`` and ``uninstall``: the objects of one package."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.reports import lines
from container_update.cli.reports.lines import Line
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cli.terminal.screen import Screen
from container_update.model.errors import ClusterError, ContainerUpdateError, PlanError
from container_update.model.objects import ObjectKey
from container_update.model.outcome import Event, Outcome, Progress, StepResult
from container_update.model.plan import Plan
from container_update.planning.summary import counted

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster

    Work = Callable[[KubernetesCluster, Progress], object]

_NOTHING = "Nothing to do: nothing of the package is in namespace"


def add_install_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``install``."""
    _add_common(command)
    command.add_argument("--leave-failed", action="store_true",
        help="leave what was created if it does not get ready, instead of deleting it")  # fmt: skip


def add_uninstall_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``uninstall``."""
    _add_common(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("package", metavar="PACKAGE", help="a folder or a CSAR zip")
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of PACKAGE)")  # fmt: skip
    output.add_plan_arguments(command)
    output.add_approval_arguments(command)
    output.add_progress_arguments(command)
    connection.add_cluster_arguments(command)


def install(parsed: argparse.Namespace, out: TextIO) -> int:
    """Create the objects of a package; return the exit status."""
    from container_update.operations import install as operations  # noqa: PLC0415, slow to load
    from container_update.operations.checks.namespaces import refuse_missing  # noqa: PLC0415

    created: list[ObjectKey] = []

    def work(cluster: KubernetesCluster, progress: Progress) -> None:
        refuse_missing(parsed.namespace, cluster)
        try:
            operations.install(
                parsed.package,
                cluster,
                **_common(parsed),
                created=created.append,
                progress=progress,
            )
        except ContainerUpdateError as error:
            if created and not parsed.leave_failed:
                _delete(created, cluster)
                raise PlanError(f"{error}. What was created is deleted again") from error
            raise

    return _run(parsed, out, work, "Installed")


def uninstall(parsed: argparse.Namespace, out: TextIO) -> int:
    """Delete the objects of a package; return the exit status."""
    from container_update.operations.checks.namespaces import refuse_if_known_missing  # noqa: PLC0415
    from container_update.operations.terminate import terminate  # noqa: PLC0415, slow to load

    def work(cluster: KubernetesCluster, progress: Progress) -> None:
        if not terminate(parsed.package, cluster, **_common(parsed), progress=progress):
            refuse_if_known_missing(parsed.namespace, cluster)

    return _run(parsed, out, work, "Uninstalled")


def _run(parsed: argparse.Namespace, out: TextIO, work: Work, done: str) -> int:
    """Do the work with its progress shown; return the exit status.

    :param done: the word for what was done.
    """
    began, plans, results = time.monotonic(), list[Plan](), list[StepResult]()
    with (
        connection.connected_cluster(parsed) as cluster,
        output.progress(connection.cluster_header(parsed, cluster), parsed, out) as progress,
    ):

        def noted(event: Event) -> None:
            if isinstance(event, Plan):
                plans.append(event)
                if event.is_empty:
                    return
            elif isinstance(event, StepResult):
                results.append(event)
            progress(event)

        work(cluster, noted)
    if not results:
        return output.write_nothing(f"{_NOTHING} {parsed.namespace}.", parsed, out)
    seconds = time.monotonic() - began
    if parsed.output == output.TEXT and parsed.progress_style != output.JSON:
        sentence = f"{done} in {seconds:.1f} s: {counted(len(results), 'object')}."
        Screen(out).show([Line.of((sentence, lines.GOOD))])
    else:
        outcome = Outcome(plans[0], tuple(results), requests=cluster.requests, seconds=seconds)
        output.show_outcome(outcome, parsed, out)
    return DONE


def _common(parsed: argparse.Namespace) -> dict[str, Any]:
    return {
        "def_files": tuple(parsed.def_file),
        "namespace": parsed.namespace,
        "instance_id": parsed.instance_id,
        "options": option_arguments.read(parsed),
    }


def _delete(created: list[ObjectKey], cluster: KubernetesCluster) -> None:
    """Delete what was created, the last one first, as far as that is possible."""
    for key in reversed(created):
        try:
            cluster.delete(key)
        except ClusterError as error:
            output.complain(f"{key} is left: {error}")
