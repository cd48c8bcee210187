# SPDX-License-Identifier: Apache-2.0
"""The form of what is kept of an instance in its Secrets, which somebody else may have written.

What is read is checked here before it is believed: what is behind takes it as this program wrote
it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.model.schema import (
    FILLED,
    LINE,
    MAPPING,
    PLAIN,
    TEXT,
    TRUTH,
    WHOLE,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Row,
    Schema,
)
from container_update.model.scripts import NEW, OLD
from container_update.package.schema import first_violation
from container_update.planning.comparison import diff
from container_update.workloads.registry import kind_of


def _whole(**fields: Schema) -> Record:
    """Return the schema of a mapping in which no field is missing."""
    return Record(fields, frozenset(fields))


_TEXTS = ListOf(TEXT)
_PAIRS = ListOf(Row((TEXT, TEXT)))
_KEY = _whole(group=LINE, kind=FILLED, namespace=LINE, name=FILLED)
_PACKAGE = _whole(source=LINE, product=LINE, version=LINE, sha256=LINE)
_OBJECT = _whole(metadata=_whole(name=FILLED))
_WORKLOAD = _whole(spec=MAPPING)

ORIGIN = Record(
    {"kind": LINE, "user": LINE, "host": LINE, "packages": ListOf(_PACKAGE), "undoes": WHOLE},
    frozenset({"kind", "user", "host", "packages"}),
)

# --- a step, see planning/steps -----------------------------------------------------------------

_OF_EACH: Mapping[str, Schema] = {
    "key": _KEY,
    "action": OneOf(Action.__members__),
    "reasons": ListOf(PLAIN),
    "images": MapOf(LINE, TEXT, nullable=False),
}
_MORE: Mapping[str, Schema] = {
    "before": _OBJECT,
    "content": _OBJECT,
    "digest": TEXT,
    "change_cause": TEXT,
    "manifest_digest": TEXT,
    "removed": _TEXTS,
    "dropped": _PAIRS,
    "pods": _PAIRS,
    "mends": TRUTH,
    "group": WHOLE,
}


def _step(**needed: Schema) -> Record:
    fields = {**_MORE, **_OF_EACH, **needed}
    return Record(fields, frozenset({*_OF_EACH, *needed}))


_VDU = _whole(
    **dict.fromkeys(("vdu_id", "old_resource", "new_resource", "resource_id"), LINE),
    details=_whole(kind=FILLED, namespace=LINE, services=ListOf(MAPPING)),
    ssh_ips=MapOf(LINE, LINE),
)
_STEPS: Mapping[str, Record] = {
    "config": _step(content=_OBJECT),
    "manifest": _step(),
    "pods": _step(),
    "restart": _step(),
    "scale": _step(replicas=WHOLE),
    "script": _step(role=OneOf((NEW, OLD)), vdu=_VDU),
    "hold": _step(seconds=PLAIN),
    "gate": _step(
        query=TEXT,
        **dict.fromkeys(("at_least", "at_most"), PLAIN),
        every=Number(),
        seconds=Number(),
    ),
}
_TYPE = _whole(type=OneOf(_STEPS))

# --- what consists of them ----------------------------------------------------------------------

RECORD = Record(
    {
        "defFiles": _TEXTS,
        "steps": ListOf(MAPPING),
        "context": MAPPING,
        "podsBefore": ListOf(Row((_KEY, _TEXTS))),
        "origin": ORIGIN,
        "objects": ListOf(_KEY),
        "instance": TEXT,
    },
    frozenset({"defFiles", "steps", "context", "podsBefore"}),
)
"""A journal, see cluster/record.py."""

SCRIPTS = ListOf(
    _whole(
        **dict.fromkeys(("vnf", "vduId", "script"), LINE),
        status=PLAIN,
        seconds=Number(),
        output=TEXT,
    )
)
"""What the scripts of an operation reported, in its journal."""

CONTEXT = Record(
    {
        "request": MAPPING,
        "old": LINE,
        "new": LINE,
        "defFiles": _TEXTS,
        "oneNamespace": TRUTH,
        "instance": MAPPING,
        "facts": Record(
            {
                **dict.fromkeys(("names", "network", "storage", "pods"), MapOf(LINE, TEXT)),
            },
            frozenset({"names", "network", "storage"}),
        ),
    },
    frozenset({"request", "old", "new", "defFiles", "oneNamespace", "instance", "facts"}),
)
"""Of a change of the package, in its journal."""

SUMMARY = Record(
    {
        **dict.fromkeys(("number", "changes"), WHOLE),
        **dict.fromkeys(("operation", "started", "ended"), LINE),
        "seconds": Number(),
        "origin": ORIGIN,
        "result": LINE,
        "cause": TEXT,
        "isKept": TRUTH,
        "parts": MapOf(LINE, WHOLE, nullable=False),
        "digests": MapOf(LINE, LINE, nullable=False),
    },
    frozenset(
        {"number", "changes", "operation", "started", "ended", "seconds", "origin", "result"}
        | {"cause", "isKept"}
    ),
)
CONTENT = Record(
    {
        "steps": ListOf(MAPPING),
        "objects": ListOf(_KEY),
        "defFiles": _TEXTS,
        "report": ListOf(TEXT),
    }
)
"""A revision, see revision.py."""

INSTANCE = Record(
    {
        "package": _PACKAGE,
        "manifests": ListOf(Row((_KEY, LINE, WHOLE, PLAIN))),
        "defFiles": _TEXTS,
        "vdus": MapOf(LINE, LINE, nullable=False),
    },
    frozenset({"manifests", "defFiles", "vdus"}),
)
"""See instance_record.py."""


def refuse_other(schema: Schema, values: Any) -> None:
    """Refuse values of another form.

    :raises ValueError: names the field that is wrong.
    """
    for each in (schema, PLAIN):
        if (wrong := each.first_violation(values)) is not None:
            raise ValueError(str(wrong))


def refuse_other_step(values: Any) -> None:
    """Refuse what is no step.

    :raises ValueError: names the field that is wrong.
    """
    refuse_other(_TYPE, values)
    refuse_other(_STEPS[values["type"]], values)
    key = ObjectKey(**values["key"])
    for name in ("before", "content"):
        refuse_other_object(key, values.get(name))


def refuse_other_object(key: ObjectKey, body: Json | None) -> None:
    """Refuse an object whose fields that are read are of other types.

    :raises ValueError: names the field that is wrong.
    """
    if body is None:
        return
    if (wrong := first_violation(key, body)) is not None:
        raise ValueError(f"{key}: {wrong}")
    if kind_of(key) is not None:
        refuse_other(_WORKLOAD, body)
    if key.is_config:
        diff.content(body)
