# SPDX-License-Identifier: Apache-2.0
"""An operation as the data of Secrets, while it runs and after it has ended. Pure.

There is one Secret, the head: it says what the operation is, and, of what is not in it, how many
parts there are in other Secrets and their digest. In parts is what is too large for the head, and
what concerns the objects of another namespace: who may read Secrets in one namespace is to learn
nothing of another one's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from container_update.cluster import keeping
from container_update.cluster import operation_schema as schemas
from container_update.cluster.operation import Operation, Origin, Result, Revision
from container_update.model.objects import Json, ObjectKey
from container_update.model.operation import Phase, from_values, to_values
from container_update.model.packing import DAMAGED, pack, unpack
from container_update.model.plan import Action
from container_update.model.scripts import ScriptReport
from container_update.planning.comparison import diff
from container_update.planning.steps import ConfigStep, ObjectStep
from container_update.planning.steps.codec import step_to_dict
from container_update.planning.steps.new_objects import stable_part
from container_update.workloads.object_schemas import NAMESPACE

_FORMAT = 5
_ENDED = ("number", "ended", "seconds", "changes", "cause")
"""What a head has of a revision as it is."""
_OPERATION, _CONTENT, _INSTANCE = "operation", "content", "instance"
"""In the data of the head: what the operation is, as JSON; what it does; what the VNF instance runs
from afterwards. The last two may be in parts."""
_ELSEWHERE = "elsewhere"
"""Stands for a step that is kept in that namespace."""
_PART_NAME = re.compile(rf"{_INSTANCE}|{_CONTENT}(/{NAMESPACE.pattern})?")
_NOTHING: Json = {
    **{name: [] for name in ("steps", "objects", "defFiles", "podsBefore", "report")},
    "context": {},
}
"""The content of a revision whose own is not kept."""
_MOST_SCRIPTS, _LONGEST_OUTPUT = 64, 4096
"""Of the reports of scripts: how many are kept, and characters of what each printed."""
_NEW_VALUE = base64.b64encode(b"another value").decode()


@dataclass(frozen=True)
class Encoded:
    """An operation as the data of its head and, where there are any, of its parts."""

    head: Mapping[str, bytes]
    parts: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """By the name of what is in them; of another namespace it has a name with that namespace, and
    is kept there."""

    @property
    def size(self) -> int:
        """How many Secrets it takes beside its head."""
        return sum(map(len, self.parts.values()))


def encode(operation: Operation, namespace: str) -> Encoded:
    """Return the operation as the data of Secrets, the head of which is in a namespace."""
    contents = {_INSTANCE: operation.instance} if operation.instance else {}
    if not isinstance(operation, Revision) or operation.is_kept:
        contents |= _contents(operation, namespace)
    here = {name: value for name, value in contents.items() if not _place_of(name)}
    if sum(map(len, here.values())) > keeping.PART_BYTES:
        here = {}
    parts = {name: keeping.split(value) for name, value in contents.items() if name not in here}
    values = {
        **to_values(operation, _FORMAT),
        "origin": asdict(operation.origin),
        "end": _end(operation) if isinstance(operation, Revision) else None,
        "parts": {name: len(chunks) for name, chunks in parts.items()},
        "digests": {name: _digest(b"".join(chunks)) for name, chunks in parts.items()},
    }
    progress = {} if isinstance(operation, Revision) else encode_progress(operation)
    return Encoded({_OPERATION: json.dumps(values).encode(), **progress, **here}, parts)


def _end(revision: Revision) -> Json:
    values = {name: getattr(revision, name) for name in (*_ENDED, "journal")}
    return {**values, "result": revision.result.value, "isKept": revision.is_kept}


def _contents(operation: Operation, namespace: str) -> dict[str, bytes]:
    """Return what the operation does as compressed bytes, by name."""
    own, elsewhere = {"", namespace}, defaultdict[str, list[Json]](list)
    is_running, steps = not isinstance(operation, Revision), []
    if is_running:  # nothing can be kept in a namespace before it is there
        new = (step.key for step in operation.steps if step.action is Action.CREATE)
        own.update(key.name for key in new if (key.group, key.kind) == ("", "Namespace"))
    for step in operation.steps:
        body, place = step_to_dict(step), step.key.namespace
        # until it has ended this takes the right to write Secrets there, which others do not need
        if place not in own and (step.key.kind == "Secret" or not is_running):
            elsewhere[place].append(body)
            body = {_ELSEWHERE: place}
        steps.append(body)
    pods_before = [[key.as_dict(), sorted(uids)] for key, uids in operation.pods_before.items()]
    payload = {
        "steps": steps,
        "objects": [key.as_dict() for key in operation.objects],
        "defFiles": list(operation.def_files),
        "context": dict(operation.context),
        "podsBefore": pods_before,
        "report": list(operation.report) if isinstance(operation, Revision) else [],
    }
    others = {f"{_CONTENT}/{place}": pack(bodies) for place, bodies in elsewhere.items()}
    return {_CONTENT: pack(payload), **others}


# --- the head -----------------------------------------------------------------------------------


def encode_progress(operation: Operation) -> dict[str, bytes]:
    """Return what the head of a running operation says of how far it is."""
    reports = [report.as_dict() for report in operation.scripts[-_MOST_SCRIPTS:]]
    for report in reports:
        report["output"] = report["output"][-_LONGEST_OUTPUT:]
    return {
        "phase": operation.phase.value.encode(),
        "groups": str(operation.ended_groups).encode(),
        "scripts": json.dumps(reports).encode(),
    }


def decode_progress(head: Json) -> dict[str, Any]:
    """Return the attributes of :func:`encode_progress`, and the operation's id; raises DAMAGED."""
    data = keeping.data_of(head)
    reports = json.loads(data["scripts"])
    schemas.refuse_other(schemas.SCRIPTS, reports)
    return {
        "operation": _values(head)["operation"],
        "phase": Phase(data["phase"].decode()),
        "ended_groups": int(data["groups"]),
        "scripts": tuple(map(ScriptReport.of, reports)),
    }


def part_keys(head: Json) -> dict[str, list[ObjectKey]]:
    """Return the Secrets of a head's parts, by what is in them; raises DAMAGED."""
    numbers = dict(_values(head)["parts"])
    if not (
        all(map(_PART_NAME.fullmatch, numbers))
        and all(type(number) is int and number > 0 for number in numbers.values())
        and sum(numbers.values()) <= keeping.MAX_PARTS
    ):
        raise ValueError(f"parts: expected {keeping.MAX_PARTS} at most")
    key, count = ObjectKey.of(head), Counter[str]()
    keys = defaultdict[str, list[ObjectKey]](list)
    for name, number in numbers.items():
        place = _place_of(name)
        # another VNF of its name may have a Secret there too
        prefix = f"{key.name}.of.{key.namespace}" if place else key.name
        for _ in range(number):
            count[place] += 1
            part = f"{prefix}.{count[place]}"
            keys[name].append(replace(key, namespace=place or key.namespace, name=part))
    return keys


def is_part(name: str, whole: bytes, head: Json) -> bool:
    """Tell whether the parts of a name are those that were written with a head."""
    try:
        return bool(_values(head)["digests"][name] == _digest(whole))
    except DAMAGED:
        return False


def _values(head: Json) -> Json:
    values: Json = json.loads(keeping.text(head, _OPERATION))
    return values


def _digest(whole: bytes) -> str:
    return hashlib.sha256(whole).hexdigest()


def _place_of(part: str) -> str:
    """Return the namespace of a part by its name; empty: that of the head."""
    return part.partition("/")[2]


# --- back ---------------------------------------------------------------------------------------


def decode(head: Json, parts: Mapping[str, bytes]) -> Operation:
    """Return the operation of :func:`encode`; a :class:`Revision` where it has ended.

    :param parts: the values that are not in the head; without one of them a revision has no steps.
    :raises UpdateInProgressError: another version of this program wrote it.
    :raises ValueError: another client wrote it.
    """
    try:
        return _decode_head(head, parts)
    except DAMAGED as error:
        raise ValueError("is damaged") from error


def _decode_head(head: Json, parts: Mapping[str, bytes]) -> Operation:
    values, whole = _values(head), {**keeping.data_of(head), **parts}
    common, end = from_values(values, _FORMAT), values["end"]
    schemas.refuse_other(schemas.HEAD, values)
    missing = {name for name in part_keys(head) if name not in parts and name != _INSTANCE}
    is_kept = end is None or (end["isKept"] and not missing)
    payload = unpack(whole[_CONTENT]) if is_kept else _NOTHING
    schemas.refuse_other(schemas.CONTENT, payload)
    if "request" in payload["context"]:
        schemas.refuse_other(schemas.CONTEXT, payload["context"])
    others = {name: parts[name] for name in parts if _place_of(name)} if is_kept else {}
    elsewhere = {_place_of(name): iter(unpack(other)) for name, other in others.items()}
    bodies = [
        next(elsewhere[body[_ELSEWHERE]], {}) if _ELSEWHERE in body else body
        for body in payload["steps"]
    ]
    attributes: dict[str, Any] = {
        **common,
        "origin": Origin.of(values["origin"]),
        "steps": tuple(map(schemas.checked_step, bodies)),
        "pods_before": {
            schemas.object_key(key): frozenset(uids) for key, uids in payload["podsBefore"]
        },
        "def_files": tuple(payload["defFiles"]),
        "context": payload["context"],
        "objects": tuple(map(schemas.object_key, payload["objects"])),
        "instance": whole.get(_INSTANCE, b""),
        "namespaces": frozenset(map(_place_of, parts)) - {""},
    }
    if end is None:
        return Operation(**{**attributes, **decode_progress(head)})
    datetime.fromisoformat(end["ended"])
    return Revision(
        **attributes,
        **{name: end[name] for name in _ENDED},
        phase=Phase.END,
        result=Result(end["result"]),
        journal=end.get("journal") or "",
        report=tuple(payload["report"]),
        is_kept=is_kept,
    )


# --- what the history keeps ---------------------------------------------------------------------


def reduce_revision(revision: Revision) -> Revision:
    """Return the revision without what no way back needs.

    Of a Secret only its content before the operation is kept. The new content is in the cluster;
    here its place is taken by a mark that says which keys changed.
    """
    steps = tuple(map(_reduce_step, revision.object_steps))
    return replace(revision, steps=steps, pods_before={}, context={}, scripts=())


def _reduce_step(step: ObjectStep) -> ObjectStep:
    before = step.before
    if before is not None:
        step = replace(step, before=stable_part(before))
    if isinstance(step, ConfigStep) and step.key.kind == "Secret":
        step = replace(step, content=_mark_old_values(step.content, before or {}))
    return step


def _mark_old_values(content: Json, before: Json) -> Json:
    """Return a Secret's manifest with its old values, and a mark for each that is another one."""
    old, new = diff.content(before).data if before else {}, diff.content(content).data
    data = {
        key: base64.b64encode(value).decode() if old.get(key) == value else _NEW_VALUE
        for key, value in new.items()
    }
    without = {name: value for name, value in content.items() if name != "stringData"}
    return {**without, "data": data}
