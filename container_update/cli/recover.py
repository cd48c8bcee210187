"""``container-update status``, ``resume`` and ``rollback``: an operation that was interrupted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TextIO

from container_update.cli import option_arguments, output, signals, target
from container_update.model.operation import Status
from container_update.model.outcome import Outcome

DONE, NOTHING_TO_DO = 0, 2


def status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show the operation that is under way; return the exit status."""
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    if parsed.stack:
        current = _stack_status(parsed)
    else:
        with target.connected_cluster(parsed) as cluster:
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
    from container_update.stacks.operation import StackInstance  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with target.connected_heat(parsed, options) as heat:
        return StackInstance(heat, parsed.instance_id, options).status()


def resume(parsed: argparse.Namespace, out: TextIO) -> int:
    """Finish the operation that was interrupted; return the exit status."""
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    return _recover(operation.resume, parsed, out)


def rollback(parsed: argparse.Namespace, out: TextIO) -> int:
    """Undo the operation that was interrupted; return the exit status."""
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    return _recover(operation.rollback, parsed, out)


def _recover(
    operation: Callable[..., Outcome | None], parsed: argparse.Namespace, out: TextIO
) -> int:
    with (
        target.connected_cluster(parsed) as cluster,
        signals.stopped_by_signals(leave=True) as stop,
    ):
        outcome = operation(
            cluster,
            option_arguments.read(parsed),
            stop,
            namespace=parsed.namespace,
            instance_id=parsed.instance_id,
        )
        return _show(outcome, parsed, out)


def _show(outcome: Outcome | None, parsed: argparse.Namespace, out: TextIO) -> int:
    if outcome is None:
        out.write(output.nothing(output.NOTHING_INTERRUPTED, parsed.output) + "\n")
        return NOTHING_TO_DO
    out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    return DONE
