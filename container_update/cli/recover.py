"""``container-update status``, ``resume`` and ``rollback``: an operation that was interrupted."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, TextIO

from container_update.cli import option_arguments, output, signals, target
from container_update.model.outcome import Outcome

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.cluster.execution.operation import Instance

DONE, NOTHING_TO_DO = 0, 2


def status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show the operation that is under way; return the exit status."""
    if parsed.stack:
        return _stack_status(parsed, out)
    with target.connected_cluster(parsed) as cluster:
        current = _instance(parsed, cluster).status()
    is_json = parsed.output == output.JSON
    out.write((json.dumps(current.as_dict(), indent=2) if is_json else str(current)) + "\n")
    return DONE if current.record or current.holder else NOTHING_TO_DO


def _stack_status(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.stacks.change import StackInstance  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    with target.connected_heat(parsed, options) as heat:
        record = StackInstance(heat, parsed.instance_id, options).status()
    out.write(f"{record or 'No change is under way.'}\n")
    return DONE if record else NOTHING_TO_DO


def resume(parsed: argparse.Namespace, out: TextIO) -> int:
    """Finish the operation that was interrupted; return the exit status."""
    from container_update.operations import resume as operation  # noqa: PLC0415, slow to load

    with (
        target.connected_cluster(parsed) as cluster,
        signals.stopped_by_signals(leave=True) as stop,
    ):
        site = target.kubernetes_site(parsed, cluster)
        return _show(operation.resume(_instance(parsed, cluster), site, stop), parsed, out)


def rollback(parsed: argparse.Namespace, out: TextIO) -> int:
    """Undo the operation that was interrupted; return the exit status."""
    with (
        target.connected_cluster(parsed) as cluster,
        signals.stopped_by_signals(leave=True) as stop,
    ):
        return _show(_instance(parsed, cluster).recover(back=True, stop=stop), parsed, out)


def _instance(parsed: argparse.Namespace, cluster: KubernetesCluster) -> Instance:
    from container_update.cluster.execution.operation import Instance  # noqa: PLC0415
    from container_update.cluster.retry import RetryingCluster  # noqa: PLC0415

    options = option_arguments.read(parsed)
    retrying = RetryingCluster(cluster, options.retry_seconds)
    return Instance(retrying, parsed.namespace, parsed.instance_id, options)


def _show(outcome: Outcome | None, parsed: argparse.Namespace, out: TextIO) -> int:
    if outcome is None:
        out.write(output.nothing(output.NOTHING_INTERRUPTED, parsed.output) + "\n")
        return NOTHING_TO_DO
    out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    return DONE
