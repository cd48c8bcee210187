# SPDX-License-Identifier: Apache-2.0
"""The table of VNF instances. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from container_update.model.times import moment
from container_update.planning.comparison.diff import printable
from container_update.reports import lines
from container_update.reports.lines import Line

if TYPE_CHECKING:
    from container_update.engine.listing import InstanceState

_COLUMNS = (
    "NAMESPACE",
    "INSTANCE",
    "PACKAGE",
    "STATE",
    "READY",
    "AGE",
    "LAST OPERATION",
    "ENDED (UTC)",
    "UNDER WAY",
)


def instance_lines(instances: Sequence[InstanceState], now: datetime) -> Iterator[Line]:
    """Yield a table of the instances at a time in UTC; those that are not ready stand out."""
    texts = lines.align([_COLUMNS, *(_row(each, now) for each in instances)])
    for text, each in zip(texts, (None, *instances), strict=True):
        style = lines.HEADING if each is None else lines.PLAIN
        if each is not None and each.state != "ready":
            style = lines.BAD
        yield Line.of((text, style), is_content=True)


def _row(each: InstanceState, now: datetime) -> tuple[str, ...]:
    last = each.last
    cells = (
        each.namespace,
        each.instance_id or "-",
        each.package or "-",
        each.state,
        f"{each.ready}/{each.desired}",
        lines.age(each.created, now),
        f"{last.origin.title}: {last.result.value}" if last else "-",
        moment(last.ended) if last else "-",
        each.under_way,
    )
    return tuple(map(printable, cells))
