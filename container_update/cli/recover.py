"""``container-update status``, ``resume`` and ``rollback``: an operation that was interrupted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from container_update.cli import change, connection, option_arguments, output, signals
from container_update.model.operation import Status
from container_update.model.outcome import Outcome

DONE, NOTHING_TO_DO = 0, 2


def status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show the operation that is under way; return the exit status."""
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    if parsed.stack:
        current = _stack_status(parsed)
    else:
        with connection.connected_cluster(parsed) as cluster:
            current = operation.status(
                cluster,
                option_arguments.read(parsed),
                namespace=parsed.namespace,
                instance_id=parsed.instance_id,
            )
    is_json = parsed.output == output.JSON
    out.write((json.dumps(current.as_dict(), indent=2) if is_json else str(current)) + "\n")
    return DONE if current.record or current.holder else NOTHING_TO_DO


def _stack_status(parsed: argparse.Namespace) -> Status:
    options = option_arguments.read(parsed)
    with connection.connected_heat(parsed, options) as heat:
        from container_update.stacks.operation import StackInstance  # noqa: PLC0415, an extra

        return StackInstance(heat, parsed.instance_id, options).status()


def add_request_argument(command: argparse.ArgumentParser) -> None:
    """Add what a change of a stack needs to go on."""
    command.add_argument(
        "--request", metavar="FILE", type=Path,
        help="with --stack: the request of the change, if its coordination scripts need passwords",
    )  # fmt: skip


def resume(parsed: argparse.Namespace, out: TextIO) -> int:
    """Finish the operation that was interrupted; return the exit status."""
    if parsed.stack:
        return _recover_stack(parsed, out, back=False)
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    return _recover(operation.resume, parsed, out)


def rollback(parsed: argparse.Namespace, out: TextIO) -> int:
    """Undo the operation that was interrupted; return the exit status."""
    if parsed.stack:
        return _recover_stack(parsed, out, back=True)
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    return _recover(operation.rollback, parsed, out)


def _recover(
    operation: Callable[..., Outcome | None], parsed: argparse.Namespace, out: TextIO
) -> int:
    with (
        connection.connected_cluster(parsed) as cluster,
        signals.stopped_by_signals(leave=True) as cancel,
    ):
        outcome = operation(
            cluster,
            option_arguments.read(parsed),
            cancel,
            namespace=parsed.namespace,
            instance_id=parsed.instance_id,
        )
        return _show(outcome, parsed, out)


def _recover_stack(parsed: argparse.Namespace, out: TextIO, *, back: bool) -> int:
    options = option_arguments.read(parsed)
    request = change.json_file(parsed.request) if parsed.request else None
    with (
        connection.connected_heat(parsed, options) as heat,
        signals.stopped_by_signals(leave=True) as cancel,
    ):
        from container_update.operations.strategies.openstack_recovery import (  # noqa: PLC0415
            recover_stack,
        )
        from container_update.stacks.operation import StackInstance  # noqa: PLC0415

        instance = StackInstance(heat, parsed.instance_id, options)
        target = connection.openstack_target(parsed, heat)
        outcome, scripts = recover_stack(instance, target, cancel, request, back=back)
    if parsed.output == output.TEXT:
        change.show_scripts(scripts, out)
    return _show(outcome, parsed, out)


def _show(outcome: Outcome | None, parsed: argparse.Namespace, out: TextIO) -> int:
    if outcome is None:
        out.write(output.nothing(output.NOTHING_INTERRUPTED, parsed.output) + "\n")
        return NOTHING_TO_DO
    out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    return DONE
