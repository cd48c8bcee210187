# SPDX-License-Identifier: Apache-2.0
"""The table of VNF instances. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from container_update.cli.reports import lines
from container_update.cli.reports.lines import Line
from container_update.planning.comparison.diff import printable

if TYPE_CHECKING:
    from container_update.engine.listing import InstanceState

_COLUMNS = (
    "NAMESPACE",
    "INSTANCE",
    "PACKAGE",
    "READY",
    "LAST OPERATION",
    "ENDED (UTC)",
    "UNDER WAY",
)


def instance_lines(instances: Sequence[InstanceState]) -> Iterator[Line]:
    """Yield a table of the instances; those that miss a pod stand out."""
    texts = lines.aligned([_COLUMNS, *map(_row, instances)])
    for text, each in zip(texts, (None, *instances), strict=True):
        style = lines.HEADING if each is None else lines.PLAIN
        if each is not None and each.ready < each.desired:
            style = lines.BAD
        yield Line.of((text, style), is_content=True)


def _row(each: InstanceState) -> tuple[str, ...]:
    last = each.last
    cells = (
        each.namespace,
        each.instance_id or "-",
        each.package or "-",
        f"{each.ready}/{each.desired}",
        f"{last.origin.title}: {last.result.value}" if last else "-",
        lines.moment(last.ended) if last else "-",
        each.under_way,
    )
    return tuple(map(printable, cells))
