# SPDX-License-Identifier: Apache-2.0
"""Packages, VNF instances and operations as the page lists them, from rows. Pure."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm import states
from container_update.vnfm.lcm.tasks import vnfc_entries
from container_update.vnfm.states import Request
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import Batch, Instance, OperationRow, Package

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FILE = "file"
"""In the user-defined data of a package that was uploaded on the page: the name of its file."""


def package(row: Package, *, used: bool) -> Json:
    """Return a package; ``problem`` says why it is in the state ERROR."""
    body = row.body
    return {
        "id": row.id,
        "name": _join(body.get("vnfProductName"), body.get("vnfSoftwareVersion"))
        or str(row.user_data.get(FILE, "")),
        "created": timestamp(row.created),
        "product": body.get("vnfProductName") or "",
        "vnfdId": row.vnfd_id,
        "vnfdVersion": body.get("vnfdVersion"),
        "provider": body.get("vnfProvider"),
        "onboardingState": row.onboarding_state,
        "operationalState": row.operational_state,
        "isUsed": used,
        "problem": (body.get("onboardingFailureDetails") or {}).get("detail", ""),
    }


def name_of(row: Instance) -> str:
    """Return the name of a VNF instance, else its id."""
    return str(row.body.get("vnfInstanceName") or row.id)


def instance(row: Instance, since: datetime | None = None, trouble: str = "") -> Json:
    """Return a VNF instance, with what the requests about it need.

    :param since: when its last operation came to where it is; None: it had none.
    :param trouble: of its pods, without an operation.
    """
    body: dict[str, Any] = row.body
    info = body.get("instantiatedVnfInfo") or {}
    holder = info if row.api == "v2" else body
    return {
        "id": row.id,
        "api": row.api,
        "name": name_of(row),
        "description": body.get("vnfInstanceDescription") or "",
        "created": timestamp(row.created),
        "since": timestamp(since or row.created),
        "product": body.get("vnfProductName") or "",
        "package": _join(body.get("vnfProductName"), body.get("vnfSoftwareVersion")),
        "vnfdId": row.vnfd_id,
        "isInstantiated": row.instantiated,
        "trouble": trouble,
        "namespace": (holder.get("metadata") or {}).get("namespace"),
        "stack": info.get("instance_id"),
        "aspects": [
            {"id": status.get("aspectId"), "level": status.get("scaleLevel")}
            for status in info.get("scaleStatus") or ()
        ],
        "vnfcs": _vnfcs(row.api, info),
    }


def operation(row: OperationRow, names: Mapping[str, str]) -> Json:
    """Return an operation as it was requested: the name is the one that the instance had then."""
    problem = str((row.error or {}).get("detail", ""))
    return {
        "id": row.id,
        "api": row.api,
        "instanceId": row.instance_id,
        "instanceName": row.instance_name or row.instance_id,
        "operation": row.operation,
        "state": row.state,
        "started": timestamp(row.started),
        "entered": timestamp(row.entered),
        "requestedBy": row.requested_by,
        "why": row.why,
        "oldPackage": row.old_package,
        "newPackage": row.new_package,
        "namespace": (row.params.get("additionalParams") or {}).get("namespace"),
        "problem": _ID.sub(lambda found: names.get(found[0], found[0]), problem),
        "requests": [request.value for request in states.allowed_to(row)],
    }


def batch(row: Batch, members: list[Json]) -> Json:
    """Return a batch, with its members and their states, among operations."""
    return {
        "id": row.id,
        "kind": "batch",
        "api": row.api,
        "operation": row.operation,
        "state": row.state,
        "started": timestamp(row.started),
        "entered": timestamp(row.entered),
        "requestedBy": row.requested_by,
        "newPackage": row.new_package,
        "waveSize": row.body["waveSize"],
        "maxFailures": row.body["maxFailures"],
        "why": row.body.get("why", ""),
        "members": members,
    }


def _vnfcs(api: str, info: Json) -> list[Json]:
    """Return the VNFCs by the ids that a request to heal them names."""
    return [
        {
            "id": id_,
            "vduId": entry.get("vduId", ""),
            "resource": (entry.get("computeResource") or {}).get("resourceId", ""),
        }
        for id_, entry in vnfc_entries(api, info).items()
    ]


def _join(*texts: str | None) -> str:
    return " ".join(text for text in texts if text)


# --- the table of VNF instances: those that need a decision first, filtered, a page at a time ----
# Only the page that a viewer looks at is sent to him, however many instances there are.


PAGE_SIZE = 50


class Health(str, enum.Enum):
    """What an instance is like, in the order of the table."""

    DECISION = "decision"
    """Its operation waits for a person."""
    TROUBLE = "trouble"
    """No operation runs, and a pod fails or a workload is missing."""
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
    """Return the rows, those in trouble first, then by name."""
    conditions = [(each, _condition(each, unsettled.get(each["id"]))) for each in instances]
    order = list(Health)
    conditions.sort(key=lambda row: (order.index(row[1]) if row[1] in order[:3] else len(order),
                                _natural(row[0]["name"]), row[0]["id"]))  # fmt: skip
    return tuple(_row(each, condition) for each, condition in conditions)


def page_of(rows: Sequence[TableRow], wanted: Wanted) -> Json:
    """Return the ids of the wanted page, and how many rows there are of each kind."""
    words = wanted.text.lower().split()
    among = [row for row in rows if all(word in row.searched for word in words)]
    packages = Counter((row.vnfd_id, row.package) for row in among)
    of_package = [row for row in among if wanted.vnfd_id in ("", row.vnfd_id)]
    counts = Counter(row.condition.value for row in of_package)
    matching = [row for row in of_package if wanted.condition in ("", row.condition.value)]
    last_page = max(1, -(-len(matching) // PAGE_SIZE))
    start = PAGE_SIZE * (min(max(1, wanted.page), last_page) - 1)
    return {
        "id": "table",
        "ids": [row.id for row in matching[start : start + PAGE_SIZE]],
        "start": start,
        "found": len(matching),
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
    if instance["trouble"]:
        return Health.TROUBLE
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
