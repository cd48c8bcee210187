# SPDX-License-Identifier: Apache-2.0
"""The schema of an instance's Secrets, which another client may have written. Pure.

What is read is checked here, and nowhere again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json, ObjectKey
from container_update.model.pauses import LONGEST_HOLD, LONGEST_PERIOD
from container_update.model.plan import Action, Step
from container_update.model.schema import (
    FILLED,
    LINE,
    MAPPING,
    PLAIN,
    TEXT,
    TRUTH,
    WHOLE,
    Fields,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Row,
    Schema,
    complete,
    or_null,
)
from container_update.model.scripts import NEW, OLD
from container_update.planning.comparison import diff
from container_update.planning.steps import ObjectStep
from container_update.planning.steps.codec import step_from_dict
from container_update.workloads.object_schemas import first_violation
from container_update.workloads.registry import kind_of

_TEXTS = ListOf(TEXT)
_PAIRS = ListOf(Row((TEXT, TEXT)))
_KEY = complete(group=LINE, kind=FILLED, namespace=LINE, name=FILLED)
_PACKAGE = complete(source=LINE, product=LINE, version=LINE, sha256=LINE)
_OBJECT = complete(metadata=complete(name=FILLED))
_WORKLOAD = complete(spec=MAPPING)

ORIGIN = complete(
    {"undoes": WHOLE, "scripts": MapOf(LINE, LINE, nullable=False), "why": LINE},
    kind=LINE,
    user=LINE,
    host=LINE,
    packages=ListOf(_PACKAGE),
)

# --- a step, see planning/steps -----------------------------------------------------------------

_MORE: Mapping[str, Schema] = {
    **dict.fromkeys(("before", "content"), _OBJECT),
    **dict.fromkeys(("digest", "change_cause", "manifest_digest"), TEXT),
    "successor": LINE,
    **dict.fromkeys(("dropped", "pods"), _PAIRS),
    "removed": _TEXTS,
    "mends": TRUTH,
    "group": WHOLE,
}


def _step(optional: Mapping[str, Schema] | None = None, /, **needed: Schema) -> Fields:
    more = {**_MORE, **(optional or {})}
    return complete(
        {name: each for name, each in more.items() if name not in needed},
        key=_KEY,
        action=OneOf(Action.__members__),
        reasons=ListOf(PLAIN),
        images=MapOf(LINE, TEXT, nullable=False),
        **needed,
    )


_VDU = complete(
    **dict.fromkeys(("vdu_id", "old_resource", "new_resource", "resource_id"), LINE),
    details=complete(group=LINE, kind=FILLED, namespace=LINE, services=ListOf(MAPPING)),
    ssh_ips=MapOf(LINE, LINE),
)
_SCRIPT = _step({"path": LINE}, role=OneOf((NEW, OLD)), vdu=_VDU)
_STEPS: Mapping[str, Fields] = {
    **dict.fromkeys(("manifest", "pods", "restart"), _step()),
    "config": _step(content=_OBJECT),
    "scale": _step(replicas=WHOLE),
    "script": _SCRIPT,
    "hold": _step(seconds=or_null(Number(0, LONGEST_HOLD))),
    "gate": _step(
        {"script": or_null(_SCRIPT)},
        query=TEXT,
        at_least=or_null(Number()),
        at_most=or_null(Number()),
        every=Number(1, LONGEST_PERIOD),
        seconds=Number(0, LONGEST_HOLD),
    ),
}
_TYPE = complete(type=OneOf(_STEPS))

# --- what consists of them ----------------------------------------------------------------------

_END = complete(
    {"journal": LINE},
    **dict.fromkeys(("number", "changes"), WHOLE),
    **dict.fromkeys(("ended", "result"), LINE),
    seconds=Number(),
    cause=TEXT,
    isKept=TRUTH,
)
HEAD = complete(
    {"end": _END},
    origin=ORIGIN,
    parts=MapOf(LINE, WHOLE, nullable=False),
    digests=MapOf(LINE, LINE, nullable=False),
)
CONTENT = complete(
    steps=ListOf(MAPPING),
    objects=ListOf(_KEY),
    defFiles=_TEXTS,
    context=MAPPING,
    podsBefore=ListOf(Row((_KEY, _TEXTS))),
    report=ListOf(TEXT),
)
"""An operation, see operation_codec.py."""

SCRIPTS = ListOf(
    complete(vnf=LINE, vduId=LINE, script=LINE, status=PLAIN, seconds=Number(), output=TEXT)
)
"""What the scripts of an operation reported, in its journal."""

CONTEXT = complete(
    request=MAPPING,
    old=LINE,
    new=LINE,
    defFiles=_TEXTS,
    oneNamespace=TRUTH,
    instance=MAPPING,
    facts=complete(
        {"pods": MapOf(LINE, TEXT)},
        **dict.fromkeys(("names", "network", "storage"), MapOf(LINE, TEXT)),
    ),
)
"""Of a change of the package, in its journal."""

INSTANCE = complete(
    {"package": _PACKAGE},
    manifests=ListOf(Row((_KEY, LINE, WHOLE, PLAIN))),
    defFiles=_TEXTS,
    vdus=MapOf(LINE, LINE, nullable=False),
)
"""See instance_record.py."""


def refuse_other(schema: Schema, values: Any) -> None:
    """Raise ValueError, which names the field, for values of another form."""
    for each in (schema, PLAIN):
        if (wrong := each.first_violation(values)) is not None:
            raise ValueError(str(wrong))


def checked_step(values: Any) -> Step:
    """Return the step that another client may have written, as checked; raises DAMAGED."""
    refuse_other(_TYPE, values)
    refuse_other(_STEPS[values["type"]], values)
    key = ObjectKey(**values["key"])
    for name in ("before", "content"):
        if values.get(name) is None and values["action"] == Action.HAND_OVER.name:
            raise ValueError(f"{name}: expected an object, found none")
        refuse_other_object(key, values.get(name))
    step = step_from_dict(values)
    if isinstance(step, ObjectStep):
        for name in filter(None, (key.name, values.get("successor"))):
            object_key({**values["key"], "name": name})
    return step


def object_key(values: Mapping[str, Any]) -> ObjectKey:
    """Return a key that others may have written, whose parts go into URLs; raises DAMAGED."""
    key = ObjectKey(**values)
    if not key.is_valid:
        raise ValueError("expected the name of an object")
    return key


def refuse_other_object(key: ObjectKey, body: Json | None) -> None:
    """Raise ValueError for an object whose fields that are read are of other types."""
    if body is None:
        return
    if (wrong := first_violation(key, body)) is not None:
        raise ValueError(f"{key}: {wrong}")
    if kind_of(key) is not None:
        refuse_other(_WORKLOAD, body)
    if key.is_config:
        diff.content(body)
