# SPDX-License-Identifier: Apache-2.0
"""The table of VNF instances: those that need a decision first, filtered, a page at a time. Pure.

Only the page that a viewer looks at is sent to him, however many instances there are.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from container_update.model.objects import Json
from container_update.vnfm.states import Request

PAGE_SIZE = 50


class Health(str, enum.Enum):
    """What an instance is like, in the order of the table."""

    DECISION = "decision"
    """Its operation waits for a person."""
    AT_WORK = "at-work"
    """It has another operation that has not ended."""
    INSTANTIATED = "instantiated"
    NOT_INSTANTIATED = "not-instantiated"


@dataclass(frozen=True)
class TableRow:
    """What is asked of an instance by those who look for it."""

    id: str
    condition: Health
    vnfd_id: str
    package: str
    searched: str
    """Its texts, in small letters."""


@dataclass(frozen=True)
class Wanted:
    """What a viewer looks at: the parameters of ``/view/events``."""

    text: str = ""
    """Words, each of which is in one of the row's texts."""
    condition: str = ""
    vnfd_id: str = ""
    page: int = 1
    instance: str = ""
    """The id of the one that is open: it is sent with its resources and its operation's steps."""


def rows_of(instances: Iterable[Json], unsettled: Mapping[str, Json]) -> tuple[TableRow, ...]:
    """Return the rows, those that wait for a person first, then by name.

    :param unsettled: by the id of the instance the operation that has not ended.
    """
    found = [(each, _condition(each, unsettled.get(each["id"]))) for each in instances]
    order = list(Health)
    found.sort(key=lambda row: (order.index(row[1]) if row[1] in order[:2] else len(order),
                                _natural(row[0]["name"]), row[0]["id"]))  # fmt: skip
    return tuple(_row(each, condition) for each, condition in found)


def page_of(rows: Sequence[TableRow], wanted: Wanted) -> Json:
    """Return the ids of the wanted page, and how many rows there are of each kind."""
    words = wanted.text.lower().split()
    among = [row for row in rows if all(word in row.searched for word in words)]
    packages = Counter((row.vnfd_id, row.package) for row in among)
    of_package = [row for row in among if wanted.vnfd_id in ("", row.vnfd_id)]
    counts = Counter(row.condition.value for row in of_package)
    found = [row for row in of_package if wanted.condition in ("", row.condition.value)]
    last_page = max(1, -(-len(found) // PAGE_SIZE))
    start = PAGE_SIZE * (min(max(1, wanted.page), last_page) - 1)
    return {
        "id": "table",
        "ids": [row.id for row in found[start : start + PAGE_SIZE]],
        "start": start,
        "found": len(found),
        "all": len(rows),
        "counts": {each.value: counts[each.value] for each in Health},
        "packages": [
            {"vnfdId": vnfd_id, "name": name, "count": count}
            for (vnfd_id, name), count in sorted(packages.items(), key=lambda each: each[0][::-1])
        ],
    }


def _condition(instance: Json, operation: Json | None) -> Health:
    if operation is not None:
        waits = set(operation["requests"]) - {Request.CANCEL.value}
        return Health.DECISION if waits else Health.AT_WORK
    return Health.INSTANTIATED if instance["isInstantiated"] else Health.NOT_INSTANTIATED


def _row(instance: Json, condition: Health) -> TableRow:
    names = ("name", "description", "package", "vnfdId", "namespace", "stack", "id")
    texts = (instance[name] for name in names)
    searched = "\n".join(text.lower() for text in texts if text)
    return TableRow(instance["id"], condition, instance["vnfdId"], instance["package"], searched)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return what puts upf-2 before upf-10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name.lower())
    return [(int(number[:18]), "") if number else (-1, text) for number, text in parts]
