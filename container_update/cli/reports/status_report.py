# SPDX-License-Identifier: Apache-2.0
"""How the workloads of a VNF instance are, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from container_update.cli.reports import lines
from container_update.cli.reports.lines import Line
from container_update.planning.comparison.diff import printable

if TYPE_CHECKING:
    from container_update.engine.instances import WorkloadState

_HEAD = ("WORKLOAD", "READY", "NEW", "AGE", "IMAGE")


def workload_lines(workloads: Sequence[WorkloadState], now: datetime) -> Iterator[Line]:
    """Yield a table of the workloads; below one that has trouble, what it is.

    :param now: in UTC.
    """
    texts = lines.aligned([_HEAD, *(_row(workload, now) for workload in workloads)])
    for text, workload in zip(texts, (None, *workloads), strict=True):
        short = workload is not None and workload.ready < workload.desired
        yield Line.of((text, lines.DIM if workload is None else lines.BAD if short else ""))
        if workload is not None and workload.trouble:
            yield Line.of("    ", (printable(workload.trouble), lines.BAD))


def _row(workload: WorkloadState, now: datetime) -> tuple[str, ...]:
    return (
        printable(str(workload.key)),
        f"{workload.ready}/{workload.desired}",
        str(workload.updated),
        _age(workload.created, now),
        printable(", ".join(workload.images)),
    )


def _age(created: str, now: datetime) -> str:
    """Return how long ago something was created: '3d', '5h', '12m', '40s'."""
    if not created:
        return "?"
    seconds = int((now - datetime.fromisoformat(created.replace("Z", "+00:00"))).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{max(0, seconds)}s"
